//! Every variant of every WGSL kernel that a plan can ask for parses and validates, and is as its plan says; the PTX is that of its source.
#![cfg(not(target_arch = "wasm32"))]

use lapidary::Caps;
use lapidary::kernels::{Kernel, KernelId};
use lapidary::ops::matmul::{Problem, Stored};
use lapidary::plan::matmul::compute;

/// Plans of all layouts at sizes that use each tile, and parts that accumulate.
fn variants() -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = Vec::new();
    let small_bindings = Caps { max_binding_bytes: 8192, ..Caps::UNLIMITED };
    for (caps, sizes) in [
        (Caps { binding_alignment_bytes: 256, ..Caps::UNLIMITED }, [64, 512, 1024, 4096]),
        (Caps { binding_alignment_bytes: 256, ..small_bindings }, [64, 96, 128, 160]),
    ] {
        for size in sizes {
            for bits in 0..32 {
                let yes = |bit: u32| bits >> bit & 1 == 1;
                let stored = |odd: bool| Stored { rows: size, columns: size, stride: u64::from(size) + u64::from(odd) };
                let c = yes(2).then(|| stored(false));
                let problem = Problem {
                    m: size,
                    k: size,
                    n: size,
                    transpose_a: yes(0),
                    transpose_b: yes(1),
                    alpha: 1.0,
                    beta: 1.0,
                    a: stored(yes(3)),
                    b: stored(yes(4)),
                    c,
                };
                for dispatch in compute(&problem, &caps).expect("within limits").dispatches {
                    if !kernels.contains(&dispatch.kernel) {
                        kernels.push(dispatch.kernel);
                    }
                }
            }
        }
    }
    kernels
}

#[test]
fn every_variant_validates() {
    let variants = variants();
    assert!(variants.len() > 64, "only {} variants", variants.len());
    for kernel in variants {
        let source = kernel.wgsl().expect("the template expands");
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|error| panic!("{kernel} {:?}: {}", kernel.constants, error.emit_to_string(&source)));
        let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::empty());
        validator.validate(&module).unwrap_or_else(|error| panic!("{kernel} {:?}: {error:?}", kernel.constants));
        let entry = &module.entry_points[0];
        assert_eq!(entry.workgroup_size, [kernel.constant("THREADS_N"), kernel.constant("THREADS_M"), 1]);
        // C is bound if and only if it is read.
        let bound =
            module.global_variables.iter().filter_map(|(_, variable)| variable.binding).map(|binding| binding.binding).collect::<Vec<_>>();
        assert_eq!(bound.contains(&4), kernel.constant("READS_C") == 1);
    }
}

#[test]
fn accumulators_have_constant_indices() {
    // A driver keeps an array in registers only if every index is a constant; the template writes variables instead.
    for kernel in variants() {
        let source = kernel.wgsl().expect("the template expands");
        assert!(!source.contains("var sum: array") && source.contains("sum_0_0_0"), "{kernel}");
        assert_eq!(kernel.id, KernelId::MatmulTiled);
    }
}

#[test]
fn the_ptx_is_that_of_its_source() {
    let source = include_bytes!("../shaders/matmul/tiled.cu");
    // FNV-1a of 64 bits.
    let hash = source.iter().fold(0xCBF2_9CE4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
    let ptx = include_str!("../shaders/matmul/tiled.ptx");
    let first = ptx.lines().next().unwrap_or_default();
    assert_eq!(first, format!("// scripts/ptx made this from tiled.cu, fnv1a {hash:016x}"), "run scripts/ptx");
}
