//! Every variant of every WGSL kernel that a plan can ask for parses and validates, and is as its plan says; the PTX is that of its source.
#![cfg(not(target_arch = "wasm32"))]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use lapidary::kernels::{Kernel, KernelId};
use lapidary::ops::elementwise::{Function, Kind, Program, Step};
use lapidary::ops::map::{self, View};
use lapidary::ops::matmul::{Activation, Batch, Integers, Level, Precision, Problem, Stored};
use lapidary::ops::normalize::{self, Form};
use lapidary::ops::reduce::Fold;
use lapidary::plan::matmul::{compute, stand_in};
use lapidary::plan::{Dispatch, ceiling};
use lapidary::{Caps, DType, Dialect, MatrixUnit, plan};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use problems::{DEFAULTS, LARGE, reduce, values};

mod problems;

const UNIT: MatrixUnit =
    MatrixUnit { m: 16, n: 16, k: 16, operands: DType::F16, sums: DType::F32, subgroup_size: 32, dialect: Dialect::Cooperative };

/// A kernel that a plan asks for, and its source in WGSL.
struct Variant {
    kernel: Kernel,
    source: String,
}

impl Variant {
    fn new(kernel: Kernel) -> Self {
        Self { source: kernel.wgsl().expect("the template expands"), kernel }
    }
}

/// All of them, once for all tests.
static VARIANTS: LazyLock<Vec<Variant>> = LazyLock::new(|| kernels().into_iter().map(Variant::new).collect());

/// Those of plans of all layouts at sizes that use each tile, and of parts that accumulate.
fn kernels() -> Vec<Kernel> {
    let (mut kernels, mut known) = (Vec::new(), HashSet::new());
    let mut add = |mut dispatches: Vec<Dispatch>| {
        // Most launches of a plan are of one kernel.
        dispatches.dedup_by(|next, last| next.kernel == last.kernel);
        for Dispatch { kernel, .. } in dispatches {
            if known.insert(format!("{kernel:?}")) {
                kernels.push(kernel);
            }
        }
    };
    let small_bindings = Caps { max_binding_bytes: 8192, ..Caps::UNLIMITED };
    for (caps, sizes) in [
        (
            Caps { binding_alignment_bytes: 256, ..Caps::UNLIMITED },
            [[64; 3], [512; 3], [1024; 3], [2049; 3], [4096; 3], [128, 8192, 128], [1, 5000, 300], [300, 200, 1], [5000, 9, 30]],
        ),
        (
            Caps { binding_alignment_bytes: 256, matrix_unit: Some(UNIT), ..Caps::UNLIMITED },
            [[1023; 3], [1024; 3], [2049; 3], [4096; 3], [128, 8192, 128], [300, 200, 3], [300, 200, 4], [300, 200, 5], [5000, 10, 6]],
        ),
        (
            Caps { binding_alignment_bytes: 256, f16: true, ..Caps::UNLIMITED },
            [[64; 3], [96; 3], [300, 200, 100], [512; 3], [1024; 3], [2048; 3], [2049; 3], [4096; 3], [5000, 8, 20]],
        ),
        (
            Caps { binding_alignment_bytes: 256, ..small_bindings },
            [[64; 3], [96; 3], [128; 3], [160; 3], [32, 4096, 32], [33, 4096, 129], [1, 9000, 7], [7, 9000, 1], [9000, 3, 2]],
        ),
    ] {
        let level = |count| Level { count, a: 1 << 10, b: 1 << 12, c: 1 << 14 };
        let batched = Batch { outer: level(2), inner: level(3), ..Batch::ONE };
        for ([m, k, n], batch) in sizes.into_iter().flat_map(|size| [(size, Batch::ONE), (size, batched)]) {
            // Whatever the strides of rows, those of items do the same to a kernel.
            for bits in (0..64).filter(|bits| batch == Batch::ONE || bits & 0b11000 == 0) {
                let yes = |bit: u32| bits >> bit & 1 == 1;
                // The register-tiled kernel differs by type in what it loads and stores alone, whatever its tile.
                if yes(5) && caps.matrix_unit.is_none() && m.min(n) > 512 {
                    continue;
                }
                // Matrix units read each operand in the same ways, and f32 in two terms.
                if caps.matrix_unit.is_some() && yes(3) != yes(4) {
                    continue;
                }
                // Computing in f16 changes what is loaded and multiplied, and not what is stored.
                if caps.f16 && (!yes(5) || yes(2) || yes(3) != yes(4) || batch != Batch::ONE) {
                    continue;
                }
                let split = caps.matrix_unit.is_some() && !yes(5);
                if split && (![1023, 4096].contains(&m) || batch != Batch::ONE) {
                    continue;
                }
                let stored = |rows: u32, columns: u32, odd: bool| Stored { rows, columns, stride: u64::from(columns) + u64::from(odd) };
                let c = yes(2).then(|| stored(m, n, false));
                let problem = Problem {
                    dtype: if yes(5) { DType::F16 } else { DType::F32 },
                    integers: None,
                    result: if yes(5) { DType::F16 } else { DType::F32 },
                    precision: match caps.f16 {
                        true => Precision::F16,
                        false if split => Precision::F16x3,
                        false => Precision::F32,
                    },
                    m,
                    k,
                    n,
                    batch,
                    transpose_a: yes(0),
                    transpose_b: yes(1),
                    alpha: 1.0,
                    beta: 1.0,
                    a: if yes(0) { stored(k, m, yes(3)) } else { stored(m, k, yes(3)) },
                    b: if yes(1) { stored(n, k, yes(4)) } else { stored(k, n, yes(4)) },
                    c,
                    bias: yes(0) != yes(2),
                    activation: Activation::ALL.get((bits as usize + m as usize) % 7).copied(),
                };
                let plan = compute(&problem, &caps).expect("within limits");
                if let Some(plan) = stand_in(&plan, &caps) {
                    add(plan.dispatches);
                }
                add(plan.dispatches);
            }
        }
    }
    // Of 8-bit integers by tiles of two sizes and by vectors, with packed words and without: of all that can differ, whatever three do.
    let sizes = [[30, 70, 31, 0], [300, 70, 260, 1], [1, 300, 601, 0], [601, 300, 1, 1], [5, 8000, 300, 0], [3000, 800, 3, 1]];
    for (bits, sizes) in (0..256u32).filter(|bits| bits.count_ones() % 4 < 2).flat_map(|bits| sizes.map(|sizes| (bits << 1, sizes))) {
        let yes = |bit: u32| bits >> bit & 1 == 1;
        let [m, k, n, odd] = sizes;
        let signed = [yes(1), yes(2)];
        let stored = |swap: bool, rows: u32, columns: u32| {
            let (rows, columns) = if swap { (columns, rows) } else { (rows, columns) };
            Stored { rows, columns, stride: u64::from(columns.next_multiple_of(4)) + u64::from(odd) }
        };
        let dtypes = signed.map(|signed| if signed { DType::I8 } else { DType::U8 });
        let level = Level { count: 3, a: 1 << 23, b: 1 << 23, c: 0 };
        let problem = Problem {
            dtype: dtypes[0],
            integers: Some(Integers { dtypes, zero_points: [i32::from(yes(3)), i32::from(yes(4))] }),
            result: DType::I32,
            precision: Precision::F32,
            m,
            k,
            n,
            batch: if yes(5) { Batch { inner: level, ..Batch::ONE } } else { Batch::ONE },
            transpose_a: yes(6),
            transpose_b: yes(7),
            alpha: 1.0,
            beta: 0.0,
            a: stored(yes(6), m, k),
            b: stored(yes(7), k, n),
            c: None,
            bias: false,
            activation: None,
        };
        let max_binding_bytes = if yes(5) || k > 70 { 1 << 28 } else { 4096 };
        let caps = Caps { binding_alignment_bytes: 256, packed_dot: yes(8), max_binding_bytes, ..Caps::UNLIMITED };
        add(compute(&problem, &caps).expect("within limits").dispatches);
    }
    for plan in [ceiling::copy(4096, &Caps::UNLIMITED), ceiling::fma(1, 1, &Caps::UNLIMITED).0] {
        add(plan.dispatches);
    }
    kernels
}

/// Those of operations: of plans as they are written down, of each fold and each norm of whole tensors, rows and columns, and of functions
/// of all sorts.
fn operations() -> Vec<Variant> {
    let [rows, columns] = [&[300, 1][..], &[1, 300]].map(|strides| values(&[300, 300], strides));
    let mut plans: Vec<_> = problems::plans().into_iter().map(|(_, plan)| plan).collect();
    for &fold in Fold::ALL {
        for (values, kept) in [(&rows, 0), (&rows, 1), (&columns, 1)] {
            let of = |values: &map::Problem| plan::reduce::compute(&reduce(fold, kept, values.clone()), &LARGE);
            plans.extend([of(values), of(&halves(values))]);
        }
    }
    for &form in Form::ALL {
        for count in [7, 1000, 100_000] {
            let problem = problems::rows(form, count);
            let halved = normalize::Problem { values: halves(&problem.values), ..problem.clone() };
            plans.extend([problem, halved].map(|problem| plan::normalize::compute(&problem, &DEFAULTS)));
        }
    }
    use Function::{Acosh, Div, Erf, Exp, IsNan, Less, Log, Max, Mod, Pow, Rem, Round, Sigmoid, Sign, Sin, Tanh};
    for function in [Acosh, Div, Erf, Exp, IsNan, Less, Log, Max, Mod, Pow, Rem, Round, Sigmoid, Sign, Sin, Tanh] {
        for kind in [Kind::F32, Kind::I32, Kind::U32] {
            let is_of_floats = ![Div, Less, Max, Mod, Rem].contains(&function);
            if kind != Kind::F32 && is_of_floats {
                continue;
            }
            let mut program = Program { inputs: vec![Kind::F32], steps: vec![Step::Input(0), Step::Cast(0, kind)] };
            let applied = program.add(Step::Apply(function, [1, 1]));
            program.add(Step::Cast(applied, Kind::F32));
            plans.push(plan::map::compute(&map::Problem { program: program.into(), ..columns.clone() }, &LARGE));
        }
    }
    let kernels = plans.into_iter().flat_map(|plan| plan.expect("within limits").dispatches).map(|dispatch| dispatch.kernel);
    let mut known = HashSet::new();
    kernels.filter(|kernel| known.insert(format!("{kernel:?}"))).map(Variant::new).collect()
}

/// The same read from f16.
fn halves(problem: &map::Problem) -> map::Problem {
    let inputs = problem.inputs.iter().map(|view| View { dtype: DType::F16, ..view.clone() }).collect();
    map::Problem { inputs, ..problem.clone() }
}

#[test]
fn every_variant_validates() {
    assert!(VARIANTS.len() > 64, "only {} variants", VARIANTS.len());
    for Variant { kernel, source } in &*VARIANTS {
        let module = naga::front::wgsl::parse_str(source)
            .unwrap_or_else(|error| panic!("{kernel} {:?}: {}", kernel.constants, error.emit_to_string(source)));
        // Every device packs and unpacks f16. For matrix units see `backend/vulkan/pipeline.rs`.
        let (mut flags, mut capabilities) = (ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32);
        if kernel.id == KernelId::MatmulCooperative {
            flags.remove(ValidationFlags::CONTROL_FLOW_UNIFORMITY);
            capabilities |= Capabilities::SUBGROUP | Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX;
        }
        if kernel.constant("HALF") == 1 {
            capabilities |= Capabilities::SHADER_FLOAT16;
        }
        let mut validator = Validator::new(flags, capabilities);
        validator.validate(&module).unwrap_or_else(|error| panic!("{kernel} {:?}: {error:?}", kernel.constants));
        let entry = &module.entry_points[0];
        let threads = match kernel.id {
            KernelId::MatmulSum
            | KernelId::MatmulVector
            | KernelId::MatmulInt8Vector
            | KernelId::MatmulRound
            | KernelId::MatmulCooperative
            | KernelId::MatmulCopy
            | KernelId::MatmulSplit
            | KernelId::CeilingCopy
            | KernelId::CeilingFma => [kernel.constant("THREADS"), 1, 1],
            KernelId::MatmulRows => [64, 1, 1],
            KernelId::MatmulDirect if kernel.constant("MANY") == 1 => [64, 1, 1],
            KernelId::MatmulDirect => [8, 8, 1],
            _ => [kernel.constant("THREADS_N"), kernel.constant("THREADS_M"), kernel.constant("SLICES").max(1)],
        };
        assert_eq!(entry.workgroup_size, threads);
        // C is bound if and only if it is read.
        let bound =
            module.global_variables.iter().filter_map(|(_, variable)| variable.binding).map(|binding| binding.binding).collect::<Vec<_>>();
        assert_eq!(bound.contains(&4), kernel.constant("READS_C") == 1);
        assert_eq!(bound.contains(&5), kernel.constant("READS_BIAS") == 1);
    }
}

#[test]
fn every_operation_validates() {
    let operations = operations();
    assert!(operations.len() > 64, "only {} of operations", operations.len());
    for Variant { kernel, source } in &operations {
        let module = naga::front::wgsl::parse_str(source).unwrap_or_else(|error| panic!("{kernel}: {}", error.emit_to_string(source)));
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32);
        validator.validate(&module).unwrap_or_else(|error| panic!("{kernel} {:?}: {error:?}", kernel.constants));
    }
}

/// The options are those of wgpu's Metal backend, and the slots those that it gives: buffers in the order of their bindings, then the
/// lengths of those that have none in their type. Nothing here runs on Metal.
#[test]
fn every_variant_translates_to_metal() {
    use naga::back::msl;
    use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
    // The oldest and the newest that wgpu asks for on a Mac that it runs on.
    let versions = [(2, 0), (4, 0)];
    let operations = operations();
    // Matrix units are used through Vulkan alone.
    let products = VARIANTS.iter().filter(|variant| variant.kernel.id != KernelId::MatmulCooperative);
    for Variant { kernel, source } in products.chain(&operations) {
        let module = naga::front::wgsl::parse_str(source).expect("another test judges that");
        let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), naga::valid::Capabilities::all());
        let info = validator.validate(&module).expect("another test judges that");
        let mut bound: Vec<_> =
            module.global_variables.iter().filter_map(|(_, variable)| Some((variable.binding?, variable.space))).collect();
        bound.sort_by_key(|(binding, _)| (binding.group, binding.binding));
        let targets = (0..).zip(&bound).map(|(slot, &(binding, space))| {
            let mutable = matches!(space, naga::AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE));
            (binding, msl::BindTarget { buffer: Some(slot), mutable, ..Default::default() })
        });
        let resources =
            msl::EntryPointResources { resources: targets.collect(), sizes_buffer: Some(bound.len() as u8), ..Default::default() };
        let policy = BoundsCheckPolicy::Restrict;
        for lang_version in versions {
            let options = msl::Options {
                lang_version,
                per_entry_point_map: [("main".to_owned(), resources.clone())].into(),
                fake_missing_bindings: false,
                bounds_check_policies: BoundsCheckPolicies {
                    index: policy,
                    buffer: policy,
                    image_load: policy,
                    binding_array: BoundsCheckPolicy::Unchecked,
                },
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            };
            let entry = msl::PipelineOptions {
                entry_point: Some((naga::ShaderStage::Compute, "main".to_owned())),
                vertex_pulling_transform: true,
                ..Default::default()
            };
            let (metal, about) = msl::write_string(&module, &info, &options, &entry)
                .unwrap_or_else(|error| panic!("{kernel} {:?} for Metal {lang_version:?}: {error:?}", kernel.constants));
            assert!(metal.contains("kernel void") && about.entry_point_names[0].is_ok(), "{kernel}");
            let inputs = bound.len() as u32 + u32::from(metal.contains("_buffer_sizes [["));
            assert!((0..inputs).all(|slot| metal.contains(&format!("[[buffer({slot})]]"))), "{kernel}: {metal}");
        }
    }
}

#[test]
fn accumulators_have_constant_indices() {
    // A driver keeps an array in registers only if every index is a constant; the template writes variables instead.
    for id in [
        KernelId::MatmulDirect,
        KernelId::MatmulSum,
        KernelId::MatmulVector,
        KernelId::MatmulRound,
        KernelId::MatmulCooperative,
        KernelId::MatmulInt8,
        KernelId::MatmulInt8Vector,
    ] {
        assert!(VARIANTS.iter().any(|variant| variant.kernel.id == id), "{id:?}");
    }
    assert!(VARIANTS.iter().any(|variant| variant.kernel.constant("PARTS") == 1));
    let tiled = |variant: &&Variant| [KernelId::MatmulTiled, KernelId::MatmulInt8].contains(&variant.kernel.id);
    for Variant { kernel, source } in VARIANTS.iter().filter(tiled) {
        assert!(!source.contains("var sum: array") && source.contains("sum_0_0_0"), "{kernel}");
    }
}

/// What a source includes, in order, and the source itself.
fn parts(path: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(path).expect("it is there");
    let names = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'));
    names.flat_map(|name| parts(&path.with_file_name(name))).chain([path.to_owned()]).collect()
}

#[test]
fn the_ptx_is_that_of_its_source() {
    let within = |folder: &Path| std::fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("it can be read").path());
    let folders = within(&Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders")).filter(|path| path.is_dir());
    let all: Vec<_> = folders.flat_map(|folder| within(&folder).collect::<Vec<_>>()).collect();
    let compiled: Vec<_> = all.iter().filter(|path| path.extension().is_some_and(|ending| ending == "ptx")).collect();
    assert!(compiled.len() > 8, "{compiled:?}");
    for ptx in compiled {
        let parts = parts(&ptx.with_extension("cu"));
        let names: Vec<_> = parts.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        // FNV-1a of 64 bits.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        let bytes = parts.iter().flat_map(|path| std::fs::read(path).expect("it is there"));
        let expected =
            format!("// scripts/ptx made this from {}, fnv1a {:016x}", names.join(" and "), bytes.fold(0xCBF2_9CE4_8422_2325u64, step));
        let text = std::fs::read_to_string(ptx).expect("it is there");
        assert_eq!(text.lines().next(), Some(expected.as_str()), "run scripts/ptx");
    }
}
