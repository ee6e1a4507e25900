use std::fs;

use super::*;

/// A file of `header` (padded to nothing) and `data`.
fn file(header: &str, data: &[u8]) -> Bytes {
    let length = (header.len() as u64).to_le_bytes();
    Bytes::from([&length, header.as_bytes(), data].concat())
}

fn fault(bytes: Bytes) -> String {
    Safetensors::from_bytes(bytes, "m.safetensors")
        .expect_err("the file is damaged")
        .to_string()
}

/// Two tensors, one of them empty of elements, a scalar, and metadata.
fn sample() -> Bytes {
    let header = r#"{"__metadata__":{"k":"v"},"b":{"dtype":"F16","shape":[2,2],"data_offsets":[4,12]},
        "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"none":{"dtype":"I8","shape":[0,9],"data_offsets":[12,12]}}"#;
    file(header, &[7; 12])
}

#[test]
fn tensors_are_slices_of_the_file() {
    let bytes = sample();
    let file = Safetensors::from_bytes(bytes.clone(), "m").unwrap();
    assert_eq!(file.names(), ["a", "b", "none"]);
    assert_eq!(file.metadata().get("k").map(String::as_str), Some("v"));
    let b = file.tensor("b").unwrap();
    assert_eq!((b.dtype, &b.shape[..]), (Dtype::F16, &[2, 2][..]));
    assert_eq!(b.data.as_ptr_range().end, bytes.as_ptr_range().end);
    assert!(file.info("a").unwrap().shape.is_empty());
    assert_eq!(file.tensor("none").unwrap().data.len(), 0);
    assert!(matches!(file.tensor("c"), Err(Error::MissingTensor { name }) if name == "c"));
}

#[test]
fn damage_is_named_with_its_tensor_and_numbers() {
    let entry = |name: &str, dtype: &str, shape: &str, start: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
    };
    let one = |dtype: &str, shape: &str, start: u64, end: u64| {
        file(
            &format!("{{{}}}", entry("x", dtype, shape, start, end)),
            &[0; 8],
        )
    };
    let two = |first: String, second: String| file(&format!("{{{first},{second}}}"), &[0; 8]);
    let cases = [
        (
            Bytes::from_static(b"\x01\0\0"),
            "3 bytes are too few for a safetensors header",
        ),
        (
            Bytes::from_static(b"\xff\xff\xff\xff\xff\xff\xff\xff{}"),
            "a header of 18446744073709551615 bytes is over the limit of 100000000",
        ),
        (
            Bytes::from_static(b"\x40\0\0\0\0\0\0\0{}"),
            "header length 64 is beyond the end of the file: 2 bytes follow",
        ),
        (
            file("{", b""),
            "header cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (
            file("[]", b""),
            "header cannot be read: invalid type: sequence, expected a map of tensors at line 1 column 0",
        ),
        (
            one("F8_E4M3", "[8]", 0, 8),
            "tensor `x` has element type `F8_E4M3`, which is not supported",
        ),
        (
            one("F32", "[3]", 0, 8),
            "tensor `x` of F32 [3] does not take the 8 bytes between its offsets",
        ),
        (
            one("F32", "[2]", 0, 12),
            "tensor `x` of F32 [2] does not take the 12 bytes between its offsets",
        ),
        (
            one("U8", "[18446744073709551615,18446744073709551615]", 0, 8),
            "tensor `x` of U8 [18446744073709551615, 18446744073709551615] does not take the 8 bytes between its offsets",
        ),
        (
            one("F32", "[1]", 4, 8),
            "tensor `x` begins at byte 4 of the data, not at 0 where the one before it ends",
        ),
        (
            one("F32", "[4]", 0, 16),
            "the tensors take 16 bytes of data and the file has 8: it has been cut short",
        ),
        (
            one("F32", "[1]", 0, 4),
            "the tensors take 4 bytes of data and the file has 8",
        ),
        (
            two(
                entry("x", "F32", "[2]", 0, 8),
                entry("y", "F32", "[1]", 4, 8),
            ),
            "tensor `y` begins at byte 4 of the data, not at 8 where the one before it ends",
        ),
        (
            one("U8", "[18446744073709551615]", 0, u64::MAX),
            "the tensors take 18446744073709551615 bytes of data and the file has 8: it has been cut short",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(bytes), format!("m.safetensors: {expected}"));
    }
    let swapped = two(
        entry("x", "F32", "[1]", 0, 4),
        entry("y", "F32", "[1]", 4, 0),
    );
    assert!(fault(swapped).contains("`y` of F32 [1] does not take the -4 bytes"));
    let repeated = two(entry("x", "U8", "[8]", 0, 8), entry("x", "U8", "[8]", 0, 8));
    assert!(fault(repeated).contains("`x` is there twice"));
    for negative in [
        r#"{"x":{"dtype":"U8","shape":[-1],"data_offsets":[0,8]}}"#,
        r#"{"x":{"dtype":"U8"}}"#,
    ] {
        assert!(fault(file(negative, &[0; 8])).contains("header cannot be read"));
    }
    let deep = "[".repeat(100_000);
    assert!(fault(file(&format!("{{\"x\":{deep}"), b"")).contains("header cannot be read"));
}

#[test]
fn every_truncation_is_refused() {
    let whole = sample();
    for len in 0..whole.len() {
        assert!(
            Safetensors::from_bytes(whole.slice(..len), "m").is_err(),
            "{len} bytes"
        );
    }
}

#[test]
fn what_mutations_leave_readable_the_formats_own_reader_reads_alike() {
    let whole = sample();
    let mut random = fastrand::Rng::with_seed(0x5afe);
    let mut accepted = 0;
    for _ in 0..5000 {
        let mut bytes = whole.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = if random.bool() {
                random.u8(..)
            } else {
                *b"0129,:{}[]\"ab".get(random.usize(..13)).unwrap()
            };
        }
        let Ok(ours) = Safetensors::from_bytes(Bytes::from(bytes.clone()), "m") else {
            continue;
        };
        accepted += 1;
        let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(ours.names().len(), theirs.len());
        for name in ours.names() {
            let (ours, theirs) = (ours.tensor(name).unwrap(), theirs.tensor(name).unwrap());
            assert_eq!(ours.dtype.name(), theirs.dtype().to_string());
            assert_eq!(ours.shape, theirs.shape());
            assert_eq!(ours.data, theirs.data());
        }
    }
    assert!((100..4900).contains(&accepted), "{accepted} accepted");
}

#[test]
fn written_files_are_aligned_repeatable_and_read_back() {
    let tensor = |dtype: Dtype, shape: &[usize], fill: u8| Tensor {
        dtype,
        shape: shape.to_vec(),
        data: vec![fill; shape.iter().product::<usize>() * dtype.size()].into(),
    };
    let tensors: BTreeMap<String, Tensor> = [
        ("a", tensor(Dtype::I8, &[3], 1)),
        ("b", tensor(Dtype::F32, &[2, 2], 2)),
        ("c", tensor(Dtype::F16, &[5], 3)),
        ("d", tensor(Dtype::F64, &[], 4)),
    ]
    .map(|(name, tensor)| (name.to_owned(), tensor))
    .into();
    let metadata = [("z", "1"), ("a", "\"two\"\n")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.safetensors");
    write_safetensors(&path, &tensors, &metadata).unwrap();
    let first = fs::read(&path).unwrap();
    write_safetensors(&path, &tensors, &metadata).unwrap();
    assert_eq!(fs::read(&path).unwrap(), first);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);

    let header_bytes = u64::from_le_bytes(first[..8].try_into().unwrap());
    assert_eq!((header_bytes + 8) % 64, 0);
    let read = Safetensors::open(&path).unwrap();
    assert_eq!(read.metadata(), &metadata);
    let theirs = safetensors::SafeTensors::deserialize(&first).unwrap();
    for (name, tensor) in &tensors {
        let back = read.tensor(name).unwrap();
        assert_eq!(
            (back.dtype, &back.shape, &back.data),
            (tensor.dtype, &tensor.shape, &tensor.data)
        );
        assert_eq!(
            back.data.as_ptr() as usize % tensor.dtype.size(),
            0,
            "{name} is aligned"
        );
        assert_eq!(theirs.tensor(name).unwrap().data(), tensor.data);
    }
}

#[test]
fn tensors_that_do_not_fit_their_shape_are_not_written() {
    let short = Tensor {
        dtype: Dtype::F32,
        shape: vec![2],
        data: Bytes::from_static(&[0; 4]),
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.safetensors");
    let tensors = [("short".to_owned(), short)].into();
    assert!(write_safetensors(&path, &tensors, &BTreeMap::new()).is_err());
    assert!(!path.exists());
}
