//! Attention over every format of keys and values.

use super::{assert_close, backends, uniform};
use crate::compute::reference::Reference;
use crate::compute::{Attention, AttentionMask, Backend, KvFormat, KvShape};

/// Absolute, for values in [−1, 1].
pub(super) const BOUND: f64 = 4e-6;
/// The same where queries and weights are rounded to bfloat16, whose steps are 2⁻⁸ of a value.
const BF16_BOUND: f64 = 2e-2;

/// Queries, cached positions, heads of queries and of keys, and their size; sequences of queries, sequences cached.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) new: usize,
    pub(super) len: usize,
    pub(super) n_head: usize,
    pub(super) n_kv_head: usize,
    pub(super) head_dim: usize,
    pub(super) batch: usize,
    pub(super) cached: usize,
}

#[test]
fn attention_agrees() {
    let case = |new, len, [n_head, n_kv_head]: [usize; 2], head_dim, batch, cached| Case {
        new,
        len,
        n_head,
        n_kv_head,
        head_dim,
        batch,
        cached,
    };
    let cases = [
        case(1, 1, [1, 1], 1, 1, 1),
        case(1, 33, [3, 3], 5, 1, 1),
        case(1, 65, [2, 2], 64, 5, 1),
        case(1, 70, [4, 2], 66, 2, 2),
        case(3, 7, [2, 2], 16, 2, 2),
        case(8, 100, [1, 1], 33, 1, 1),
        case(9, 9, [3, 3], 64, 1, 1),
        case(33, 300, [6, 2], 33, 1, 1),
        case(50, 131, [2, 2], 40, 2, 2),
        case(97, 97, [4, 4], 8, 1, 1),
        case(70, 721, [2, 1], 7, 3, 1),
    ];
    let masks = [
        AttentionMask::Full,
        AttentionMask::Causal,
        AttentionMask::Window(1),
        AttentionMask::Window(30),
    ];
    let formats = [KvFormat::F32, KvFormat::F16, KvFormat::Bf16, KvFormat::Q8];
    for (name, cpu) in backends() {
        for case in cases {
            for mask in masks {
                for format in formats {
                    let truth = run(&Reference, case, mask, format);
                    let ours = run(&cpu, case, mask, format);
                    let Case {
                        new, len, head_dim, ..
                    } = case;
                    let what =
                        format!("{name}: {new} x {len}, heads of {head_dim}, {mask:?}, {format:?}");
                    let bound = match format {
                        KvFormat::F32 | KvFormat::F16 => BOUND,
                        KvFormat::Bf16 | KvFormat::Q8 if new > 8 => BF16_BOUND,
                        KvFormat::Bf16 | KvFormat::Q8 => BOUND,
                    };
                    assert_close(&what, &ours, &truth, |_| bound);
                }
            }
        }
    }
}

pub(super) fn run<B: Backend>(
    b: &B,
    case: Case,
    mask: AttentionMask,
    format: KvFormat,
) -> Vec<f32> {
    let Case {
        new,
        len,
        n_head,
        n_kv_head,
        head_dim,
        batch,
        cached,
    } = case;
    let upload = |seed, batch, rows, heads| {
        let shape = [batch, rows, heads * head_dim];
        b.upload(&shape, &uniform(seed, shape.iter().product()))
            .unwrap()
    };
    let shape = KvShape {
        batch: cached,
        capacity: len + 3,
        n_kv_head,
        head_dim,
        format,
    };
    let mut cache = b.kv_cache(shape).unwrap();
    let append = |cache: &mut B::KvCache, seed, rows| {
        let (k, v) = (
            upload(seed, cached, rows, n_kv_head),
            upload(seed + 1, cached, rows, n_kv_head),
        );
        b.kv_append(cache, &k, &v).unwrap();
    };
    append(&mut cache, 6, len);
    b.kv_truncate(&mut cache, 0); // what was there before must not shine through
    let first = len / 2; // in two steps, as a prompt and its continuation
    append(&mut cache, 2, first);
    append(&mut cache, 4, len - first);
    let attention = Attention {
        n_head,
        mask,
        scale: 1.0 / (head_dim as f32).sqrt(),
    };
    let q = upload(1, batch, new, n_head);
    b.download(&b.attention(&q, &cache, attention).unwrap())
        .unwrap()
}
