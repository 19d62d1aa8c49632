//! Problems of operations, and the kernels in WGSL that they come to: what tests of plans and of shaders share.

use lapidary::ops::elementwise::{Kind, Program, Step};
use lapidary::ops::map::{self, View};
use lapidary::ops::matmul::Activation;
use lapidary::ops::normalize::{self, Form};
use lapidary::ops::reduce::{self, Fold};
use lapidary::ops::window::Window;
use lapidary::ops::{conv, fft, pool};
use lapidary::plan::Plan;
use lapidary::plan::tuned::Tuned;
use lapidary::{Caps, DType, Result, plan};

/// What every WebGPU implementation has.
pub const DEFAULTS: Caps = Caps {
    max_buffer_bytes: 256 << 20,
    max_binding_bytes: 128 << 20,
    binding_alignment_bytes: 256,
    max_workgroups_per_dimension: 65_535,
    max_workgroup_invocations: 256,
    max_workgroup_bytes: 16_384,
    max_cluster_workgroups: 1,
    max_texture_size: 4096,
    tuned: Tuned::NONE,
    f16: false,
    stores_f16: false,
    packed_dot: true,
    matrix_unit: None,
    keeps: [false; 2],
};

/// What a large GPU has.
pub const LARGE: Caps = Caps {
    max_buffer_bytes: 4 << 30,
    max_binding_bytes: 2 << 30,
    max_workgroup_bytes: 49_152,
    max_workgroup_invocations: 1024,
    ..DEFAULTS
};

/// Values of a tensor that lies there row by row, read along its dimensions in that order.
pub fn values(shape: &[u32], strides: &[i64]) -> map::Problem {
    let program = Program { inputs: vec![Kind::F32], steps: vec![Step::Input(0)] };
    let view = View { dtype: DType::F32, offset: 0, strides: strides.to_vec(), bounds: Vec::new() };
    map::Problem { shape: shape.to_vec(), inputs: vec![view], program: program.into(), scalars: Vec::new(), dtype: DType::F32 }
}

/// The same of f16.
pub fn halves(shape: &[u32], strides: &[i64]) -> map::Problem {
    let mut problem = values(shape, strides);
    (problem.inputs[0].dtype, problem.dtype) = (DType::F16, DType::F16);
    problem
}

pub fn reduce(fold: Fold, kept: usize, values: map::Problem) -> reduce::Problem {
    reduce::Problem { values, kept, fold, divisor: 4096.0 }
}

/// So many columns beside one another, of so many elements.
pub fn columns(form: Form, count: u32, beside: u32) -> normalize::Problem {
    let strides = [1, i64::from(beside)];
    let out = View { dtype: DType::F32, offset: 0, strides: strides.to_vec(), bounds: Vec::new() };
    normalize::Problem { values: values(&[beside, count], &strides), out, ..rows(form, count) }
}

/// Rows of so many elements.
pub fn rows(form: Form, count: u32) -> normalize::Problem {
    let stride = i64::from(count);
    let out = View { dtype: DType::F32, offset: 0, strides: vec![stride, 1], bounds: Vec::new() };
    normalize::Problem { values: values(&[4096, count], &[stride, 1]), kept: 1, form, epsilon: 1e-5, beside: Vec::new(), out }
}

pub fn window(input: u32, taps: u32, stride: u32, pad: u32) -> Window {
    let steps = (input + 2 * pad - taps) / stride + 1;
    Window { input, taps, stride, dilation: 1, before: pad, after: pad, steps }
}

pub fn convolution([batch, groups, channels, filters]: [u32; 4], window: Window, dtype: DType) -> conv::Problem {
    conv::Problem { batch, groups, channels, filters, windows: [window; 2], dtype, bias: true, activation: Some(Activation::Relu) }
}

pub fn pooling() -> pool::Problem {
    let windows = [Window::ONE, window(112, 3, 2, 1), window(112, 3, 2, 1)];
    pool::Problem { kind: pool::Kind::Max, planes: 64, windows, dtype: DType::F32 }
}

pub fn transform(outer: u32, length: u32, inner: u32) -> fft::Problem {
    let (reads, gives) = (fft::Form::Complex, fft::Form::Complex);
    fft::Problem { outer, length, inner, input: length, inverse: false, reads, gives }
}

/// Plans by WGSL, and their names.
pub fn plans() -> Vec<(&'static str, Result<Plan>)> {
    let all = || values(&[1 << 26], &[1]);
    let conv = |sizes, window, dtype| plan::conv::compute(&convolution(sizes, window, dtype), &LARGE);
    let fft = |outer, length, inner| plan::fft::compute(&transform(outer, length, inner), &LARGE);
    vec![
        ("reduce-all", plan::reduce::compute(&reduce(Fold::Sum, 0, all()), &LARGE)),
        ("reduce-past-the-binding-limit", plan::reduce::compute(&reduce(Fold::Var, 0, all()), &DEFAULTS)),
        ("reduce-rows", plan::reduce::compute(&reduce(Fold::Mean, 1, values(&[4096, 4096], &[4096, 1])), &LARGE)),
        ("reduce-short-rows", plan::reduce::compute(&reduce(Fold::Max, 1, values(&[1 << 20, 33], &[33, 1])), &DEFAULTS)),
        ("reduce-columns", plan::reduce::compute(&reduce(Fold::ArgMax, 1, values(&[300, 70_000], &[1, 300])), &LARGE)),
        ("transposed", plan::map::compute(&values(&[8, 3136, 64], &[3136 * 64, 1, 3136]), &LARGE)),
        ("transposed-narrow", plan::map::compute(&values(&[8, 3, 3136], &[3136 * 3, 1, 3]), &LARGE)),
        ("transposed-pairs", plan::map::compute(&halves(&[3001, 1001], &[1, 3001]), &LARGE)),
        ("transposed-pairs-narrow", plan::map::compute(&halves(&[10, 70_001], &[1, 10]), &LARGE)),
        ("transposed-pairs-tall", plan::map::compute(&halves(&[70_001, 10], &[1, 70_001]), &LARGE)),
        ("softmax", plan::normalize::compute(&rows(Form::Softmax, 4096), &LARGE)),
        ("softmax-short", plan::normalize::compute(&rows(Form::Softmax, 10), &LARGE)),
        ("softmax-long", plan::normalize::compute(&rows(Form::Softmax, 100_000), &LARGE)),
        ("softmax-columns", plan::normalize::compute(&columns(Form::Softmax, 2000, 8192), &LARGE)),
        ("softmax-few-columns", plan::normalize::compute(&columns(Form::Softmax, 2000, 8), &LARGE)),
        ("layer-norm-short", plan::normalize::compute(&rows(Form::LayerNorm, 33), &LARGE)),
        ("layer-norm-odd", plan::normalize::compute(&rows(Form::LayerNorm, 1001), &DEFAULTS)),
        ("conv", conv([8, 1, 64, 64], window(56, 3, 1, 1), DType::F32)),
        ("conv-plain", conv([8, 1, 64, 256], window(56, 1, 1, 0), DType::F32)),
        ("conv-depthwise", conv([8, 96, 1, 1], window(56, 3, 2, 1), DType::F32)),
        ("conv-f16-odd", conv([1, 2, 32, 32], window(7, 3, 1, 1), DType::F16)),
        ("conv-depthwise-lines", conv([8, 64, 1, 1], window(112, 3, 1, 1), DType::F32)),
        ("conv-few-of-many", conv([1, 1, 256, 3], window(28, 3, 1, 1), DType::F32)),
        ("conv-many-of-one", conv([8, 1, 1, 32], window(512, 3, 1, 1), DType::F32)),
        ("pool", plan::pool::compute(&pooling(), &LARGE)),
        ("fft", fft(1, 1 << 20, 1)),
        ("fft-columns", fft(4, 60, 32)),
        ("fft-prime", fft(2, 101, 1)),
    ]
}
