//! Expressions on GPUs against the CPU's twin: every function for every type that it takes, and every way in which inputs are read.
#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod devices;

use devices::open;
use lapidary::{BackendId, DType, Expr, Gpu, HostSlice, Options, Padding, random};

/// How far results may be apart: not at all, or as GPUs approximate functions, or as WGSL lets them approximate arcsin, arccos and tan.
#[derive(Clone, Copy, PartialEq)]
enum Alike {
    Exactly,
    Nearly,
    Roughly,
}

/// The handles of a GPU backend that there are: on CUDA one that compiles its kernels, and one that interprets.
fn handles(backend: BackendId) -> Vec<(String, Gpu)> {
    let mut handles = Vec::new();
    for vendor_libraries in [true, false] {
        if vendor_libraries || backend == BackendId::Cuda {
            let name = format!("{backend}{}", if vendor_libraries { "" } else { ", interpreted" });
            handles.extend(open(Options { vendor_libraries, ..Options::only(backend) }).map(|gpu| (name, gpu)));
        }
    }
    handles
}

fn tensor<'a>(gpu: &Gpu, values: impl Into<HostSlice<'a>>, shape: &[u64]) -> Expr {
    let values = values.into();
    let columns = values.len() / shape[0].max(1);
    Expr::from(gpu.tensor_blocking(values, shape[0], columns).unwrap().reshape(shape).unwrap())
}

/// The value's words, and what they are of; f16 as f32, in which every f16 is.
fn words(gpu: &Gpu, expr: &Expr) -> (DType, Vec<u32>) {
    let mut value = gpu.evaluate_blocking(expr).unwrap();
    if value.dtype() == DType::F16 {
        value = gpu.evaluate_blocking(&Expr::from(value).cast(DType::F32)).unwrap();
    }
    let dtype = value.dtype();
    let host = value.to_host_blocking().unwrap();
    let words = match dtype {
        DType::I32 => host.into_typed::<i32>().unwrap().into_iter().map(i32::cast_unsigned).collect(),
        DType::U32 => host.into_typed::<u32>().unwrap(),
        DType::Bool => host.into_typed::<bool>().unwrap().into_iter().map(u32::from).collect(),
        _ => host.into_typed::<f32>().unwrap().into_iter().map(f32::to_bits).collect(),
    };
    (expr.dtype().unwrap(), words)
}

fn is_alike(dtype: DType, alike: Alike, [a, b]: [u32; 2]) -> bool {
    let [x, y] = [a, b].map(f32::from_bits);
    let [wide_x, wide_y] = [x, y].map(f64::from);
    if a == b || !dtype.is_float() {
        return a == b;
    }
    let bound = match alike {
        Alike::Exactly => bounds::EXACT,
        Alike::Nearly | Alike::Roughly => bounds::function(dtype, alike == Alike::Roughly),
    };
    (x.is_nan() && y.is_nan()) || bound.holds(wide_x, wide_y)
}

/// Compares what a list of expressions gives on each handle with what it gives on the CPU.
fn compare(backend: BackendId, cases: impl Fn(&Gpu) -> Vec<(String, Alike, Expr)>) {
    let cpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let expected: Vec<_> = cases(&cpu).into_iter().map(|(_, _, expr)| words(&cpu, &expr).1).collect();
    for (handle, gpu) in handles(backend) {
        let mut wrong = Vec::new();
        for ((name, alike, expr), expected) in cases(&gpu).into_iter().zip(&expected) {
            let (dtype, got) = words(&gpu, &expr);
            assert_eq!(got.len(), expected.len(), "{handle}: {name}");
            let differ = |at: &usize| !is_alike(dtype, alike, [got[*at], expected[*at]]);
            if let Some(at) = (0..got.len()).find(differ) {
                let [x, y] = [got[at], expected[at]].map(f32::from_bits);
                let count = (0..got.len()).filter(differ).count();
                wrong.push(format!("{name} of {dtype} at {at}: {:#x} in place of {:#x} ({x} {y}), {count} so", got[at], expected[at]));
            }
        }
        assert!(wrong.is_empty(), "{handle}:\n{}", wrong.join("\n"));
        assert_eq!(gpu.memory().unwrap().used_bytes, 0, "{handle}");
    }
}

/// Values of a type, of which there are `count`; some are those at which functions are special, unless `is_tame`.
fn values(gpu: &Gpu, dtype: DType, seed: u64, count: usize, is_tame: bool) -> Expr {
    let shape = [count as u64];
    let noise = random::matrix(count, seed);
    if dtype.is_float() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            2.5,
            -2.5,
            3.0,
            -3.0,
            1e-8,
            1e8,
            1e30,
            -1e30,
            1e-40,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
        ];
        let steps = [1, special.len() + 2];
        let value = |i: usize| match special.get(i / steps[(seed % 2) as usize] % (special.len() + 2)) {
            Some(&special) if !is_tame && i < 20 * 20 => special,
            _ => noise[i] * if i.is_multiple_of(2) { 1.0 } else { 10.0 },
        };
        return tensor(gpu, &(0..count).map(value).collect::<Vec<_>>(), &shape).cast(dtype);
    }
    let special = [0, 1, -1, 2, -2, 7, -7, 31, 32, 33, i32::MAX, i32::MIN];
    let value = |i: usize| match special.get(i / [1, special.len()][(seed % 2) as usize] % (special.len() + 2)) {
        Some(&special) if i < 14 * 14 => special,
        _ => (noise[i] * 100.0) as i32,
    };
    let values: Vec<_> = (0..count).map(value).collect();
    match dtype {
        DType::I32 => tensor(gpu, &values, &shape),
        DType::U32 => tensor(gpu, &values.into_iter().map(i32::cast_unsigned).collect::<Vec<_>>(), &shape),
        _ => tensor(gpu, &values.into_iter().map(|value| value % 2 == 0).collect::<Vec<_>>(), &shape),
    }
}

type Unary = fn(&Expr) -> Expr;
type Binary = fn(&Expr, &Expr) -> Expr;

macro_rules! named {
    (binary $($name:ident)+) => { [$((stringify!($name), (|a, b| a.$name(b)) as Binary)),+] };
    ($($name:ident)+) => { [$((stringify!($name), Expr::$name as Unary)),+] };
}

/// Every function; one that does not take the type is left out.
fn functions(gpu: &Gpu, is_tame: bool) -> Vec<(String, Alike, Expr)> {
    use Alike::{Exactly, Nearly};
    let mut cases: Vec<(String, Alike, Expr)> = Vec::new();
    for &dtype in DType::COMPUTED {
        let first = cases.len();
        let [a, b] = [1, 2].map(|seed| Expr::from(gpu.evaluate_blocking(&values(gpu, dtype, seed, 1003, is_tame)).unwrap()));
        let exact = named!(negative abs sign square relu floor ceil round trunc round_to_f16 is_nan is_inf not);
        let near = named!(reciprocal sqrt exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid softplus erf gelu gelu_tanh silu);
        for (alike, (name, function)) in exact.into_iter().map(|f| (Exactly, f)).chain(near.into_iter().map(|f| (Nearly, f))) {
            let alike = if is_tame && ["asin", "acos", "tan"].contains(&name) { Alike::Roughly } else { alike };
            cases.push((name.to_owned(), alike, function(&a)));
        }
        let exact =
            named!(binary add sub mul min max equal not_equal less less_equal greater greater_equal and or xor shift_left shift_right);
        let near = named!(binary div rem modulo pow);
        for (alike, (name, function)) in exact.into_iter().map(|f| (Exactly, f)).chain(near.into_iter().map(|f| (Nearly, f))) {
            // A remainder of a division by what is many times smaller is as good as the quotient.
            let b = if is_tame && dtype.is_float() && ["rem", "modulo"].contains(&name) { b.abs().add(2.0) } else { b.clone() };
            cases.push((name.to_owned(), alike, function(&a, &b)));
        }
        for &to in DType::COMPUTED {
            cases.push((format!("cast to {to}"), Exactly, a.cast(to)));
        }
        cases.retain(|(_, _, expr)| expr.dtype().is_ok());
        let taken = match dtype {
            DType::F32 | DType::F16 => 54,
            DType::Bool => 11,
            _ => 29,
        };
        assert_eq!(cases.len() - first, taken, "functions of {dtype}");
    }
    cases
}

/// Views of tensors, and chains.
fn views(gpu: &Gpu) -> Vec<(String, Alike, Expr)> {
    let mut cases = Vec::new();
    for &dtype in DType::COMPUTED {
        for shape in [[5, 7, 3, 4], [4, 8, 2, 16], [1, 1, 1, 1], [2, 1, 9, 33], [0, 3, 2, 4]] {
            let flat = values(gpu, dtype, 1, shape.iter().product::<u64>() as usize, true);
            let a = Expr::from(gpu.evaluate_blocking(&flat.reshape(&shape.map(|size| size as i64))).unwrap());
            let mut add = |name: &str, expr: Expr| cases.push((format!("{name} {shape:?}"), Alike::Exactly, expr));
            add("flip", a.flip(None));
            add("flip last", a.flip(Some(&[-1])));
            add("transpose", a.transpose(None));
            add("permute", a.transpose(Some(&[2, 0, 3, 1])));
            add("slice", a.slice(1, 1, 100, 2).slice(3, -1, -100, -3));
            add("slice flat", a.reshape(&[-1]).slice(0, 1, i64::MAX, 3));
            add("slice off", a.reshape(&[-1]).slice(0, 3, i64::MAX, 1));
            add("pad", a.pad(&[[1, 0], [0, 2], [3, 1], [2, 2]], Padding::Constant(1.0)));
            add("concat", Expr::concat(&[a.clone(), a.flip(None), a.slice(2, 0, 1, 1)], 2));
            add("broadcast", a.slice(1, 0, 1, 1).broadcast_to(&[3, shape[0], 6, shape[2], shape[3]]));
            if !shape.contains(&0) {
                add("first", a.reshape(&[-1]).slice(0, 0, 1, 1).broadcast_to(&[1001]));
            }
            add("reshape", a.transpose(None).reshape(&[-1]));
            add("padded chain", a.transpose(Some(&[3, 1, 2, 0])).pad(&[[1, 1]; 4], Padding::Constant(0.0)).equal(0.0).select(1.0, 2.0));
            add("index", Expr::index(&shape).mul(3.0).slice(3, 1, 100, 1).modulo(7.0));
        }
    }
    cases
}

/// Sizes round those at which launches change.
fn sizes(gpu: &Gpu) -> Vec<(String, Alike, Expr)> {
    let mut cases = Vec::new();
    for size in [1, 2, 3, 4, 5, 1023, 1024, 1025, 4095, 4096, 4097, 16383, 16385, 100_003, 1 << 20] {
        let [a, b] = [1, 2].map(|seed| tensor(gpu, &random::matrix(size, seed), &[size as u64]));
        cases.push((format!("add {size}"), Alike::Exactly, a.add(&b)));
        cases.push((format!("relu {size}"), Alike::Exactly, a.relu()));
        cases.push((format!("half {size}"), Alike::Exactly, a.cast(DType::F16)));
        cases.push((format!("chain {size}"), Alike::Nearly, a.mul(2.0).add(&b).gelu_tanh().sub(&a).exp().tanh().mul(&b)));
        cases.push((format!("bias {size}"), Alike::Exactly, a.add(b.slice(0, 0, 1, 1))));
    }
    // Steps that keep many values, and more than are worth several fours a thread.
    let inputs: Vec<_> = (0..6).map(|seed| tensor(gpu, &random::matrix(3001, seed), &[3001])).collect();
    let many: Vec<_> = (0..40).map(|i| inputs[i % 6].mul(&inputs[(i * 5 + i / 6) % 6]).add(f64::from(i as u32 % 3))).collect();
    cases.push(("many values".to_owned(), Alike::Nearly, many[1..].iter().rev().fold(many[0].clone(), |sum, value| sum.add(value))));
    cases
}

/// Transpositions of f16, whose words are of two elements: sizes and places that are odd and even, tiles that are full and those that are not.
fn halves(gpu: &Gpu) -> Vec<(String, Alike, Expr)> {
    let mut cases = Vec::new();
    let mut add = |name: String, expr: Expr| cases.push((name, Alike::Exactly, expr));
    // All of them are numbers of f16.
    let numbers = |shape: &[u64]| Expr::from(gpu.evaluate_blocking(&Expr::index(shape).modulo(2039).cast(DType::F16)).unwrap());
    let shapes: [&[u64]; 22] = [
        &[1200, 2],
        &[2, 1201],
        &[1201, 3],
        &[3, 1200],
        &[3, 1201],
        &[513, 10],
        &[512, 10],
        &[10, 769],
        &[10, 768],
        &[15, 1023],
        &[1023, 15],
        &[16, 17],
        &[62, 63],
        &[63, 62],
        &[65, 125],
        &[125, 127],
        &[64, 190],
        &[187, 249],
        &[3, 61, 67],
        &[2, 600, 5],
        &[3, 5, 601],
        &[2, 3, 33, 35],
    ];
    for shape in shapes {
        let a = numbers(shape);
        let rank = shape.len() as i64;
        let mut last = (0..rank).collect::<Vec<_>>();
        last.swap(shape.len() - 1, shape.len() - 2);
        let turned = |a: &Expr| a.transpose(Some(&last));
        add(format!("transpose {shape:?}"), a.transpose(None));
        add(format!("transpose last {shape:?}"), turned(&a));
        add(format!("transpose and more {shape:?}"), turned(&a).mul(0.5).add(1.0).relu());
        add(format!("transpose sum {shape:?}"), turned(&a).add(turned(&a.flip(None))));
        add(format!("transpose index {shape:?}"), turned(&a).cast(DType::F32).add(1.0).cast(DType::F16));
        // From other places on, and with gaps.
        let part = a.slice(rank - 1, 1, i64::MAX, 1);
        add(format!("transpose columns {shape:?}"), turned(&part));
        add(format!("transpose rows {shape:?}"), turned(&a.slice(0, 1, i64::MAX, 1)));
        add(format!("transpose flipped {shape:?}"), turned(&a.flip(None)));
    }
    cases
}

#[test]
fn halves_on_cuda() {
    compare(BackendId::Cuda, halves);
}

#[test]
fn halves_on_vulkan() {
    compare(BackendId::Vulkan, halves);
}

#[test]
fn halves_on_webgpu() {
    compare(BackendId::WebGpu, halves);
}

#[test]
fn functions_on_cuda() {
    compare(BackendId::Cuda, |gpu| functions(gpu, false));
}

/// Without the values that WGSL leaves to the device.
#[test]
fn functions_on_vulkan() {
    compare(BackendId::Vulkan, |gpu| functions(gpu, true));
}

#[test]
fn functions_on_webgpu() {
    compare(BackendId::WebGpu, |gpu| functions(gpu, true));
}

#[test]
fn views_on_cuda() {
    compare(BackendId::Cuda, views);
}

#[test]
fn views_on_vulkan() {
    compare(BackendId::Vulkan, views);
}

#[test]
fn views_on_webgpu() {
    compare(BackendId::WebGpu, views);
}

#[test]
fn sizes_on_cuda() {
    compare(BackendId::Cuda, sizes);
}

#[test]
fn sizes_on_vulkan() {
    compare(BackendId::Vulkan, sizes);
}

#[test]
fn sizes_on_webgpu() {
    compare(BackendId::WebGpu, sizes);
}
