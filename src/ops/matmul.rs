//! The matrix product: C ← α·op(A)·op(B) + β·C with sums in f32, as xGEMM of the BLAS defines it
//! (Dongarra, Du Croz, Duff, Hammarling, "A set of level 3 basic linear algebra subprograms", 1990), with matrices stored by rows.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::HostSlice;

/// The most elements a matrix may have.
pub const MAX_ELEMENTS: u64 = 1 << 32;

/// A product to compute: op(A) is m × k, op(B) is k × n, C is m × n.
///
/// With `alpha` = 0 neither A nor B is read, without C neither is C: a NaN in what is not read does not reach the result.
/// Sums are in f32, in an order that the kernel chooses: each element is within γ_k·(|α|·|A||B|) of the exact one
/// ([`verify`](crate::verify)). A and B are of one [`DType`]; C is of the result's, which is f32 unless [`result`](Self::result) says
/// otherwise.
///
/// ```
/// # fn main() -> lapidary::Result<()> {
/// use lapidary::{Gpu, Matmul, Options};
/// let gpu = Gpu::open_blocking(Options::default())?;
/// let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 × 3
/// let b = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]; // 3 × 2
/// let c = gpu.matmul_blocking(&a, &b, &Matmul::new(2, 3, 2))?;
/// assert_eq!(c, [4.0, 5.0, 10.0, 11.0]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Matmul<'c> {
    /// Rows of op(A) and of C.
    pub m: u64,
    /// Columns of op(A), rows of op(B).
    pub k: u64,
    /// Columns of op(B) and of C.
    pub n: u64,
    pub(crate) transpose_a: bool,
    pub(crate) transpose_b: bool,
    pub(crate) alpha: f32,
    pub(crate) beta: f32,
    pub(crate) result: DType,
    pub(crate) c: Option<HostSlice<'c>>,
    pub(crate) lda: Option<u64>,
    pub(crate) ldb: Option<u64>,
    pub(crate) ldc: Option<u64>,
}

impl<'c> Matmul<'c> {
    /// C = A·B with A m × k and B k × n.
    pub fn new(m: u64, k: u64, n: u64) -> Self {
        let (alpha, beta, result) = (1.0, 0.0, DType::F32);
        Self { m, k, n, transpose_a: false, transpose_b: false, alpha, beta, result, c: None, lda: None, ldb: None, ldc: None }
    }

    /// A is stored k × m.
    pub fn transpose_a(mut self, yes: bool) -> Self {
        self.transpose_a = yes;
        self
    }

    /// B is stored n × k.
    pub fn transpose_b(mut self, yes: bool) -> Self {
        self.transpose_b = yes;
        self
    }

    /// Scales the product.
    pub fn alpha(mut self, alpha: f32) -> Self {
        self.alpha = alpha;
        self
    }

    /// What the result's elements are: f32 if nothing is said, whatever A and B are. One of f16 is rounded once, from what is within the
    /// bound in f32; what is past its range is infinite.
    pub fn result(mut self, dtype: DType) -> Self {
        self.result = dtype;
        self
    }

    /// Adds β·C, where `c` is m × n, of the result's type. With β = 0 it is not read.
    pub fn plus(mut self, beta: f32, c: impl Into<HostSlice<'c>>) -> Self {
        self.beta = beta;
        self.c = Some(c.into());
        self
    }

    /// Elements from one stored row of A to the next, if not its columns.
    pub fn lda(mut self, elements: u64) -> Self {
        self.lda = Some(elements);
        self
    }

    /// Elements from one stored row of B to the next, if not its columns.
    pub fn ldb(mut self, elements: u64) -> Self {
        self.ldb = Some(elements);
        self
    }

    /// Elements from one stored row of the C that is added to the next, if not its columns. The result itself is packed.
    pub fn ldc(mut self, elements: u64) -> Self {
        self.ldc = Some(elements);
        self
    }

    /// Checks the dimensions against each other and against the lengths of the operands in elements. A and B are of one type.
    pub(crate) fn check(&self, dtype: DType, a_length: u64, b_length: u64) -> Result<Problem> {
        let (m, k, n) = (dimension("m", self.m)?, dimension("k", self.k)?, dimension("n", self.n)?);
        for (what, rows, columns) in
            [("the number of elements of A", m, k), ("the number of elements of B", k, n), ("the number of elements of the result", m, n)]
        {
            let elements = u64::from(rows) * u64::from(columns);
            if elements > MAX_ELEMENTS {
                return Err(Box::new(Error::LimitExceeded { what, requested: elements, max: MAX_ELEMENTS }));
            }
        }
        let (a_rows, a_columns) = if self.transpose_a { (k, m) } else { (m, k) };
        let (b_rows, b_columns) = if self.transpose_b { (n, k) } else { (k, n) };
        let a = Stored::check("a", "lda", a_rows, a_columns, self.lda, a_length)?;
        let b = Stored::check("b", "ldb", b_rows, b_columns, self.ldb, b_length)?;
        if let Some(c) = &self.c
            && c.dtype() != self.result
        {
            return Err(not_of_type("c", self.result, c.dtype()));
        }
        let c = match &self.c {
            Some(c) => Some(Stored::check("c", "ldc", m, n, self.ldc, c.len())?).filter(|_| self.beta != 0.0),
            None if self.beta != 0.0 => {
                let expected = "without c it must be 0; pass the m × n matrix to be added as c".to_owned();
                return Err(Box::new(Error::InvalidOption { option: "beta".to_owned(), value: "not 0".to_owned(), expected }));
            }
            None => None,
        };
        // With alpha = 0 the product is empty: nothing of A and B is read, whatever it holds.
        let k = if self.alpha == 0.0 { 0 } else { k };
        // And a sum of no terms is 0, whatever scales it.
        let alpha = if k == 0 { 0.0 } else { self.alpha };
        let (transpose_a, transpose_b, beta, result) = (self.transpose_a, self.transpose_b, self.beta, self.result);
        Ok(Problem { m, k, n, dtype, result, transpose_a, transpose_b, alpha, beta, a, b, c })
    }
}

/// A checked product.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Rows of the result.
    pub m: u32,
    /// Length of the sums.
    pub k: u32,
    /// Columns of the result.
    pub n: u32,
    /// What A's and B's elements are.
    pub dtype: DType,
    /// What C's and the result's elements are.
    pub result: DType,
    /// A is stored k × m.
    pub transpose_a: bool,
    /// B is stored n × k.
    pub transpose_b: bool,
    /// Scales the product.
    pub alpha: f32,
    /// Scales C.
    pub beta: f32,
    /// How A is stored.
    pub a: Stored,
    /// How B is stored.
    pub b: Stored,
    /// How C is stored, if it is read.
    pub c: Option<Stored>,
}

impl Problem {
    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        u64::from(self.m) * u64::from(self.n)
    }

    /// Whether A and B are read at all.
    pub fn reads_operands(&self) -> bool {
        self.k > 0
    }
}

/// A matrix stored by rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Rows as stored.
    pub rows: u32,
    /// Columns as stored.
    pub columns: u32,
    /// Elements from one row to the next.
    pub stride: u64,
}

impl Stored {
    /// Elements from the first to the last, all between included.
    pub fn span(&self) -> u64 {
        if self.rows == 0 || self.columns == 0 { 0 } else { u64::from(self.rows - 1) * self.stride + u64::from(self.columns) }
    }

    fn check(argument: &'static str, stride_name: &'static str, rows: u32, columns: u32, stride: Option<u64>, length: u64) -> Result<Self> {
        let stored = Self { rows, columns, stride: stride.unwrap_or(u64::from(columns)) };
        if stored.stride < u64::from(columns) || stored.stride > MAX_ELEMENTS {
            let expected = format!("a whole number from {columns}, the columns of {argument} as stored, to {MAX_ELEMENTS}");
            return Err(Box::new(Error::InvalidDimension { name: stride_name, value: stored.stride.to_string(), expected }));
        }
        let expected = stored.span();
        if expected > MAX_ELEMENTS {
            return Err(Box::new(Error::LimitExceeded {
                what: "the number of elements an operand spans",
                requested: expected,
                max: MAX_ELEMENTS,
            }));
        }
        // With a stride of its own a matrix may be a window of a larger one; without, the length has to fit.
        let fits = if stride.is_some() { length >= expected } else { length == expected };
        if !fits {
            let formula = match stride {
                Some(stride) => format!("at least ({rows} - 1) · {stride} + {columns}"),
                None => format!("{rows} · {columns}"),
            };
            return Err(Box::new(Error::LengthMismatch { argument, length, expected, formula }));
        }
        Ok(stored)
    }
}

/// The fault of a matrix whose elements are of another type than its fellows ask for.
pub(crate) fn not_of_type(argument: &str, expected: DType, found: DType) -> Box<Error> {
    let expected = match expected {
        DType::F32 => "of f32, as the result or the other operand is",
        #[cfg(not(target_arch = "wasm32"))]
        DType::F16 => "of f16, as the result or the other operand is",
    };
    Box::new(Error::InvalidType { argument: argument.to_owned(), expected, found: format!("of {found}") })
}

fn dimension(name: &'static str, value: u64) -> Result<u32> {
    u32::try_from(value)
        .map_err(|_| Box::new(Error::InvalidDimension { name, value: value.to_string(), expected: format!("at most {}", u32::MAX) }))
}
