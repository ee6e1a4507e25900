//! Files built here, and files written by ggml's own library (`tests/golden/gguf`).

use serde_json::Value as Json;

use super::*;
use crate::checkpoint::Safetensors;

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// A value of the type that `code` stands for.
fn value(key: &str, code: u32, bytes: &[u8]) -> Vec<u8> {
    [&string(key), &code.to_le_bytes()[..], bytes].concat()
}

/// A tensor's entry; extents are innermost first.
fn tensor(name: &str, extents: &[u64], code: u32, offset: u64) -> Vec<u8> {
    let extents_bytes: Vec<u8> = extents.iter().flat_map(|e| e.to_le_bytes()).collect();
    [
        &string(name),
        &(extents.len() as u32).to_le_bytes()[..],
        &extents_bytes,
        &code.to_le_bytes(),
        &offset.to_le_bytes(),
    ]
    .concat()
}

/// A file of version 3 with `data` bytes of data, each its own place.
fn file(values: &[Vec<u8>], tensors: &[Vec<u8>], data: usize) -> Bytes {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((values.len() as u64).to_le_bytes());
    file.extend([values.concat(), tensors.concat()].concat());
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend((0..data).map(|i| i as u8));
    file.into()
}

fn open(bytes: Bytes) -> Result<Gguf, Error> {
    Gguf::from_bytes(bytes, "m.gguf")
}

fn fault(bytes: Bytes) -> String {
    let error = open(bytes).expect_err("the file is damaged").to_string();
    error.strip_prefix("m.gguf: ").unwrap().to_owned()
}

const F32: u32 = 0;
const Q8_0: u32 = 8;
const I8: u32 = 24;

/// Two tensors, one of them quantised, and an array of strings.
fn sample() -> Bytes {
    let words = ["a", "bc"].map(string).concat();
    let words = [&8_u32.to_le_bytes()[..], &2_u64.to_le_bytes(), &words].concat();
    file(
        &[value("words", 9, &words), value("n", 4, &[7, 0, 0, 0])],
        &[
            tensor("x", &[2, 3], F32, 0),
            tensor("block", &[32], Q8_0, 32),
        ],
        32 + 34,
    )
}

#[test]
fn shapes_are_outermost_first_and_tensors_are_slices_of_the_file() {
    let bytes = sample();
    let gguf = open(bytes.clone()).unwrap();
    assert_eq!((gguf.format(), gguf.names()), ("gguf", vec!["block", "x"]));
    let x = gguf.tensor("x").unwrap();
    assert_eq!((x.dtype, &x.shape[..]), (Dtype::F32, &[3, 2][..]));
    assert!(x.data.iter().copied().eq(0..24));
    assert!(bytes.as_ptr_range().contains(&x.data.as_ptr()));
    assert_eq!(gguf.metadata()["words"], r#"["a", "bc"]"#);
    assert!(matches!(gguf.tensor("y"), Err(Error::MissingTensor { name }) if name == "y"));
    assert!(gguf.info("y").is_none());
}

#[test]
fn quantised_tensors_are_described_and_refused_by_name_and_type() {
    let gguf = open(sample()).unwrap();
    let info = gguf.info("block").unwrap();
    assert_eq!((info.dtype, info.shape), (Dtype::Q8_0, vec![32]));
    let error = gguf.tensor("block").unwrap_err();
    assert_eq!(
        error.to_string(),
        "m.gguf: tensor `block` is quantised as Q8_0, which cannot be used; take a file of F32, F16 or BF16"
    );
}

#[test]
fn damage_is_named_with_its_tensor_and_numbers() {
    let one = |tensor: Vec<u8>| file(&[], &[tensor], 64);
    let valued = |value: Vec<u8>| file(&[value], &[], 0);
    let array = |code: u32, count: u64| [&code.to_le_bytes()[..], &count.to_le_bytes()].concat();
    let mut arrays = array(8, 0);
    for _ in 0..5 {
        arrays = [array(9, 1), arrays].concat();
    }
    let cases = [
        (
            Bytes::from_static(b"GGML\x03\0\0\0"),
            "it does not begin with `GGUF`",
        ),
        (
            Bytes::from_static(b"GGUF\0\0\0\x03"),
            "it is big-endian, which is not supported",
        ),
        (
            Bytes::from_static(b"GGUF\x01\0\0\0"),
            "version 1 of the format is not supported; 2 and 3 are",
        ),
        (
            Bytes::from_static(b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0"),
            "8 bytes of a tensor's name are due at byte 24 and 0 are left: the file is damaged or cut short",
        ),
        (
            valued(value("k", 13, &[])),
            "value `k` is of type 13, which is not known",
        ),
        (
            valued(value("k", 7, &[2])),
            "value `k` is 2, expected 0 or 1",
        ),
        (
            file(&[value("k", 0, &[1]), value("k", 0, &[1])], &[], 0),
            "key `k` is there twice",
        ),
        (
            valued(value("k", 9, &arrays)),
            "value `k` has more than 4 arrays inside one another",
        ),
        (
            valued(value("general.alignment", 4, &[24, 0, 0, 0])),
            "`general.alignment` is 24, expected a power of two",
        ),
        (
            valued(value("general.alignment", 8, &string("big"))),
            "`general.alignment` is big, expected a power of two",
        ),
        (
            file(
                &[],
                &[tensor("x", &[1], I8, 0), tensor("x", &[1], I8, 32)],
                64,
            ),
            "tensor `x` is there twice",
        ),
        (
            one(tensor("x", &[1; 5], I8, 0)),
            "tensor `x` has 5 dimensions, at most 4 are possible",
        ),
        (
            one(tensor("x", &[1], 31, 0)),
            "tensor `x` is of type 31, which is not known",
        ),
        (
            one(tensor("x", &[33], Q8_0, 0)),
            "tensor `x` cannot have shape [33] with elements of Q8_0",
        ),
        (
            one(tensor("x", &[u64::MAX, 2], I8, 0)),
            "tensor `x` cannot have shape [2, 18446744073709551615] with elements of I8",
        ),
        (
            one(tensor("x", &[1], I8, 1)),
            "tensor `x` begins at byte 1 of the data, no multiple of 32",
        ),
        (
            one(tensor("x", &[33], I8, 32)),
            "tensor `x` of 33 bytes at byte 32 of the data reaches beyond the end of the file: it is damaged or cut short",
        ),
        (
            one(tensor("x", &[1], I8, u64::MAX - 31)),
            "tensor `x` of 1 bytes at byte 18446744073709551584 of the data reaches beyond the end of the file: it is \
             damaged or cut short",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(bytes), expected);
    }
    let long = |code| fault(valued(value("k", 9, &array(code, u64::MAX))));
    for code in 0..13 {
        assert!(
            long(code).ends_with("the file is damaged or cut short"),
            "{code}"
        );
    }
    let mut no_text = tensor("x", &[1], I8, 0);
    no_text[8] = 0xff;
    assert_eq!(
        fault(one(no_text)),
        "a tensor's name at byte 33 is not UTF-8"
    );
}

#[test]
fn tensors_without_elements_lie_anywhere() {
    let gguf = open(file(&[], &[tensor("x", &[0, 4], F32, 1 << 40)], 0)).unwrap();
    let x = gguf.tensor("x").unwrap();
    assert_eq!((x.shape, x.data.len()), (vec![4, 0], 0));
}

#[test]
fn every_truncation_is_refused() {
    let whole = sample();
    for len in 0..whole.len() {
        assert!(open(whole.slice(..len)).is_err(), "{len} bytes");
    }
}

#[test]
fn mutations_never_panic_and_what_is_read_fits_its_shape() {
    let mut random = fastrand::Rng::with_seed(0x9907);
    let mut accepted = 0;
    let golden = Bytes::from(std::fs::read(golden("v3.gguf")).unwrap());
    for whole in [sample(), golden] {
        // The data says nothing, so the header alone is changed.
        let header = whole.len().min(2300);
        for _ in 0..5000 {
            let mut bytes = whole.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..header);
                bytes[at] = match random.u8(..3) {
                    0 => random.u8(..),
                    1 => bytes[random.usize(..header)],
                    _ => bytes[at] ^ 1 << random.u8(..8),
                };
            }
            let Ok(gguf) = open(bytes.into()) else {
                continue;
            };
            accepted += 1;
            for name in gguf.names() {
                let info = gguf.info(name).unwrap();
                let bytes = info.dtype.byte_len(&info.shape).unwrap();
                assert!(bytes <= whole.len());
                match gguf.tensor(name) {
                    Ok(tensor) => assert_eq!(tensor.data.len(), bytes),
                    Err(error) => assert!(matches!(error, Error::Quantised { .. })),
                }
            }
        }
    }
    assert!((1000..9000).contains(&accepted), "{accepted} accepted");
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/gguf")
        .join(name)
}

fn expected() -> Json {
    serde_json::from_slice(&std::fs::read(golden("expected.json")).unwrap()).unwrap()
}

#[test]
fn files_that_ggml_s_library_wrote_are_read_as_written() {
    let expected = expected();
    let values = Safetensors::open(&golden("expected.safetensors")).unwrap();
    for file in ["v2.gguf", "v3.gguf"] {
        let gguf = Gguf::open(&golden(file)).unwrap();
        assert_eq!(serde_json::json!(gguf.metadata()), expected["values"]);
        let tensors = expected["tensors"].as_object().unwrap();
        assert_eq!(gguf.names().len(), tensors.len());
        for (name, about) in tensors {
            let info = gguf.info(name).unwrap();
            assert_eq!(about["dtype"], info.dtype.name(), "{name}");
            assert_eq!(about["shape"], serde_json::json!(info.shape), "{name}");
            let bytes = info.dtype.byte_len(&info.shape).unwrap();
            assert_eq!(about["bytes"], bytes, "{name}");
            match gguf.tensor(name) {
                Ok(tensor) => {
                    assert_eq!(tensor.data, values.tensor(name).unwrap().data, "{name}");
                    assert_eq!(tensor.data.as_ptr() as usize % 64, 0, "{name}");
                }
                Err(_) => assert!(info.dtype.is_quantised(), "{name}"),
            }
        }
    }
    let error = Gguf::open(&golden("big_endian.gguf")).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("it is big-endian, which is not supported")
    );
}

#[test]
fn types_are_ggml_s() {
    let expected = expected();
    let types = expected["types"].as_object().unwrap();
    assert_eq!(types.len(), 34);
    for (name, about) in types {
        let code = about[0].as_u64().unwrap() as u32;
        let dtype = Dtype::from_ggml(code).unwrap();
        assert_eq!(dtype.name(), name);
        assert_eq!(about[1], dtype.block_len(), "{name}");
        // Never stored; the library still counts two singles before its codes where ggml itself has two halves.
        if dtype != Dtype::Q8_1 {
            assert_eq!(about[2], dtype.size(), "{name}");
        }
    }
}
