//! The matrix product: C ← α·op(A)·op(B) + β·C with sums in f32, as xGEMM of the BLAS defines it
//! (Dongarra, Du Croz, Duff, Hammarling, "A set of level 3 basic linear algebra subprograms", 1990), with matrices stored by rows. Many
//! products of one shape are a [`Batch`].

mod activation;
mod batch;
mod integers;
mod precision;
mod stored;

pub use activation::Activation;
pub use batch::{Batch, Level};
pub use integers::Integers;
pub(crate) use precision::F16_TERMS;
pub use precision::Precision;
pub use stored::Stored;

use crate::call::Operand;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The most elements a matrix may have.
pub const MAX_ELEMENTS: u64 = 1 << 32;

/// A product to compute: op(A) is m × k, op(B) is k × n, C is m × n; or a batch of such products.
///
/// With `alpha` = 0 neither A nor B is read, without C neither is C: a NaN in what is not read does not reach the result.
/// Sums are in f32, in an order that the kernel chooses: each element is within γ_k·(|α|·|A||B|) of the exact one
/// ([`verify`](crate::verify)). A and B are of one [`DType`]; C is of the result's, which is f32 unless [`result`](Self::result) says
/// otherwise; a bias is of f32. A and B may also be of i8 or u8, in any pairing: their sums are of i32 and exact modulo 2³², nothing is done
/// to them in the end, and [`zero_points`](Self::zero_points) tell what stands for zero.
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
///
/// A batch has its matrices one behind the other, or one matrix for all of it:
///
/// ```
/// # fn main() -> lapidary::Result<()> {
/// # use lapidary::{Gpu, Matmul, Options};
/// # let gpu = Gpu::open_blocking(Options::default())?;
/// let a = [1.0, 2.0, 3.0, 4.0]; // two matrices, 1 × 2
/// let b = [1.0, 1.0]; // 2 × 1
/// let c = gpu.matmul_blocking(&a, &b, &Matmul::of(&[2, 1, 2], &[2, 1])?)?;
/// assert_eq!(c, [3.0, 7.0]); // 2 × 1 × 1
/// assert_eq!(gpu.matmul_blocking(&a, &b, &Matmul::new(1, 2, 1).batch(2).stride_b(0))?, c);
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
    /// None for what is plain: f32, or i32 of integers.
    pub(crate) result: Option<DType>,
    pub(crate) precision: Precision,
    pub(crate) c: Option<Operand<'c>>,
    pub(crate) bias: Option<Operand<'c>>,
    pub(crate) activation: Option<Activation>,
    pub(crate) lda: Option<u64>,
    pub(crate) ldb: Option<u64>,
    pub(crate) ldc: Option<u64>,
    pub(crate) zero_points: [i32; 2],
    told: batch::Told,
    /// A or B is a vector, whose dimension the result has not.
    pub(crate) vectors: [bool; 2],
}

impl<'c> Matmul<'c> {
    /// C = A·B with A m × k and B k × n.
    pub fn new(m: u64, k: u64, n: u64) -> Self {
        Self {
            m,
            k,
            n,
            transpose_a: false,
            transpose_b: false,
            alpha: 1.0,
            beta: 0.0,
            result: None,
            precision: Precision::F32,
            c: None,
            bias: None,
            activation: None,
            lda: None,
            ldb: None,
            ldc: None,
            zero_points: [0; 2],
            told: batch::Told::default(),
            vectors: [false; 2],
        }
    }

    /// The product of arrays of those shapes as NumPy's `matmul` has it: op(A) is … × m × k and op(B) … × k × n, and the dimensions before
    /// the last two are a batch, each of the same size in both or broadcast where one of them is 1 or missing. A shape of one dimension
    /// is a vector, a row as A and a column as B; the result then lacks that dimension.
    ///
    /// # Errors
    /// [`Error::InvalidDimension`] if a shape has no dimension, or the shapes do not go together.
    pub fn of(a: &[u64], b: &[u64]) -> Result<Self> {
        let (a_batch, m, k) = match *a {
            [k] => (&[][..], 1, k),
            [ref batch @ .., m, k] => (batch, m, k),
            [] => return Err(no_matrix("the shape of a")),
        };
        let (b_batch, rows, n) = match *b {
            [k] => (&[][..], k, 1),
            [ref batch @ .., k, n] => (batch, k, n),
            [] => return Err(no_matrix("the shape of b")),
        };
        if k != rows {
            let expected = format!("one of {k} rows, since a is {a:?}");
            return Err(Box::new(Error::InvalidDimension { name: "the shape of b", value: format!("{b:?}"), expected }));
        }
        let told = batch::Told { shapes: [a_batch.to_vec(), b_batch.to_vec()], ..batch::Told::default() };
        told.shape()?;
        Ok(Self { told, vectors: [a.len() == 1, b.len() == 1], ..Self::new(m, k, n) })
    }

    /// So many products, the matrices of each operand one behind the other.
    pub fn batch(mut self, count: u64) -> Self {
        self.told.shapes = [vec![count], vec![count]];
        self
    }

    /// Batch shapes of A and B, which are broadcast, elements from one item of A, B and C to the next, and elements before the first of each.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn batches(mut self, a: Vec<u64>, b: Vec<u64>, strides: [Option<u64>; 3], first: [Option<u64>; 3]) -> Self {
        self.told = batch::Told { shapes: [a, b], strides, first };
        self
    }

    /// Elements from the start of one A of a batch to the next, if it is not that of packed matrices; 0 if all share one.
    pub fn stride_a(mut self, elements: u64) -> Self {
        self.told.strides[0] = Some(elements);
        self
    }

    /// The same for B.
    pub fn stride_b(mut self, elements: u64) -> Self {
        self.told.strides[1] = Some(elements);
        self
    }

    /// The same for the C that is added. The results themselves are packed.
    pub fn stride_c(mut self, elements: u64) -> Self {
        self.told.strides[2] = Some(elements);
        self
    }

    /// Elements before the first of A: it is a window of something larger, read where it lies. With [`lda`](Self::lda) that is a part of a larger
    /// matrix, whose element in row i and column j is the i · lda + j.
    ///
    /// ```
    /// # fn main() -> lapidary::Result<()> {
    /// # use lapidary::{Gpu, Matmul, Options};
    /// # let gpu = Gpu::open_blocking(Options::default())?;
    /// let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 × 3, of which the last column is multiplied
    /// let c = gpu.matmul_blocking(&a, &[2.0], &Matmul::new(2, 1, 1).lda(3).offset_a(2))?;
    /// assert_eq!(c, [6.0, 12.0]);
    /// # Ok(()) }
    /// ```
    pub fn offset_a(mut self, elements: u64) -> Self {
        self.told.first[0] = Some(elements);
        self
    }

    /// The same for B.
    pub fn offset_b(mut self, elements: u64) -> Self {
        self.told.first[1] = Some(elements);
        self
    }

    /// The same for the C that is added.
    pub fn offset_c(mut self, elements: u64) -> Self {
        self.told.first[2] = Some(elements);
        self
    }

    /// The shape of the result: the batch's dimensions, m and n.
    ///
    /// # Errors
    /// [`Error::InvalidDimension`] if the batches of A and B do not go together.
    pub fn shape(&self) -> Result<Vec<u64>> {
        let mut shape = self.told.shape()?;
        for (size, left_out) in [self.m, self.n].into_iter().zip(self.vectors) {
            if !left_out {
                shape.push(size);
            }
        }
        Ok(shape)
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

    /// What the result's elements are: f32 if nothing is said, whether A and B are of f32 or of f16. One of f16 is rounded once, from what is within
    /// the bound in f32; what is past its range is infinite. That of 8-bit integers is of i32, and of nothing else.
    pub fn result(mut self, dtype: DType) -> Self {
        self.result = Some(dtype);
        self
    }

    /// The numbers that stand for zero in A and in B, which are of 8-bit integers: (op(A) − a)·(op(B) − b). They are numbers of the operands' types.
    ///
    /// ```
    /// # fn main() -> lapidary::Result<()> {
    /// # use lapidary::{Gpu, Matmul, Options};
    /// # let gpu = Gpu::open_blocking(Options::default())?;
    /// let (a, b) = ([130u8, 126], [3i8, -4]); // 2 and −2 from 128, 1 × 2; 2 × 1
    /// let c = gpu.matmul_values_blocking(&a, &b, &Matmul::new(1, 2, 1).zero_points(128, 0))?;
    /// assert_eq!(c.into_typed::<i32>()?, [14]);
    /// # Ok(()) }
    /// ```
    pub fn zero_points(mut self, a: i32, b: i32) -> Self {
        self.zero_points = [a, b];
        self
    }

    /// How exactly it is computed: in f32 if nothing is said.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Adds β·C, where `c` is m × n, of the result's type. With β = 0 it is not read.
    pub fn plus(mut self, beta: f32, c: impl Into<Operand<'c>>) -> Self {
        self.beta = beta;
        self.c = Some(c.into());
        self
    }

    /// Adds n numbers of f32 to each row of α·op(A)·op(B) + β·C.
    pub fn bias(mut self, bias: impl Into<Operand<'c>>) -> Self {
        self.bias = Some(bias.into());
        self
    }

    /// Applies a function to each element, after all else.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = Some(activation);
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

    /// Checks the dimensions against each other and against the lengths of the operands in elements. A and B are of one type, or both of 8-bit
    /// integers.
    pub(crate) fn check(&self, dtypes: [DType; 2], a_length: u64, b_length: u64) -> Result<Problem> {
        let (m, k, n) = (dimension("m", self.m)?, dimension("k", self.k)?, dimension("n", self.n)?);
        let integers = Integers::of(self, dtypes)?;
        let result = if integers.is_some() { DType::I32 } else { self.result.unwrap_or(DType::F32) };
        for (argument, dtype) in [("a", dtypes[0]), ("the result", result)] {
            if integers.is_none() && !dtype.is_float() {
                let (argument, found) = (argument.to_owned(), format!("of {dtype}"));
                let expected = "of f32 or f16, or of i8 or u8 with a result of i32";
                return Err(Box::new(Error::InvalidType { argument, expected, found }));
            }
        }
        for (what, rows, columns) in
            [("the number of elements of A", m, k), ("the number of elements of B", k, n), ("the number of elements of the result", m, n)]
        {
            within(what, u64::from(rows) * u64::from(columns))?;
        }
        let (a_rows, a_columns) = if self.transpose_a { (k, m) } else { (m, k) };
        let (b_rows, b_columns) = if self.transpose_b { (n, k) } else { (k, n) };
        let a = Stored::new("a", "lda", a_rows, a_columns, self.lda)?;
        let b = Stored::new("b", "ldb", b_rows, b_columns, self.ldb)?;
        let c = Stored::new("c", "ldc", m, n, self.ldc)?;
        let packed = |stored: &Stored| u64::from(stored.rows).saturating_mul(stored.stride);
        let reads_c = self.beta != 0.0 && self.c.is_some();
        let (batch, [a_items, b_items, c_items]) = self.told.resolve([packed(&a), packed(&b), packed(&c)], self.c.is_some())?;
        within("the number of elements of the result", batch.count().saturating_mul(u64::from(m) * u64::from(n)))?;
        let [a_reach, b_reach, c_reach] = [0, 1, 2].map(|at| batch.reaches()[at].saturating_add(batch.first[at]));
        let is_window = [0, 1, 2].map(|at| self.told.strides[at].is_some() || self.told.first[at].is_some());
        a.check("a", self.lda.is_some() || is_window[0], (a_items, a_reach), a_length)?;
        b.check("b", self.ldb.is_some() || is_window[1], (b_items, b_reach), b_length)?;
        for (argument, given, expected) in [("c", &self.c, result), ("bias", &self.bias, DType::F32)] {
            if let Some(given) = given
                && given.dtype() != expected
            {
                return Err(not_of_type(argument, expected, given.dtype()));
            }
        }
        match &self.c {
            Some(given) => c.check("c", self.ldc.is_some() || is_window[2], (c_items, c_reach), given.elements())?,
            None if self.beta != 0.0 => {
                let expected = "without c it must be 0; pass the m × n matrix to be added as c".to_owned();
                return Err(Box::new(Error::InvalidOption { option: "beta".to_owned(), value: "not 0".to_owned(), expected }));
            }
            None => {}
        }
        if let Some(bias) = &self.bias
            && bias.elements() != u64::from(n)
        {
            let (length, formula) = (bias.elements(), "n".to_owned());
            return Err(Box::new(Error::LengthMismatch { argument: "bias", length, expected: n.into(), formula }));
        }
        // With alpha = 0 the product is empty: nothing of A and B is read, whatever it holds.
        let k = if self.alpha == 0.0 { 0 } else { k };
        let (transpose_a, transpose_b, precision, dtype) = (self.transpose_a, self.transpose_b, self.precision, dtypes[0]);
        let (alpha, beta) = (self.alpha, self.beta);
        precision.check(dtype)?;
        let (c, bias, activation) = (Some(c).filter(|_| reads_c), self.bias.is_some(), self.activation);
        Ok(Problem { m, k, n, batch, dtype, integers, result, precision, transpose_a, transpose_b, alpha, beta, a, b, c, bias, activation })
    }
}

/// A checked product, or a batch of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Rows of the result.
    pub m: u32,
    /// Length of the sums.
    pub k: u32,
    /// Columns of the result.
    pub n: u32,
    /// How many products of that shape, and where their matrices start.
    pub batch: Batch,
    /// What A's elements are, and B's, but for the signs of 8-bit integers.
    pub dtype: DType,
    /// What more there is to a product of 8-bit integers; None for one of floating-point numbers.
    pub integers: Option<Integers>,
    /// What C's and the result's elements are.
    pub result: DType,
    /// How products are computed.
    pub precision: Precision,
    /// A is stored k × m.
    pub transpose_a: bool,
    /// B is stored n × k.
    pub transpose_b: bool,
    /// Scales the product.
    pub alpha: f32,
    /// Scales C.
    pub beta: f32,
    /// How each A is stored.
    pub a: Stored,
    /// How each B is stored.
    pub b: Stored,
    /// How each C is stored, if it is read.
    pub c: Option<Stored>,
    /// Whether n numbers are added to each row.
    pub bias: bool,
    /// What is applied to each element in the end.
    pub activation: Option<Activation>,
}

impl Problem {
    /// Refuses what a device cannot do whose kernels compute in f32 alone.
    pub(crate) fn check_plain(&self) -> Result<()> {
        if self.precision == Precision::F16x3 {
            return Err(self.precision.not_here("this backend has no kernel for it"));
        }
        Ok(())
    }

    /// Elements of the result, all products of a batch together.
    pub fn elements(&self) -> u64 {
        u64::from(self.m) * u64::from(self.n) * self.batch.count()
    }

    /// The least that kernels move: the operands, what is added, and the result.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn least_bytes(&self) -> u64 {
        let [m, k, n] = [self.m, self.k, self.n].map(u64::from);
        let [a, b, c] = self.batch.matrices();
        let read = if self.reads_operands() { (a * m * k + b * k * n) * self.dtype.bytes() } else { 0 };
        let added = if self.c.is_some() { c * m * n * self.result.bytes() } else { 0 };
        let bias = if self.bias { n * DType::F32.bytes() } else { 0 };
        read + added + bias + self.elements() * self.result.bytes()
    }

    /// Multiplications to do.
    pub fn multiplications(&self) -> u64 {
        self.elements().saturating_mul(self.k.into())
    }

    /// Whether A and B are read at all.
    pub fn reads_operands(&self) -> bool {
        self.k > 0
    }

    /// Elements of A's operand up to the last that is read, those before the first included.
    pub fn a_span(&self) -> u64 {
        self.a.span_of(self.reach(0))
    }

    /// The same of B.
    pub fn b_span(&self) -> u64 {
        self.b.span_of(self.reach(1))
    }

    /// The same of C; 0 if it is not read.
    pub fn c_span(&self) -> u64 {
        self.c.map_or(0, |c| c.span_of(self.reach(2)))
    }

    /// Where the last item of an operand starts.
    fn reach(&self, operand: usize) -> u64 {
        self.batch.first[operand].saturating_add(self.batch.reaches()[operand])
    }
}

/// The fault of a matrix whose elements are of another type than its fellows ask for.
pub(crate) fn not_of_type(argument: &str, expected: DType, found: DType) -> Box<Error> {
    let expected = match expected {
        DType::F32 if argument == "bias" => "of f32, as sums are",
        DType::F32 => "of f32, as the result or the other operand is",
        DType::F16 => "of f16, as the result or the other operand is",
        DType::I8 | DType::U8 => "of i8 or u8, as the other operand is",
        _ => "of f32, f16, i8 or u8, which products are of",
    };
    Box::new(Error::InvalidType { argument: argument.to_owned(), expected, found: format!("of {found}") })
}

fn dimension(name: &'static str, value: u64) -> Result<u32> {
    u32::try_from(value)
        .map_err(|_| Box::new(Error::InvalidDimension { name, value: value.to_string(), expected: format!("at most {}", u32::MAX) }))
}

fn within(what: &'static str, elements: u64) -> Result<()> {
    if elements <= MAX_ELEMENTS {
        return Ok(());
    }
    Err(Box::new(Error::LimitExceeded { what, requested: elements, max: MAX_ELEMENTS }))
}

fn no_matrix(name: &'static str) -> Box<Error> {
    let expected = "one of at least one dimension; a single number has none".to_owned();
    Box::new(Error::InvalidDimension { name, value: "[]".to_owned(), expected })
}
