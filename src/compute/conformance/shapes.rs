//! Shapes that nobody thought of.

use proptest::prelude::*;

use super::attention::{self, Case};
use super::{Layer, assert_close, backends, formats, uniform};
use crate::compute::reference::Reference;
use crate::compute::{Activation, AttentionMask, KvFormat};

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn linear_layers_of_any_shape_agree(m in 0usize..40, n in 1usize..150, k in 1usize..300, seed in 0u64..1000) {
        let (x, w) = (uniform(seed, m * k), uniform(seed + 1, n * k));
        let formats = formats(&w, n, k);
        for (name, cpu) in backends() {
            for (format_name, weight, format) in &formats {
                let layer = Layer {
                    x: &x,
                    m,
                    weight,
                    format: *format,
                    activation: Activation::Silu,
                    has_residual: seed % 2 == 0,
                };
                layer.agrees(&format!("{name}: {m} x {n} x {k}, {format_name}"), &cpu);
            }
        }
    }

    #[test]
    fn attention_of_any_shape_agrees(
        new in 1usize..60,
        before in 0usize..300,
        sharing in 1usize..4,
        n_kv_head in 1usize..4,
        head_dim in 1usize..70,
        window in 1usize..400,
    ) {
        let case = Case {
            new,
            len: before + new,
            n_head: n_kv_head * sharing,
            n_kv_head,
            head_dim,
            batch: 1,
            cached: 1,
        };
        let mask = AttentionMask::Window(window);
        let truth = attention::run(&Reference, case, mask, KvFormat::F32);
        for (name, cpu) in backends() {
            let ours = attention::run(&cpu, case, mask, KvFormat::F32);
            assert_close(&name, &ours, &truth, |_| attention::BOUND);
        }
    }
}
