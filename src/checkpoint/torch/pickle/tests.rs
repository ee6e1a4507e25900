use super::*;

/// A pickle of protocol 2 around `body`.
fn pickle(body: &[u8]) -> Vec<u8> {
    [b"\x80\x02", body, b"."].concat()
}

fn fault(body: &[u8]) -> PickleFault {
    Pickle::parse(&pickle(body)).expect_err(&format!("{}", body.escape_ascii()))
}

fn text(text: &str) -> Vec<u8> {
    [b"\x8c", &[text.len() as u8][..], text.as_bytes()].concat()
}

#[test]
fn every_plain_value_is_read() {
    let body: &[u8] = b"\x80\x05\x95\x2a\0\0\0\0\0\0\0\
        (N\x88\x89K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\x00\x8a\x02\xff\xff\x8b\x03\0\0\0\0\0\x01\
        G\x3f\xf8\0\0\0\0\0\0X\x02\0\0\0hi\x8c\x02\xc3\xa9U\x01ZC\x01\xff\x85t.";
    let pickle = Pickle::parse(body).unwrap();
    let Value::Tuple(items) = pickle.value(pickle.root()) else {
        panic!("a tuple is read");
    };
    let shown: Vec<String> = items
        .iter()
        .map(|&item| format!("{:?}", pickle.value(item)))
        .collect();
    let expected = [
        "None",
        "Bool(true)",
        "Bool(false)",
        "Int(255)",
        "Int(65535)",
        "Int(-1)",
        "Int(0)",
        "Int(-1)",
        "Int(65536)",
        "Float(1.5)",
        "Str(\"hi\")",
        "Str(\"é\")",
        "Str(\"Z\")",
    ];
    assert_eq!(&shown[..expected.len()], expected);
    assert!(matches!(pickle.value(items[13]), Value::Tuple(inner) if inner.len() == 1));
}

#[test]
fn other_globals_are_refused_by_name() {
    let cases: &[(&[u8], &str)] = &[
        (b"cos\nsystem\n(X\x02\0\0\0lstR", "os.system"),
        (b"cposix\nsystem\n", "posix.system"),
        (b"c__builtin__\neval\n", "__builtin__.eval"),
        (b"cbuiltins\ngetattr\n", "builtins.getattr"),
        (b"ctorch\nload\n", "torch.load"),
        (b"ctorch\nTensor.__reduce__\n", "torch.Tensor.__reduce__"),
        (
            b"ctorch._utils\n_rebuild_qtensor\n",
            "torch._utils._rebuild_qtensor",
        ),
        (
            b"ccollections\nOrderedDict\r\n",
            "collections.OrderedDict\\r",
        ),
        (b"c\n\n", "."),
        (b"\x8c\x02os\x8c\x06system\x93", "os.system"),
        (b"cos\n\x1b[2Jsystem\n", "os.\\u{1b}[2Jsystem"),
    ];
    for (body, name) in cases {
        let message = fault(body).to_string();
        let expected = format!("`{name}` is not a tensor-rebuilding global; nothing was executed");
        assert_eq!(message, expected);
    }
}

#[test]
fn known_globals_cannot_be_bent_to_other_calls() {
    for body in [
        &b"ctorch\nFloatStorage\n)R"[..],
        b"ctorch\nTensor\n)R",
        b"ccollections\nOrderedDict\n(K\x01tR",
        b"ctorch._utils\n_rebuild_tensor_v2\n)R",
        b"ctorch._utils\n_rebuild_parameter\n(K\x01tR",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._tensor\n_rebuild_from_type_v2\nN)NtR",
    ] {
        assert!(
            matches!(fault(body), PickleFault::Call { .. }),
            "{}",
            body.escape_ascii()
        );
    }
    for body in [
        &b"K\x01)R"[..],
        b"X\x01\0\0\0a)R",
        b"ccollections\nOrderedDict\nK\x01R",
        b"K\x01}b",
    ] {
        assert!(
            matches!(fault(body), PickleFault::Operands { .. }),
            "{}",
            body.escape_ascii()
        );
    }
}

#[test]
fn persistent_ids_must_name_a_storage() {
    let storage = |kind: &str, elements: &[u8]| {
        [
            b"(",
            &text("storage")[..],
            kind.as_bytes(),
            &text("0"),
            &text("cpu"),
            elements,
            b"tQ",
        ]
        .concat()
    };
    let good = storage("ctorch\nHalfStorage\n", b"K\x03");
    assert!(Pickle::parse(&pickle(&good)).is_ok());
    for body in [
        storage("ctorch\nSize\n", b"K\x03"),
        storage("ctorch\nHalfStorage\n", b"J\xff\xff\xff\xff"),
        storage("ctorch\nHalfStorage\n", b"N"),
        storage("N", b"K\x03"),
        b"K\x01Q".to_vec(),
        b")Q".to_vec(),
        text("http://example.org/weights"),
    ] {
        let body = if body.ends_with(b"Q") {
            body
        } else {
            [&body[..], b"Q"].concat()
        };
        assert!(
            matches!(fault(&body), PickleFault::PersistentId),
            "{}",
            body.escape_ascii()
        );
    }
}

#[test]
fn opcodes_that_torch_does_not_write_are_refused() {
    // Text-mode opcodes, instances, extension registry, sets, out-of-band buffers, and bytes that are no opcode.
    for opcode in *b"FILPSVgiop\x82\x83\x84\x8f\x90\x91\x92\x97\x98\x00\xff" {
        match fault(&[opcode]) {
            PickleFault::Opcode {
                opcode: named,
                at: 2,
            } => assert_eq!(named, opcode),
            other => panic!("{opcode:#04x}: {other}"),
        }
    }
}

#[test]
fn operands_and_arguments_are_checked() {
    let operands: &[&[u8]] = &[
        b"",
        b"0",
        b"1",
        b"2",
        b"t",
        b"e",
        b"u",
        b"\x85",
        b"K\x01\x86",
        b"K\x01K\x01\x87",
        b"Na",
        b"]a",
        b"N]0a",
        b"}K\x01s",
        b"}(K\x01u",
        b"](K\x01u",
        b"K\x01(K\x02\x86",
        b"(a",
        b"q\0",
        b"R",
        b"b",
        b"}b",
        b"\x93",
        b"K\x01K\x02\x93",
        b"Q",
        b"(K\x01d",
        b"]K\x01K\x02s",
    ];
    for body in operands {
        assert!(
            matches!(fault(body), PickleFault::Operands { .. }),
            "{}",
            body.escape_ascii()
        );
    }
    let arguments: &[&[u8]] = &[
        b"h\0",
        b"j\xff\xff\xff\xff",
        b"Nq\x01h\x02",
        b"\x8c\x01\xff",
        b"cos\xff\nx\n",
        b"\x8a\x11aaaaaaaaaaaaaaaaa",
        b"\x8b\xff\xff\xff\xff",
        b"\x8b\x11\0\0\0",
        b"\x80\x01",
        b"\x80\x06",
    ];
    for body in arguments {
        assert!(
            matches!(fault(body), PickleFault::Argument { .. }),
            "{}",
            body.escape_ascii()
        );
    }
    let truncated: &[&[u8]] = &[
        b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"X\xff\xff\xff\xff",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"B\xff\xff\xff\x7f",
        b"C\xff",
        b"cos\nsystem",
        b"J\0\0",
        b"G\0",
        b"\x8b\x10\0\0\0",
    ];
    for body in truncated {
        assert!(
            matches!(fault(body), PickleFault::Truncated { .. }),
            "{}",
            body.escape_ascii()
        );
    }
}

#[test]
fn nesting_takes_no_stack_to_read_or_drop() {
    let mut body = b")".to_vec();
    body.resize(1_000_000, b'\x85');
    assert!(Pickle::parse(&pickle(&body)).is_ok());

    let marks = vec![b'('; 1_000_000];
    assert!(matches!(
        fault(&[&marks[..], b"0"].concat()),
        PickleFault::Operands { .. }
    ));
}

#[test]
fn values_memo_and_stack_are_limited() {
    let too_many = |opcodes: &[u8]| opcodes.repeat(MAX_VALUES + 1);
    assert!(matches!(
        fault(&too_many(b"N0")),
        PickleFault::TooLarge { what: "values", .. }
    ));
    assert!(matches!(
        fault(&[b"N", &too_many(b"2")[..]].concat()),
        PickleFault::TooLarge {
            what: "values on the stack",
            ..
        }
    ));
    assert!(matches!(
        fault(&too_many(b"(")),
        PickleFault::TooLarge { what: "marks", .. }
    ));
    let mut memo = b"N".to_vec();
    for index in 0..=MAX_VALUES as u32 {
        memo.push(b'r');
        memo.extend(index.to_le_bytes());
    }
    assert!(matches!(
        fault(&memo),
        PickleFault::TooLarge {
            what: "memo entries",
            ..
        }
    ));

    let long = vec![b'N'; MAX_PICKLE_BYTES + 1];
    assert!(matches!(
        Pickle::parse(&long),
        Err(PickleFault::TooLarge { what: "bytes", .. })
    ));
}

#[test]
fn a_value_may_contain_itself() {
    let list = pickle(b"]q\0h\0a");
    let list = Pickle::parse(&list).unwrap();
    assert!(matches!(list.value(list.root()), Value::List(items) if items[..] == [list.root()]));
}
