//! Archives built here, and archives written by torch (`tests/golden/torch_zip`).

use std::io::{Cursor, Write};

use serde_json::Value as Json;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::checkpoint::{Dtype, Safetensors};

/// An archive of `pickle` and storages `0`, `1`, … .
fn archive(pickle: &[u8], storages: &[&[u8]], byte_order: &str) -> Bytes {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut member = |name: &str, data: &[u8]| {
        zip.start_file(format!("archive/{name}"), stored).unwrap();
        zip.write_all(data).unwrap();
    };
    member("data.pkl", pickle);
    member("byteorder", byte_order.as_bytes());
    for (key, storage) in storages.iter().enumerate() {
        member(&format!("data/{key}"), storage);
    }
    zip.finish().unwrap().into_inner().into()
}

fn open(pickle: &[u8], storages: &[&[u8]]) -> Result<Torch, Error> {
    Torch::from_bytes(archive(pickle, storages, "little"), "m.pt")
}

fn text(text: &str) -> Vec<u8> {
    [
        b"X",
        &(text.len() as u32).to_le_bytes()[..],
        text.as_bytes(),
    ]
    .concat()
}

fn int(value: i64) -> Vec<u8> {
    [&b"\x8a\x08"[..], &value.to_le_bytes()].concat()
}

fn tuple(values: &[i64]) -> Vec<u8> {
    let values: Vec<u8> = values.iter().flat_map(|&value| int(value)).collect();
    [b"(", &values[..], b"t"].concat()
}

/// The call that rebuilds a tensor of `elements` in storage 0.
fn tensor(kind: &str, elements: i64, offset: i64, shape: &[i64], stride: &[i64]) -> Vec<u8> {
    [
        b"ctorch._utils\n_rebuild_tensor_v2\n((",
        &text("storage")[..],
        format!("ctorch\n{kind}Storage\n").as_bytes(),
        &text("0"),
        &text("cpu"),
        &int(elements),
        b"tQ",
        &int(offset),
        &tuple(shape),
        &tuple(stride),
        b"\x89ccollections\nOrderedDict\n)RtR",
    ]
    .concat()
}

/// A dictionary.
fn dict(items: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let items: Vec<u8> = items
        .iter()
        .flat_map(|(key, value)| [text(key), value.clone()].concat())
        .collect();
    [b"}(", &items[..], b"u"].concat()
}

fn whole(body: &[u8]) -> Vec<u8> {
    [b"\x80\x02", body, b"."].concat()
}

/// Twelve bytes, each its own place.
const STORAGE: &[u8] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];

#[test]
fn offsets_and_strides_are_honoured() {
    struct Case {
        offset: i64,
        shape: &'static [i64],
        stride: &'static [i64],
        expected: &'static [u8],
    }
    let cases = [
        Case {
            offset: 0,
            shape: &[3, 4],
            stride: &[4, 1],
            expected: STORAGE,
        },
        Case {
            offset: 5,
            shape: &[],
            stride: &[],
            expected: &[5],
        },
        Case {
            offset: 8,
            shape: &[4],
            stride: &[1],
            expected: &[8, 9, 10, 11],
        },
        Case {
            offset: 0,
            shape: &[4, 3],
            stride: &[1, 4],
            expected: &[0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11],
        },
        Case {
            offset: 1,
            shape: &[2, 2],
            stride: &[5, 3],
            expected: &[1, 4, 6, 9],
        },
        Case {
            offset: 0,
            shape: &[2, 1, 2, 3],
            stride: &[6, 99, 3, 1],
            expected: STORAGE,
        },
        Case {
            offset: 11,
            shape: &[2, 3],
            stride: &[0, 0],
            expected: &[11; 6],
        },
        Case {
            offset: 0,
            shape: &[2, 3, 2],
            stride: &[1, 4, 2],
            expected: &[0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11],
        },
        Case {
            offset: 12,
            shape: &[0],
            stride: &[1],
            expected: &[],
        },
        Case {
            offset: 3,
            shape: &[2, 0, 3],
            stride: &[7, 7, 7],
            expected: &[],
        },
    ];
    for case in cases {
        let x = tensor("Byte", 12, case.offset, case.shape, case.stride);
        let torch = open(&whole(&dict(&[("x", x)])), &[STORAGE]).unwrap();
        let read = torch.tensor("x").unwrap();
        assert_eq!(
            read.data, case.expected,
            "{:?} by {:?} at {}",
            case.shape, case.stride, case.offset
        );
        assert_eq!(read.dtype, Dtype::U8);
        assert!(
            read.shape.iter().eq(case
                .shape
                .iter()
                .map(|&extent| extent as usize)
                .collect::<Vec<_>>()
                .iter())
        );
    }
}

#[test]
fn contiguous_tensors_share_the_archives_bytes() {
    let pickle = whole(&dict(&[
        ("all", tensor("Short", 6, 0, &[2, 3], &[3, 1])),
        ("tail", tensor("Short", 6, 4, &[2], &[1])),
        ("column", tensor("Short", 6, 1, &[2], &[3])),
    ]));
    let bytes = archive(&pickle, &[STORAGE], "little");
    let torch = Torch::from_bytes(bytes.clone(), "m.pt").unwrap();
    let all = torch.tensor("all").unwrap().data;
    assert!(bytes.as_ptr_range().contains(&all.as_ptr()));
    assert_eq!(
        torch.tensor("tail").unwrap().data.as_ptr_range().end,
        all.as_ptr_range().end
    );
    let column = torch.tensor("column").unwrap().data;
    assert_eq!(column, [2, 3, 8, 9][..]);
    assert!(!bytes.as_ptr_range().contains(&column.as_ptr()));
}

#[test]
fn big_endian_storages_are_swapped() {
    let pickle = whole(&dict(&[("x", tensor("Int", 3, 1, &[2], &[1]))]));
    let torch = Torch::from_bytes(archive(&pickle, &[STORAGE], "big"), "m.pt").unwrap();
    assert_eq!(
        torch.tensor("x").unwrap().data,
        [7, 6, 5, 4, 11, 10, 9, 8][..]
    );
    let odd = Torch::from_bytes(archive(&pickle, &[STORAGE], "middle"), "m.pt").unwrap_err();
    assert_eq!(odd.to_string(), "m.pt: unknown byte order `middle`");
}

#[test]
fn tensors_outside_their_storage_are_refused_before_anything_is_allocated() {
    let cases: &[(Vec<u8>, &str)] = &[
        (
            tensor("Byte", 13, 0, &[1], &[1]),
            "storage `0` should have 13 elements of U8 and has 12 bytes",
        ),
        (
            tensor("Long", i64::MAX, 0, &[1], &[1]),
            "elements of I64 and has 12 bytes",
        ),
        (
            tensor("Byte", 12, 0, &[13], &[1]),
            "shape [13] with strides [1] at offset 0 reaches outside its storage of 12 elements",
        ),
        (tensor("Byte", 12, 13, &[0], &[1]), "reaches outside"),
        (tensor("Byte", 12, 12, &[], &[]), "reaches outside"),
        (tensor("Byte", 12, 0, &[2, 2], &[11, 1]), "reaches outside"),
        (tensor("Byte", 12, 0, &[3], &[i64::MAX]), "reaches outside"),
        (
            tensor("Byte", 12, i64::MAX, &[i64::MAX, 3], &[i64::MAX, 1]),
            "reaches outside",
        ),
        (
            tensor("Byte", 12, 0, &[2], &[1, 1]),
            "1 extents but 2 strides",
        ),
        (
            tensor("Byte", 12, 0, &[1 << 40], &[0]),
            "expands a small storage beyond 16777216 bytes",
        ),
        (
            tensor("Byte", 12, 0, &[1 << 40, 1 << 40], &[0, 0]),
            "expands",
        ),
        (
            tensor("Byte", 12, 0, &[i64::MAX, 9, 0], &[0, 0, 0]),
            "expands",
        ),
    ];
    for (x, expected) in cases {
        let error = open(&whole(&dict(&[("x", x.clone())])), &[STORAGE])
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("m.pt: tensor `x`: ") && error.contains(expected),
            "{error}"
        );
    }
    for x in [
        tensor("Byte", 12, -1, &[1], &[1]),
        tensor("Byte", 12, 0, &[-1], &[1]),
        tensor("Byte", 12, 11, &[2], &[-1]),
        tensor("Byte", 12, 0, &[1; 65], &[1; 65]),
    ] {
        let error = open(&whole(&dict(&[("x", x)])), &[STORAGE]).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Torch {
                    fault: TorchFault::Pickle(PickleFault::TensorArguments),
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn the_state_dict_is_found_and_named_without_its_key() {
    let x = || tensor("Byte", 12, 0, &[1], &[1]);
    let state = |name: &str| dict(&[(name, x())]);
    let cases: Vec<(Vec<u8>, &[&str])> = vec![
        (dict(&[("x", x()), ("n", int(3))]), &["x"]),
        (
            dict(&[
                ("dims", dict(&[("n_mels", int(80))])),
                ("anything", state("x")),
            ]),
            &["x"],
        ),
        (
            dict(&[
                ("model", state("x")),
                ("model_state_dict", state("y")),
                ("ema", state("z")),
            ]),
            &["y"],
        ),
        (
            dict(&[("ema", state("z")), ("state_dict", state("a.b"))]),
            &["a.b"],
        ),
        (
            dict(&[("one", state("x")), ("two", state("y"))]),
            &["one.x", "two.y"],
        ),
        (
            dict(&[("x", x()), ("below", state("y"))]),
            &["below.y", "x"],
        ),
        (
            dict(&[("best", dict(&[("net", state("x"))]))]),
            &["best.net.x"],
        ),
        ([b"](", &x()[..], &state("y"), b"e"].concat(), &["0", "1.y"]),
    ];
    for (body, expected) in cases {
        let torch = open(&whole(&body), &[STORAGE]).unwrap();
        assert_eq!(torch.names(), expected);
    }
}

#[test]
fn another_state_dict_is_chosen_by_its_path_of_keys() {
    let state = |name: &str| dict(&[(name, tensor("Byte", 12, 0, &[1], &[1]))]);
    let saved = dict(&[
        ("model", state("x")),
        ("ema", state("y")),
        ("best", dict(&[("net", state("z")), ("step", int(3))])),
        ("v1.0", state("w")),
        ("empty", dict(&[("a", int(1))])),
    ]);
    let bytes = archive(&whole(&saved), &[STORAGE], "little");
    let choose = |key: &str| Torch::with_state_dict(bytes.clone(), "m.pt", key);
    for (key, expected) in [
        ("ema", "y"),
        ("model", "x"),
        ("best.net", "z"),
        ("v1.0", "w"),
    ] {
        let torch = choose(key).unwrap();
        assert_eq!(torch.names(), [expected], "{key}");
        assert_eq!(torch.metadata()["best.step"], "3");
    }
    for key in [
        "",
        "emu",
        "ema.y",
        "ema.y.z",
        "best",
        "best.",
        "best.step",
        "empty",
        "v1",
    ] {
        let error = choose(key).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "m.pt: there is no dictionary of tensors under `{key}`; there is one under `model`, `ema`, `v1.0`"
            )
        );
    }
    let nowhere = archive(&whole(&dict(&[("n", int(1))])), &[], "little");
    let error = Torch::with_state_dict(nowhere, "m.pt", "n")
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("under `n`, nor under any other key"),
        "{error}"
    );
}

#[test]
fn plain_values_are_metadata_under_dotted_keys() {
    let dims = dict(&[
        ("n_mels", int(80)),
        ("deep", dict(&[("rate", b"G\x3f\xe0\0\0\0\0\0\0".to_vec())])),
    ]);
    let body = dict(&[
        ("dims", dims),
        ("flag", b"\x88".to_vec()),
        ("list", [b"](", &int(1)[..], &text("two"), b"Ne"].concat()),
        ("device", b"ctorch\ndevice\nX\x04\0\0\0cuda\x85R".to_vec()),
    ]);
    let torch = open(&whole(&body), &[]).unwrap();
    let metadata: Vec<(&str, &str)> = torch
        .metadata()
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    let expected = [
        ("device", "cuda"),
        ("dims.deep.rate", "0.5"),
        ("dims.n_mels", "80"),
        ("flag", "true"),
        ("list.0", "1"),
        ("list.1", "two"),
    ];
    assert_eq!(metadata, expected);
}

#[test]
fn objects_that_unfold_without_end_are_refused() {
    let fault = |body: &[u8]| match open(&whole(body), &[STORAGE]).unwrap_err() {
        Error::Torch {
            fault: TorchFault::Pickle(fault),
            ..
        } => fault,
        other => panic!("{other}"),
    };
    // Each list holds the one before it 64 times.
    let mut bomb = b"]q\0".to_vec();
    for level in 1..30 {
        bomb.extend([b"](", &[b'h', level - 1].repeat(64)[..], b"eq", &[level]].concat());
    }
    assert!(matches!(fault(&bomb), PickleFault::TooLarge { .. }));
    assert!(matches!(fault(b"]q\0h\0a"), PickleFault::TooDeep { .. }));
    let deep = [&b"]".repeat(100_000)[..], &b"a".repeat(99_999)].concat();
    assert!(matches!(fault(&deep), PickleFault::TooDeep { .. }));
    assert!(matches!(
        fault(&tensor("Byte", 12, 0, &[1], &[1])),
        PickleFault::LoneTensor
    ));
    assert!(matches!(fault(b"}(NK\x01u"), PickleFault::Key));
    let x = tensor("Byte", 12, 0, &[1], &[1]);
    let twice = dict(&[("a.b", x.clone()), ("a", dict(&[("b", x)]))]);
    assert!(matches!(fault(&twice), PickleFault::RepeatedName { name } if name == "a.b"));
}

#[test]
fn archives_that_torch_does_not_write_are_refused() {
    let good = whole(&dict(&[("x", tensor("Byte", 12, 0, &[12], &[1]))]));
    let error = open(&good, &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "m.pt: storage `archive/data/0` is missing from the archive"
    );

    // Method 8 (deflate) for the last member, in its local header and in the directory.
    let mut compressed = archive(&good, &[STORAGE], "little").to_vec();
    for (signature, method) in [(b"PK\x03\x04", 8), (b"PK\x01\x02", 10)] {
        let at = compressed
            .windows(4)
            .rposition(|window| window == signature)
            .unwrap();
        compressed[at + method] = 8;
    }
    let error = Torch::from_bytes(compressed.into(), "m.pt").unwrap_err();
    let expected =
        "m.pt: member `archive/data/0` is compressed or encrypted; torch does not write such files";
    assert_eq!(error.to_string(), expected);

    let mut other = ZipWriter::new(Cursor::new(Vec::new()));
    other
        .start_file(
            "word/document.xml",
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored),
        )
        .unwrap();
    let other = other.finish().unwrap().into_inner();
    let error = Torch::from_bytes(other.into(), "m.docx").unwrap_err();
    assert_eq!(
        error.to_string(),
        "m.docx: a zip archive without `*/data.pkl` is not a torch file"
    );
}

#[test]
fn every_truncation_is_refused() {
    let bytes = archive(
        &whole(&dict(&[("x", tensor("Byte", 12, 0, &[12], &[1]))])),
        &[STORAGE],
        "little",
    );
    for len in 0..bytes.len() {
        assert!(
            Torch::from_bytes(bytes.slice(..len), "m.pt").is_err(),
            "{len} of {} bytes",
            bytes.len()
        );
    }
}

#[test]
fn mutations_never_panic_and_what_is_read_fits_its_shape() {
    let mut random = fastrand::Rng::with_seed(0x70c4);
    let mut accepted = 0;
    for name in [
        "checkpoint.pt",
        "views.pt",
        "plain_values.pt",
        "parameters.bin",
    ] {
        let whole = std::fs::read(golden(name)).unwrap();
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = if random.bool() {
                    random.u8(..)
                } else {
                    bytes[random.usize(..bytes.len())]
                };
            }
            let Ok(torch) = Torch::from_bytes(bytes.into(), name) else {
                continue;
            };
            accepted += 1;
            for name in torch.names() {
                let tensor = torch.tensor(name).unwrap();
                assert_eq!(
                    tensor.data.len(),
                    tensor.shape.iter().product::<usize>() * tensor.dtype.size()
                );
            }
        }
    }
    assert!((1000..7900).contains(&accepted), "{accepted} accepted");
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/torch_zip")
        .join(name)
}

#[test]
fn archives_that_torch_wrote_are_read_as_torch_reads_them() {
    let expected: Json =
        serde_json::from_slice(&std::fs::read(golden("expected.json")).unwrap()).unwrap();
    let values = Safetensors::open(&golden("expected.safetensors")).unwrap();
    let not_zip = expected["not_zip"].as_array().unwrap();
    for (file, about) in expected["files"].as_object().unwrap() {
        if not_zip.iter().any(|name| name == file) {
            continue;
        }
        let torch = Torch::open(&golden(file)).unwrap();
        let tensors = about["tensors"].as_object().unwrap();
        assert_eq!(torch.names().len(), tensors.len(), "{file}");
        for dotted in tensors.keys() {
            let name = dotted.strip_prefix("model_state_dict.").unwrap_or(dotted);
            let (ours, theirs) = (
                torch.tensor(name).unwrap(),
                values.tensor(&format!("{file}/{dotted}")).unwrap(),
            );
            assert_eq!(
                (ours.dtype, &ours.shape),
                (theirs.dtype, &theirs.shape),
                "{file} {name}"
            );
            assert_eq!(ours.data, theirs.data, "{file} {name}");
        }
        let mut plain = BTreeMap::new();
        flatten(&about["values"], "", &mut plain);
        assert_eq!(torch.metadata(), &plain, "{file}");
    }
}

/// Plain JSON values under dotted keys.
fn flatten(value: &Json, path: &str, plain: &mut BTreeMap<String, String>) {
    let below = |key: &str| {
        if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        }
    };
    match value {
        Json::Null => {}
        Json::Object(items) => items
            .iter()
            .for_each(|(key, value)| flatten(value, &below(key), plain)),
        Json::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(i, value)| flatten(value, &below(&i.to_string()), plain));
        }
        Json::String(text) => drop(plain.insert(path.to_owned(), text.clone())),
        other => drop(plain.insert(path.to_owned(), other.to_string())),
    }
}

#[test]
fn archives_that_torch_refuses_are_refused_by_name() {
    let cases = [
        (
            "evil_os_system.pt",
            "`os.system` is not a tensor-rebuilding global; nothing was executed",
        ),
        (
            "evil_nested_eval.pt",
            "`builtins.eval` is not a tensor-rebuilding global; nothing was executed",
        ),
        (
            "short_storage.pt",
            "storage `0` should have 12 elements of F32 and has 40 bytes",
        ),
        (
            "missing_storage.pt",
            "storage `missing_storage/data/0` is missing from the archive",
        ),
    ];
    for (file, expected) in cases {
        let error = Torch::open(&golden(file)).unwrap_err().to_string();
        assert!(error.contains(file) && error.ends_with(expected), "{error}");
    }
}
