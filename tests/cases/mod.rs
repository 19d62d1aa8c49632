//! One list of products, computed on every backend that is there and judged in the same way: natively by `conformance.rs`, in the browser by
//! `web.rs`.

mod list;

use std::fmt;

use lapidary::verify::Reference;
use lapidary::{Activation, DType, Gpu, Matmul, Precision, random};

pub use list::*;

/// A product to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    /// The batch shapes of A and B.
    pub batch: [&'static [usize]; 2],
    /// Elements past the end of one matrix of a batch to the next, for A, B and C; None if all share one.
    pub gaps: [Option<usize>; 3],
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub alpha: f32,
    /// Scales C; with 0 there is none.
    pub beta: f32,
    /// Whether something is added to each row.
    pub bias: bool,
    pub activation: Option<Activation>,
    /// Elements past the columns from one stored row to the next, for A, B and C.
    pub padding: [usize; 3],
    /// Elements before the first of A, B and C.
    pub before: [usize; 3],
    pub values: Values,
    /// Of A and B.
    pub dtype: DType,
    /// Of C and of the result.
    pub result: DType,
    pub precision: Precision,
}

/// What the matrices hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
    /// Small whole numbers: there is one right result, to the bit.
    Whole,
    /// Uniform in [-1, 1).
    Uniform,
    /// Rows and columns scaled by powers of two from 2^-30 to 2^30, where tests by norms are blind.
    IllScaled,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, k, n, batch, gaps, transpose_a, transpose_b, alpha, beta, bias, activation, padding, before, values, .. } = self;
        let Self { dtype, result, precision, .. } = self;
        write!(f, "{m}x{k}x{n} {values:?} {dtype} to {result} {} transposed {transpose_a},{transpose_b} ", precision.name())?;
        write!(f, "alpha {alpha} beta {beta} padding {padding:?} before {before:?}")?;
        write!(f, " batch {batch:?} gaps {gaps:?} bias {bias} activation {activation:?}")
    }
}

const PLAIN: Case = Case {
    m: 1,
    k: 1,
    n: 1,
    batch: [&[]; 2],
    gaps: [Some(0); 3],
    transpose_a: false,
    transpose_b: false,
    alpha: 1.0,
    beta: 0.0,
    bias: false,
    activation: None,
    padding: [0; 3],
    before: [0; 3],
    values: Values::Whole,
    dtype: DType::F32,
    result: DType::F32,
    precision: Precision::F32,
};

/// What a test feeds a product, with NaN wherever it has no business.
pub struct Inputs {
    pub a: Vec<f32>,
    pub b: Vec<f32>,
    pub c: Vec<f32>,
    pub bias: Vec<f32>,
    /// C as it is, where it is not of f32.
    #[cfg(not(target_arch = "wasm32"))]
    c_f16: Vec<half::f16>,
}

#[cfg(not(target_arch = "wasm32"))]
fn rounded(values: &[f32]) -> Vec<half::f16> {
    values.iter().map(|&x| half::f16::from_f32(x)).collect()
}

impl Case {
    /// The matrices as stored.
    pub fn inputs(&self) -> Inputs {
        let stored = |which: usize, rows: usize, columns: usize, by_rows: bool| {
            let stride = columns + self.padding[which];
            let (items, step) = (self.items(which), self.step(which, rows * stride));
            let is_empty = rows == 0 || columns == 0 || items == 0;
            let before = self.before[which];
            let mut values = vec![f32::NAN; before + if is_empty { 0 } else { (items - 1) * step + (rows - 1) * stride + columns }];
            for (item, row) in (0..items).flat_map(|item| (0..rows).map(move |row| (item, row))) {
                for column in 0..columns {
                    let x = random::element(1 + which as u64, ((item * rows + row) * columns + column) as u64);
                    values[before + item * step + row * stride + column] = match self.values {
                        Values::Whole => (x * 8.0).floor(),
                        // Of few enough bits to be exact in f16.
                        Values::Uniform if self.dtype != self.result || self.dtype != DType::F32 => (x * 1024.0).round() / 1024.0,
                        Values::Uniform => x,
                        Values::IllScaled => {
                            let line = if by_rows { row } else { column };
                            x * 2.0f32.powi((line * 7 % 61) as i32 - 30)
                        }
                    };
                }
            }
            values
        };
        let ordered = |swap: bool, x: usize, y: usize| if swap { (y, x) } else { (x, y) };
        let (a_rows, a_columns) = ordered(self.transpose_a, self.m, self.k);
        let (b_rows, b_columns) = ordered(self.transpose_b, self.k, self.n);
        let c = if self.beta == 0.0 { Vec::new() } else { stored(2, self.m, self.n, true) };
        Inputs {
            a: stored(0, a_rows, a_columns, !self.transpose_a),
            b: stored(1, b_rows, b_columns, self.transpose_b),
            #[cfg(not(target_arch = "wasm32"))]
            c_f16: rounded(&c),
            c,
            bias: (0..if self.bias { self.n } else { 0 }).map(|i| (random::element(4, i as u64) * 8.0).floor()).collect(),
        }
    }

    /// How much there is to compute.
    #[allow(dead_code, reason = "not every test that has the list asks")]
    pub fn multiplications(&self) -> usize {
        self.shape().iter().product::<usize>() * self.m * self.k * self.n
    }

    /// The batch shape of the result.
    fn shape(&self) -> Vec<usize> {
        let [a, b] = self.batch;
        let rank = a.len().max(b.len());
        let size = |shape: &[usize], i: usize| (i + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
        (0..rank).map(|i| if size(a, i) == 1 { size(b, i) } else { size(a, i) }).collect()
    }

    /// How many matrices A, B or C is.
    fn items(&self, which: usize) -> usize {
        let own = self.batch.get(which).map_or_else(|| self.shape(), |shape| shape.to_vec());
        if self.gaps[which].is_none() { own.iter().product::<usize>().min(1) } else { own.iter().product() }
    }

    /// Elements from one of its matrices to the next.
    fn step(&self, which: usize, elements: usize) -> usize {
        self.gaps[which].map_or(0, |gap| elements + gap)
    }

    /// The product of those inputs.
    pub fn op<'a>(&self, inputs: &'a Inputs) -> Matmul<'a> {
        let (a_columns, b_columns) = (if self.transpose_a { self.m } else { self.k }, if self.transpose_b { self.k } else { self.n });
        let [m, k, n] = [self.m, self.k, self.n].map(|size| size as u64);
        let shape = |which: usize, sides: [u64; 2]| self.batch[which].iter().map(|&size| size as u64).chain(sides).collect::<Vec<_>>();
        let op = match self.batch {
            [[], []] => Matmul::new(m, k, n),
            _ => Matmul::of(&shape(0, [m, k]), &shape(1, [k, n])).expect("shapes that go together"),
        };
        let mut op = op.transpose_a(self.transpose_a).transpose_b(self.transpose_b).alpha(self.alpha).result(self.result);
        op = op.precision(self.precision);
        if self.gaps != PLAIN.gaps {
            let [a, b, c] = [self.m * self.k, self.k * self.n, self.m * self.n];
            let rows = |elements: usize, columns: usize| elements.checked_div(columns).unwrap_or_default();
            let [a, b, c] =
                [a + rows(a, a_columns) * self.padding[0], b + rows(b, b_columns) * self.padding[1], c + rows(c, self.n) * self.padding[2]];
            let [a, b, c] = [(0, a), (1, b), (2, c)].map(|(which, elements)| self.step(which, elements) as u64);
            op = op.stride_a(a).stride_b(b).stride_c(c);
        }
        if self.before != [0; 3] {
            let [a, b, c] = self.before.map(|elements| elements as u64);
            op = op.offset_a(a).offset_b(b).offset_c(c);
        }
        if self.padding != [0; 3] {
            op = op.lda((a_columns + self.padding[0]) as u64).ldb((b_columns + self.padding[1]) as u64);
        }
        if self.beta != 0.0 {
            op = match self.result {
                #[cfg(not(target_arch = "wasm32"))]
                DType::F16 => op.plus(self.beta, &inputs.c_f16),
                _ => op.plus(self.beta, &inputs.c),
            };
            op = op.ldc((self.n + self.padding[2]) as u64);
        }
        if self.bias {
            op = op.bias(&inputs.bias);
        }
        if let Some(activation) = self.activation {
            op = op.activation(activation);
        }
        op
    }

    #[cfg(target_arch = "wasm32")]
    async fn compute(&self, gpu: &Gpu, inputs: &Inputs, op: &Matmul<'_>) -> lapidary::Result<Vec<f32>> {
        gpu.matmul(&inputs.a, &inputs.b, op).await
    }

    #[cfg(not(target_arch = "wasm32"))]
    async fn compute(&self, gpu: &Gpu, inputs: &Inputs, op: &Matmul<'_>) -> lapidary::Result<Vec<f32>> {
        match self.dtype {
            DType::F16 => gpu.matmul(&rounded(&inputs.a), &rounded(&inputs.b), op).await,
            _ => gpu.matmul(&inputs.a, &inputs.b, op).await,
        }
    }

    /// Computes and judges it: the reason if it is wrong.
    pub async fn check(&self, gpu: &Gpu) -> Result<(), String> {
        self.check_on(&[gpu]).await
    }

    /// The same on one after the other, for which the exact result is computed once.
    pub async fn check_on(&self, gpus: &[&Gpu]) -> Result<(), String> {
        let inputs = self.inputs();
        let op = self.op(&inputs);
        let said = |error: Box<lapidary::Error>| format!("{self}: {error}");
        let mut results = Vec::new();
        for gpu in gpus {
            results.push(self.compute(gpu, &inputs, &op).await.map_err(said)?);
        }
        // After them, since what is refused is compared with nothing.
        let reference = Reference::new(&inputs.a, &inputs.b, &inputs.c, &op).map_err(said)?;
        for (gpu, result) in gpus.iter().zip(results) {
            let verdict = reference.check(&result).map_err(said)?;
            // Whole numbers past 2048 are not all f16s.
            let is_whole = self.values == Values::Whole && matches!(self.activation, None | Some(Activation::Relu));
            let exact = !is_whole || self.result != DType::F32 || verdict.max_abs_error == 0.0;
            let elements = (self.shape().iter().product::<usize>() * self.m * self.n) as u64;
            if !verdict.is_right() || !exact || verdict.elements != elements {
                return Err(format!("{self} on {:?}: {verdict:?}", gpu.info().map(|info| info.backend)));
            }
        }
        Ok(())
    }
}
