//! Products on devices said to have less room than they have: by what is planned for those, small ones run what otherwise only large ones do.

use super::device::{Buffer, Device, Opened};
use super::{Backend, Bound, How};
use crate::call::Call;
use crate::dtype::DType;
use crate::host::HostVec;
use crate::info::{BackendId, Caps};
use crate::kernels::KernelId;
use crate::ops::Op;
use crate::ops::conv::Problem as Conv;
use crate::ops::elementwise::{Function, Kind, Program, Step};
use crate::ops::map::{self, View};
use crate::ops::matmul::{Matmul, Precision};
use crate::ops::normalize::{self, Form};
use crate::ops::window::Window;
use crate::options::Options;
use crate::plan::tuned::Tuned;
use crate::plan::{Dispatch, Plan};
use half::f16;
use std::sync::Arc;

/// All of it as tests of one backend, on the devices that `$open` opens.
macro_rules! tests {
    ($open:ident) => {
        $crate::backend::limited::tests! {
            $open:
            products_in_many_parts_are_right
            products_of_copies_are_right
            products_of_turned_copies_are_right
            convolutions_in_many_pieces_are_right
            convolutions_past_a_binding_are_right
            transpositions_past_a_binding_are_right
            rows_past_a_binding_are_right
            products_of_slices_are_right
            products_of_tiles_that_overlap_are_right
        }
    };
    ($open:ident: $($name:ident)+) => { $(
        #[test]
        fn $name() {
            $crate::backend::limited::$name($open);
        }
    )+ };
}
pub(super) use tests;

/// Whether A is transposed, and whether B is.
const FORMS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

/// The launches of such a product's four forms, plus a matrix, which are of whole numbers and so have one right result.
fn launches_of_right_products(opened: &Opened, sides: [usize; 3]) -> Vec<Dispatch> {
    launches_of_right(opened, sides, &FORMS, 2.0, Precision::F32)
}

/// The same of some forms, and of operands of f16 where the product is computed in f16, the matrix so many times.
fn launches_of_right(opened: &Opened, [m, k, n]: [usize; 3], forms: &[(bool, bool)], beta: f32, precision: Precision) -> Vec<Dispatch> {
    let values = |count: usize| (0..count).map(|i| (i * 7 % 11) as f32 - 5.0).collect::<Vec<_>>();
    let (a, b, c) = (values(m * k), values(k * n), values(m * n));
    let [a_f16, b_f16] = [&a, &b].map(|values| values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>());
    let mut launches = Vec::new();
    for &(transpose_a, transpose_b) in forms {
        let op = Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a).transpose_b(transpose_b).precision(precision);
        let op = if beta != 0.0 { op.plus(beta, &c) } else { op };
        let call = match precision {
            Precision::F16 => Call::new(&op, (&a_f16).into(), (&b_f16).into()).unwrap(),
            _ => Call::new(&op, (&a).into(), (&b).into()).unwrap(),
        };
        let how = How { repeats: 1, timed: false, download: call.op.extent() };
        let started = call.start(opened, how).unwrap();
        launches.extend(started.plan.dispatches);
        let data = pollster::block_on(opened.device.finish(started.running)).unwrap().data.unwrap().into_vec();
        for (at, &value) in data.iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let x = |p: usize| if transpose_a { a[p * m + i] } else { a[i * k + p] };
            let y = |p: usize| if transpose_b { b[j * k + p] } else { b[p * n + j] };
            let exact = (0..k).map(|p| x(p) * y(p)).sum::<f32>() + beta * c[at];
            assert_eq!(value, exact, "{i},{j} transposed {transpose_a},{transpose_b}");
        }
    }
    launches
}

/// With bindings of 8192 bytes and three workgroups every operand is split, k too, and the parts make up the product.
pub(super) fn products_in_many_parts_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    let Some(opened) = open(|caps| (caps.max_binding_bytes, caps.max_workgroups_per_dimension) = (8192, 3)) else { return };
    let launches = launches_of_right_products(&opened, [130, 170, 75]);
    assert!(launches.len() > 40, "{} launches", launches.len());
    assert!(launches.iter().any(|launch| launch.kernel.constant("ACCUMULATES") == 1), "no product was split over k");
}

/// With one workgroup k is one part however long it is, which is worth a copy of each operand whose rows start anywhere and are not along k.
pub(super) fn products_of_copies_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    use KernelId::{MatmulCopy as Copy, MatmulTiled as Tiled};
    let limit = |caps: &mut Caps| {
        (caps.max_workgroups_per_dimension, caps.f16) = (1, caps.stores_f16);
        // Those of the smallest tile, for which nothing is turned.
        caps.max_workgroup_invocations = 64;
    };
    let Some(opened) = open(limit) else { return };
    let copied = |launches: Vec<Dispatch>| launches.iter().map(|launch| launch.kernel.id).collect::<Vec<_>>();
    let ids = [Copy, Tiled, Copy, Copy, Tiled, Tiled, Copy, Tiled];
    assert_eq!(copied(launches_of_right_products(&opened, [31, 9001, 29])), ids);
    if opened.info.caps.stores_f16 {
        assert_eq!(copied(launches_of_right(&opened, [31, 12_001, 29], &FORMS, 0.0, Precision::F16)), ids);
    }
}

/// The same with three workgroups, by a tile for which what is stored with k along its rows is turned, and of which less than half is past the result.
pub(super) fn products_of_turned_copies_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    let limit = |caps: &mut Caps| {
        (caps.max_workgroups_per_dimension, caps.f16) = (3, caps.stores_f16);
        tuned::<1>(caps);
        caps.matrix_unit = None;
    };
    let Some(opened) = open(limit) else { return };
    let turned = |launches: Vec<Dispatch>| launches.iter().map(|launch| launch.kernel.constant("TURNED")).collect::<Vec<_>>();
    let expected = [1, 0, 0, 1, 1, 0, 1, 0];
    assert_eq!(turned(launches_of_right_products(&opened, [64, 9001, 68])), expected);
    if opened.info.caps.stores_f16 {
        assert_eq!(turned(launches_of_right(&opened, [64, 9001, 68], &FORMS, 0.0, Precision::F16)), expected);
    }
}

/// Tiles in f16 start so that all of each lies in the result: two of them overlap, or they leave blocks.
pub(super) fn products_of_tiles_that_overlap_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    // All are of the tile of 64 x 128.
    let limit = |caps: &mut Caps| {
        tuned::<1>(caps);
        (caps.f16, caps.matrix_unit) = (caps.stores_f16, None);
    };
    let Some(opened) = open(limit) else { return };
    if !opened.info.caps.stores_f16 {
        eprintln!("skipped: {} has no f16", opened.info.backend);
        return;
    }
    for sides in [[100, 70, 200], [132, 40, 260]] {
        let launches = launches_of_right(&opened, sides, &FORMS, 0.0, Precision::F16);
        assert!(launches.iter().all(|launch| launch.kernel.constant("INSIDE") == 1), "{sides:?}");
    }
    // Parts are stored by fours, whatever is fetched.
    let parts = launches_of_right(&opened, [100, 3000, 233], &FORMS[..1], 0.0, Precision::F16);
    assert!(parts.iter().any(|launch| launch.kernel.constant("PARTS") == 1 && launch.kernel.constant("INSIDE") == 0));
}

fn seen_by(input: u32, taps: u32, stride: u32, dilation: u32, [before, after]: [u32; 2]) -> Window {
    let extent = (taps - 1) * dilation + 1;
    Window { input, taps, stride, dilation, before, after, steps: (before + input + after - extent) / stride + 1 }
}

/// The plan of a convolution of two images of three channels a group, whose result is that of plain code.
fn plan_of_right_convolution(opened: &Opened, windows: [Window; 2], groups: u32, filters: u32, dtype: DType) -> Plan {
    let scalar = pollster::block_on(Device::open(BackendId::Scalar, &Options::default())).unwrap();
    let conv = Conv { batch: 2, groups, channels: 3, filters, windows, dtype, bias: true, activation: None };
    let images = u64::from(conv.batch * groups * conv.channels) * conv.pixels();
    let weights = u64::from(groups * conv.filters) * conv.terms();
    let op = Op::Conv(conv);
    let values = |count: u64| (0..count).map(|i| (i * 7 % 11) as f32 - 5.0).collect::<Vec<_>>();
    let inputs = [values(images), values(weights), values((groups * conv.filters).into())];
    let [got, expected] = [&opened.device, &scalar.device].map(|device| {
        let [images, weights, bias] = &inputs;
        let upload = |values: &Vec<f32>| match dtype {
            DType::F16 => device.upload(&(&values.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>()).into()),
            _ => device.upload(&values.into()),
        };
        let buffers = [upload(images), upload(weights), device.upload(&bias.into())].map(Result::unwrap);
        let plan = device.plan(&op).unwrap();
        let out = device.allocate(&plan, &op).unwrap();
        let bound = buffers.each_ref().map(|buffer| Some(Bound::Buffer(buffer)));
        let running = device.submit(&plan, &bound, &out, How { repeats: 1, timed: false, download: op.extent() }).unwrap();
        pollster::block_on(device.finish(running)).unwrap().data.unwrap().into_vec()
    });
    assert!(got == expected, "{windows:?}: {:?}", got.iter().zip(&expected).position(|(got, expected)| got != expected));
    opened.device.plan(&op).unwrap()
}

/// With three workgroups a convolution's positions are computed in pieces: rows of them, and parts of a row that is longer.
pub(super) fn convolutions_in_many_pieces_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    let Some(opened) = open(|caps| caps.max_workgroups_per_dimension = 3) else { return };
    for (windows, groups) in [
        ([seen_by(23, 3, 1, 1, [1, 1]), seen_by(21, 3, 2, 1, [2, 0])], 2),
        ([Window::ONE, seen_by(301, 5, 1, 3, [4, 7])], 1),
        ([seen_by(5, 2, 2, 1, [0, 1]), seen_by(150, 4, 1, 2, [3, 3])], 1),
        // Each element is a window of its own.
        ([seen_by(17, 1, 1, 1, [0, 0]), seen_by(19, 1, 1, 1, [0, 0])], 2),
        ([Window::ONE, seen_by(250, 1, 1, 1, [0, 0])], 1),
    ] {
        let plan = plan_of_right_convolution(&opened, windows, groups, 17, DType::F32);
        assert!(plan.dispatches.len() > 1, "{plan}");
        assert!(plan.dispatches.iter().all(|launch| launch.grid.iter().all(|&groups| groups <= 3)), "{plan}");
    }
}

/// With bindings of 8192 bytes results of one image are computed some filters at a time, and of one filter some positions.
pub(super) fn convolutions_past_a_binding_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    const MOST_BYTES: u64 = 8192;
    let Some(opened) = open(|caps| caps.max_binding_bytes = MOST_BYTES) else { return };
    for (windows, groups, filters) in [
        ([seen_by(23, 3, 1, 1, [1, 1]), seen_by(21, 3, 2, 1, [2, 0])], 2, 17),
        ([Window::ONE, seen_by(301, 5, 1, 3, [4, 7])], 1, 35),
        ([Window::ONE, seen_by(250, 1, 1, 1, [0, 0])], 1, 34),
        // As few filters as are computed directly; and positions of one that are more than fit.
        ([Window::ONE, seen_by(301, 5, 1, 3, [500, 500])], 1, 5),
        ([seen_by(7, 2, 1, 1, [40, 40]), seen_by(31, 3, 1, 1, [10, 10])], 1, 18),
        ([Window::ONE, seen_by(301, 5, 1, 3, [2000, 2000])], 2, 2),
    ] {
        for dtype in [DType::F32, DType::F16] {
            let plan = plan_of_right_convolution(&opened, windows, groups, filters, dtype);
            assert!(plan.dispatches.len() as u32 > 2 * groups, "{plan}");
            assert!(plan.dispatches.iter().flat_map(|launch| &launch.bindings).all(|binding| binding.size_bytes <= MOST_BYTES), "{plan}");
        }
    }
}

/// The plan of an operation of a single operand, none of whose bindings has more bytes than that, and the result.
fn in_pieces(opened: &Opened, op: &Op, a: &Buffer, most_bytes: u64) -> (Plan, HostVec) {
    let plan = opened.device.plan(op).unwrap();
    assert!(plan.dispatches.iter().flat_map(|launch| &launch.bindings).all(|binding| binding.size_bytes <= most_bytes), "{plan}");
    let out = opened.device.allocate(&plan, op).unwrap();
    let how = How { repeats: 1, timed: false, download: op.extent() };
    let running = opened.device.submit(&plan, &[Some(Bound::Buffer(a))], &out, how).unwrap();
    let data = pollster::block_on(opened.device.finish(running)).unwrap().data.unwrap();
    (plan, data)
}

/// With bindings of 16 KiB rows too long for one are put into proportion in pieces.
pub(super) fn rows_past_a_binding_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    const MOST_BYTES: u64 = 16_384;
    let Some(opened) = open(|caps| caps.max_binding_bytes = MOST_BYTES) else { return };
    let steps = vec![Step::Input(0), Step::Index, Step::Cast(1, Kind::F32), Step::Apply(Function::Add, [0, 2])];
    let program = Arc::new(Program { inputs: vec![Kind::F32], steps });
    for (form, rows, count, is_in_columns) in [
        (Form::LayerNorm, 3, 20_000, false),
        (Form::RmsNorm, 3, 20_001, false),
        (Form::LayerNorm, 3, 5000, true),
        (Form::RmsNorm, 16, 2500, true),
        (Form::LayerNorm, 200, 101, false),
    ] {
        let strides = if is_in_columns { vec![1, i64::from(rows)] } else { vec![i64::from(count), 1] };
        let view = View { dtype: DType::F32, offset: 0, strides: strides.clone(), bounds: Vec::new() };
        let (shape, inputs, program) = (vec![rows, count], vec![view.clone()], Arc::clone(&program));
        let values = map::Problem { shape, inputs, program, scalars: Vec::new(), dtype: DType::F32 };
        let op = Op::Normalize(normalize::Problem { values, kept: 1, form, epsilon: 0.0, beside: Vec::new(), out: view });
        let host: Vec<f32> = (0..rows * count).map(|i| (i * 7 % 2047) as f32).collect();
        let a = opened.device.upload(&(&host).into()).unwrap();
        let (plan, data) = in_pieces(&opened, &op, &a, MOST_BYTES);
        assert!(plan.dispatches.len() > 8, "{plan}");
        let got: Vec<f32> = data.into_vec();
        for row in 0..u64::from(rows) {
            let place = |i: u64| (row as i64 * strides[0] + i as i64 * strides[1]) as usize;
            let number = |i: u64| f64::from(host[place(i)]) + (row * u64::from(count) + i) as f64;
            let mean_of = |what: &dyn Fn(f64) -> f64| (0..count.into()).map(|i| what(number(i))).sum::<f64>() / f64::from(count);
            let mean = if form == Form::LayerNorm { mean_of(&|x| x) } else { 0.0 };
            let root = mean_of(&|x| (x - mean).powi(2)).sqrt();
            for i in 0..count.into() {
                let (got, expected) = (f64::from(got[place(i)]), (number(i) - mean) / root);
                assert!((got - expected).abs() < 1e-5, "{form:?} of {rows} x {count} at {row}, {i}: {got}, not {expected}: {plan}");
            }
        }
    }
}

/// With bindings of 8192 bytes what reads an input in another order than it writes is computed in boxes of the result.
pub(super) fn transpositions_past_a_binding_are_right(open: impl FnOnce(fn(&mut Caps)) -> Option<Opened>) {
    const MOST_BYTES: u64 = 8192;
    let Some(opened) = open(|caps| caps.max_binding_bytes = MOST_BYTES) else { return };
    let (input, number) = (Step::Input(0), Step::Cast(1, Kind::F32));
    let numbered = vec![input, Step::Index, number, Step::Apply(Function::Add, [0, 2])];
    for (shape, strides, dtype) in [
        (vec![100, 150], vec![1, 100], DType::F32),
        (vec![100, 152], vec![1, 100], DType::F16),
        (vec![3000, 4], vec![1, 3000], DType::F32),
        (vec![3, 5001], vec![1, 3], DType::F32),
        (vec![5001, 3], vec![1, 5001], DType::F32),
        (vec![23, 5, 67], vec![5, 1, 115], DType::Bool),
        // Rows stay, in another order; and one row for all of a row too long for a binding.
        (vec![40, 50, 12], vec![12, 480, 1], DType::F32),
        (vec![50, 41, 7], vec![7, 350, 1], DType::F32),
        (vec![3, 5001], vec![0, 1], DType::F32),
    ] {
        let count = shape.iter().product::<u32>() as usize;
        let host: Vec<f32> = (0..count).map(|i| if dtype == DType::Bool { (i % 3 / 2) as f32 } else { (i * 7 % 2047) as f32 }).collect();
        let a = match dtype {
            DType::F16 => opened.device.upload(&(&host.iter().map(|&value| f16::from_f32(value)).collect::<Vec<_>>()).into()),
            DType::Bool => opened.device.upload(&(&host.iter().map(|&value| value != 0.0).collect::<Vec<_>>()).into()),
            _ => opened.device.upload(&(&host).into()),
        };
        let a = a.unwrap();
        let is_numbered = dtype == DType::F32;
        let program = Program { inputs: vec![dtype.into()], steps: if is_numbered { numbered.clone() } else { vec![input] } };
        let view = View { dtype, offset: 0, strides: strides.clone(), bounds: Vec::new() };
        let (inputs, program) = (vec![view], Arc::new(program));
        let op = Op::Map(map::Problem { shape: shape.clone(), inputs, program, scalars: Vec::new(), dtype });
        let (plan, data) = in_pieces(&opened, &op, &a, MOST_BYTES);
        assert!(plan.dispatches.len() > 4, "{plan}");
        let got: Vec<f32> = match dtype {
            DType::Bool => data.into_typed::<bool>().unwrap().into_iter().map(|value| f32::from(u8::from(value))).collect(),
            _ => data.into_vec(),
        };
        for (at, &got) in got.iter().enumerate() {
            let (mut rest, mut from) = (at, 0);
            for (&size, &stride) in shape.iter().zip(&strides).rev() {
                from += rest % size as usize * stride as usize;
                rest /= size as usize;
            }
            assert_eq!(got, host[from] + if is_numbered { at as f32 } else { 0.0 }, "{shape:?} {strides:?} of {dtype} at {at}: {plan}");
        }
    }
}

/// Tiles whose invocations take one of so many terms each, of results that they do not cover evenly, in f16 too, and beside blocks.
pub(super) fn products_of_slices_are_right(open: impl Fn(fn(&mut Caps)) -> Option<Opened>) {
    const FIRST: u8 = 5;
    const IN_F16: u8 = FIRST + 1;
    const BESIDE_BLOCKS: u8 = FIRST + 4;
    let limits: [fn(&mut Caps); 5] =
        [tuned::<FIRST>, tuned::<{ FIRST + 1 }>, tuned::<{ FIRST + 2 }>, tuned::<{ FIRST + 3 }>, tuned::<BESIDE_BLOCKS>];
    let all = |launches: &[Dispatch], name: &str| {
        let mut tiled = launches.iter().filter(|launch| launch.kernel.id == KernelId::MatmulTiled).peekable();
        tiled.peek().is_some() && tiled.all(|launch| launch.kernel.constant(name) == 1)
    };
    for limit in limits {
        let Some(opened) = open(limit) else { return };
        let launches = launches_of_right(&opened, [66, 103, 131], &[FORMS[0], FORMS[3]], 2.0, Precision::F32);
        assert!(all(&launches, "SLICED"));
    }
    let Some(opened) = open(tuned::<BESIDE_BLOCKS>) else { return };
    let launches = launches_of_right(&opened, [513, 520, 514], &FORMS[..1], 0.0, Precision::F32);
    assert!(all(&launches, "SLICED") && all(&launches, "EDGES"));
    let limit = |caps: &mut Caps| {
        tuned::<IN_F16>(caps);
        (caps.f16, caps.matrix_unit) = (caps.stores_f16, None);
    };
    let Some(opened) = open(limit) else { return };
    if !opened.info.caps.stores_f16 {
        eprintln!("skipped: {} has no f16", opened.info.backend);
        return;
    }
    for sides in [[66, 103, 131], [100, 70, 200]] {
        let launches = launches_of_right(&opened, sides, &FORMS, 0.0, Precision::F16);
        assert!(all(&launches, "SLICED") && all(&launches, "HALF"), "{sides:?}");
    }
}

/// That tile for all results.
fn tuned<const TILE: u8>(caps: &mut Caps) {
    caps.tuned = (0..Tuned::CLASSES).fold(Tuned::NONE, |tuned, class| tuned.with(class, Some(TILE)));
}
