//! What the stand-in's kernels are told of a product, and what they do with a sum.

use std::ops::Range;

/// As the kernel has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Params {
    pub m: u32,
    pub k: u32,
    pub n: u32,
    pub lda: u32,
    pub ldb: u32,
    pub ldc: u32,
    pub ldo: u32,
    pub starts: [u32; 4],
    pub alpha: f32,
    pub beta: f32,
    pub k_part: u32,
    pub batch: u32,
    pub inner: u32,
    pub outer_steps: [u32; 3],
    pub inner_steps: [u32; 3],
    pub bias_start: u32,
    pub activation: u32,
    pub result: u32,
    pub bias_inner: u32,
    pub x_element: u32,
    pub x_vector: u32,
    pub out_width: u32,
    pub lanes: u32,
    pub tall: u32,
}

/// Where an element of a matrix is.
pub fn at(base: u64, row: u32, column: u32, stride: u32) -> *mut f32 {
    (base as *mut f32).wrapping_add(row as usize * stride as usize + column as usize)
}

fn activate(activation: u32, x: f32) -> f32 {
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    match activation {
        0 => x,
        1 if x < 0.0 => 0.0,
        1 => x,
        2 => x * sigmoid(2.0 * (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)),
        3 => sigmoid(x),
        4 => x.tanh(),
        _ => x * sigmoid(x),
    }
}

impl Params {
    /// Where operand `which` of an item starts, its address being that of the first launch's first.
    pub fn start(&self, address: u64, which: usize, item: u32) -> u64 {
        let steps = [(item / self.inner, self.outer_steps[which]), (item % self.inner, self.inner_steps[which])];
        let elements = steps.iter().map(|&(count, step)| u64::from(count) * u64::from(step)).sum::<u64>() + u64::from(self.starts[which]);
        if address == 0 { 0 } else { address + 4 * elements }
    }

    /// The same where two elements of f16 in A and B are one of f32.
    pub fn of_pairs(self) -> Self {
        let halved = |[a, b, c]: [u32; 3]| [a / 2, b / 2, c];
        Self {
            k: self.k / 2,
            k_part: self.k_part / 2,
            lda: self.lda / 2,
            ldb: self.ldb / 2,
            outer_steps: halved(self.outer_steps),
            inner_steps: halved(self.inner_steps),
            ..self
        }
    }

    /// The terms of a layer's sums.
    pub fn terms(&self, layer: u32) -> Range<u32> {
        let from = layer / self.batch * self.k_part;
        from..if self.k_part == 0 { self.k } else { self.k.min(from + self.k_part) }
    }

    /// Puts an element into the `layer`th of the matrices in out.
    pub unsafe fn store(&self, [c, bias, out]: [u64; 3], layer: u32, [i, j]: [u32; 2], sum: f32) {
        let (c, out) = (self.start(c, 2, layer % self.batch), out + 4 * u64::from(self.starts[3]));
        let added = if c == 0 { 0.0 } else { self.beta * unsafe { *at(c, i, j, self.ldc) } };
        let biased = if bias == 0 { 0.0 } else { unsafe { *at(bias, 0, self.bias_start + j, 0) } };
        unsafe { *at(out, layer * self.m + i, j, self.ldo) = activate(self.activation, self.alpha * sum + added + biased) };
    }
}
