//! Files built here, and a model of random weights in whisper.cpp's form (`tests/golden/ggml`).

use half::f16;

use super::*;
use crate::checkpoint::Safetensors;

const F32: u32 = 0;
const F16: u32 = 1;
const Q5_0: u32 = 6;

fn integers(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// All before the tensors: `dims`, filters of two columns, two tokens.
fn header(dims: [u32; 10]) -> Vec<u8> {
    let n_mels = dims[9];
    let mut header = MAGIC.to_vec();
    header.extend(integers(&dims));
    header.extend(integers(&[1, n_mels, 2]));
    header.extend(integers(&vec![0; 2 * n_mels as usize]));
    header.extend([integers(&[2, 1]), b"a".to_vec(), integers(&[0])].concat());
    header
}

const DIMS_OF_SAMPLE: [u32; 10] = [5, 8, 4, 2, 1, 6, 4, 2, 1, 3];

/// A tensor; extents are innermost first.
fn tensor(name: &str, extents: &[u32], code: u32, bytes: usize) -> Vec<u8> {
    let numbers = [extents.len() as u32, name.len() as u32, code];
    let mut tensor = [
        integers(&numbers),
        integers(extents),
        name.as_bytes().to_vec(),
    ]
    .concat();
    tensor.extend((0..bytes).map(|i| i as u8));
    tensor
}

fn file(tensors: &[Vec<u8>]) -> Bytes {
    [header(DIMS_OF_SAMPLE), tensors.concat()].concat().into()
}

fn sample() -> [Vec<u8>; 3] {
    [
        tensor("encoder.conv1.weight", &[3, 3, 4], F16, 72),
        tensor("encoder.conv1.bias", &[1, 4], F32, 16),
        tensor("decoder.token_embedding.weight", &[32, 2], Q5_0, 44),
    ]
}

fn open(bytes: Bytes) -> Result<Ggml, Error> {
    Ggml::from_bytes(bytes, "m.bin")
}

fn fault(bytes: impl Into<Bytes>) -> String {
    let error = open(bytes.into())
        .expect_err("the file is damaged")
        .to_string();
    error.strip_prefix("m.bin: ").unwrap().to_owned()
}

#[test]
fn tensors_are_slices_of_the_file_and_dimensions_are_metadata() {
    let bytes = file(&sample());
    let ggml = open(bytes.clone()).unwrap();
    assert_eq!((ggml.format(), ggml.names().len()), ("ggml", 3));
    let weight = ggml.tensor("encoder.conv1.weight").unwrap();
    assert_eq!(
        (weight.dtype, &weight.shape[..]),
        (Dtype::F16, &[4, 3, 3][..])
    );
    assert!(weight.data.iter().copied().eq(0..72));
    assert!(bytes.as_ptr_range().contains(&weight.data.as_ptr()));
    let bias = ggml.tensor("encoder.conv1.bias").unwrap();
    assert_eq!((bias.dtype, &bias.shape[..]), (Dtype::F32, &[4][..]));
    assert!(ggml.info("encoder.conv2.bias").is_none());
    assert!(matches!(ggml.tensor("x"), Err(Error::MissingTensor { name }) if name == "x"));
    for (name, dim) in DIMS.iter().zip(DIMS_OF_SAMPLE) {
        assert_eq!(ggml.metadata()[&format!("dims.{name}")], dim.to_string());
    }
    assert_eq!(ggml.metadata()["ftype"], "1");
}

#[test]
fn quantised_tensors_are_described_and_refused_by_name_and_type() {
    let ggml = open(file(&sample())).unwrap();
    let info = ggml.info("decoder.token_embedding.weight").unwrap();
    assert_eq!((info.dtype, &info.shape[..]), (Dtype::Q5_0, &[2, 32][..]));
    let error = ggml.tensor("decoder.token_embedding.weight").unwrap_err();
    assert_eq!(
        error.to_string(),
        "m.bin: tensor `decoder.token_embedding.weight` is quantised as Q5_0, which cannot be used; take a file of F32, \
         F16 or BF16"
    );
}

#[test]
fn damage_is_named_with_its_tensor_and_numbers() {
    let one = |tensor: Vec<u8>| file(&[tensor]);
    let mut no_text = tensor("x", &[1], F32, 4);
    no_text[16] = 0xff;
    let cases: [(Bytes, &str); 10] = [
        (Bytes::from_static(b"GGUF"), "it does not begin with `lmgg`"),
        (
            one(tensor("x", &[1; 5], F32, 4)),
            "a tensor at byte 93 has 5 dimensions, at most 4 are possible",
        ),
        (
            one(tensor("x", &[1], 4, 4)),
            "tensor `x` is of type 4, which is not known",
        ),
        (
            one(tensor("x", &[33, 2], Q5_0, 4)),
            "tensor `x` cannot have shape [2, 33] with elements of Q5_0",
        ),
        (
            one(tensor("x", &[u32::MAX; 4], F32, 4)),
            "tensor `x` cannot have shape [4294967295, 4294967295, 4294967295, 4294967295] with elements of F32",
        ),
        (
            one(tensor("x", &[2], F32, 4)),
            "8 bytes of a tensor are due at byte 110 and 4 are left: the file is damaged or cut short",
        ),
        (one(no_text), "a tensor's name at byte 110 is not UTF-8"),
        (
            file(&[tensor("x", &[1], F32, 4), tensor("x", &[1], F32, 4)]),
            "tensor `x` is there twice",
        ),
        (
            one(integers(&[0, u32::MAX, 0])),
            "4294967295 bytes of a tensor's name are due at byte 105 and 0 are left: the file is damaged or cut short",
        ),
        (
            one(vec![0; 3]),
            "4 bytes of a tensor's dimensions are due at byte 93 and 3 are left: the file is damaged or cut short",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(bytes), expected);
    }
}

#[test]
fn other_files_of_the_same_first_bytes_are_called_what_they_are_not() {
    // llama.cpp's before GGUF: vocabulary, width, multiple, heads, layers, rotary width, precision, then tokens.
    let llama = [
        MAGIC.to_vec(),
        integers(&[32000, 4096, 256, 32, 32, 128, 2]),
    ]
    .concat();
    let llama = [llama, integers(&[5]), b"<unk>".to_vec(), vec![0; 64]].concat();
    // whisper.cpp's voice detector: the length of its type, the type.
    let silero = [
        MAGIC.to_vec(),
        integers(&[10]),
        b"silero-16k".to_vec(),
        vec![0; 64],
    ]
    .concat();
    let mut zero = DIMS_OF_SAMPLE;
    zero[4] = 0;
    let mut filters = header(DIMS_OF_SAMPLE);
    filters[48] = 4;
    for (bytes, what) in [
        (llama, "n_text_layer is "),
        (silero, "n_audio_ctx is "),
        (header(zero), "n_audio_layer is 0, expected 1 to 1048576: "),
        (filters, "its mel filters have 4 rows for 3 bins: "),
    ] {
        let fault = fault(bytes);
        assert!(fault.starts_with(what), "{fault}");
        assert!(
            fault.ends_with("it is not a whisper model of whisper.cpp"),
            "{fault}"
        );
    }
}

#[test]
fn every_truncation_is_refused_but_between_two_tensors() {
    let whole = file(&sample());
    let mut between = vec![header(DIMS_OF_SAMPLE).len()];
    for tensor in sample() {
        between.push(between.last().unwrap() + tensor.len());
    }
    for len in 0..=whole.len() {
        let tensors = between.iter().position(|&end| end == len);
        match open(whole.slice(..len)) {
            Ok(ggml) => assert_eq!(Some(ggml.names().len()), tensors, "{len} bytes"),
            Err(_) => assert_eq!(tensors, None, "{len} bytes"),
        }
    }
}

#[test]
fn mutations_never_panic_and_what_is_read_fits_its_shape() {
    let whole = file(&sample());
    let mut random = fastrand::Rng::with_seed(0x99e1);
    let mut accepted = 0;
    for _ in 0..10_000 {
        let mut bytes = whole.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            bytes[at] = match random.u8(..3) {
                0 => random.u8(..),
                1 => bytes[random.usize(..bytes.len())],
                _ => bytes[at] ^ 1 << random.u8(..8),
            };
        }
        let Ok(ggml) = open(bytes.into()) else {
            continue;
        };
        accepted += 1;
        for name in ggml.names() {
            let info = ggml.info(name).unwrap();
            let bytes = info.dtype.byte_len(&info.shape).unwrap();
            match ggml.tensor(name) {
                Ok(tensor) => assert_eq!(tensor.data.len(), bytes),
                Err(error) => assert!(matches!(error, Error::Quantised { .. })),
            }
        }
    }
    assert!((1000..9000).contains(&accepted), "{accepted} accepted");
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

#[test]
fn tensors_are_those_of_the_source_bit_for_bit() {
    let ggml = Ggml::open(&golden("ggml/narrow.bin")).unwrap();
    let source = Safetensors::open(&golden("random_whisper/narrow/model.safetensors")).unwrap();
    // Names are the kit's business; shapes and values tell which is which.
    let mut unmatched: Vec<Tensor> = source
        .names()
        .iter()
        .map(|name| source.tensor(name).unwrap())
        .collect();
    assert_eq!(ggml.names().len(), unmatched.len());
    for name in ggml.names() {
        let ours = ggml.tensor(name).unwrap();
        let same = |source: &Tensor| {
            let halves = || {
                source
                    .data
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&x| f16::from_f32(f32::from_le_bytes(x)))
            };
            let data = match ours.dtype {
                Dtype::F16 => halves().flat_map(f16::to_le_bytes).collect(),
                _ => source.data.to_vec(),
            };
            source.shape == ours.shape && data == ours.data
        };
        let place = unmatched
            .iter()
            .position(same)
            .unwrap_or_else(|| panic!("{name} is not the source's"));
        unmatched.swap_remove(place);
    }
}
