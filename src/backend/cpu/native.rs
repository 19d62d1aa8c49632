//! The CPU natively: vector kernels on all cores, or the scalar path.

use std::borrow::Cow;

#[cfg(feature = "simd")]
use half::f16;

use super::conv::Conv;
#[cfg(feature = "simd")]
use super::crew::{each, each_with};
#[cfg(feature = "simd")]
use super::few;
use super::fft;
use super::int8;
#[cfg(feature = "simd")]
use super::map::Registers;
use super::map::{Elements, Map};
use super::normalize::Normalize;
#[cfg(feature = "simd")]
use super::number::Number;
use super::pool;
#[cfg(feature = "simd")]
use super::product::Product;
use super::reduce::Reduce;
use super::scalar::{self, Matrix};
use super::simd;
#[cfg(feature = "simd")]
use super::small;
#[cfg(feature = "simd")]
use super::transform::Transforms;
#[cfg(feature = "simd")]
use super::vector;
use crate::dtype::{DType, Extent};
use crate::error::Result;
use crate::host::{HostSlice, HostVec};
use crate::kernels::Kernel;
use crate::ops::matmul::Problem;
use crate::options::Options;
use crate::plan;
use crate::plan::matmul::Params;

/// Elements of a share of an elementwise operation: some microseconds of work.
#[cfg(feature = "simd")]
const SHARE_ELEMENTS: usize = 1 << 14;
/// Elements from which other threads pay: to wake one takes some microseconds.
#[cfg(feature = "simd")]
const MANY_ELEMENTS: usize = 1 << 16;
/// Rows up to which a matrix of f16 that they are multiplied by is widened in parts, each time anew.
#[cfg(feature = "simd")]
const FEW_ROWS: usize = 256;
/// Multiplications of a batch from which they do.
#[cfg(feature = "simd")]
const MANY_PRODUCTS: usize = 1 << 21;
/// How many of them take as long as a small product, or a row of one.
#[cfg(feature = "simd")]
const OF_SMALL: usize = 256;
/// Rows of a share of a tall product.
#[cfg(feature = "simd")]
const SHARE_ROWS: usize = 512;
/// Bytes of a result above which it is written past the cache, which would not hold it.
const STREAM_BYTES: usize = 24 << 20;

/// What would turn a missing path on.
pub(super) const REMEDY: &str = "";

/// Which path, and the most threads that it takes; 0 for all cores.
pub(crate) struct Engine {
    simd: bool,
    threads: usize,
    /// Asked once, since that reads files.
    cores: usize,
    #[cfg(feature = "simd")]
    transforms: Transforms,
}

impl Engine {
    #[expect(clippy::unused_async, reason = "the browser's engine starts a module")]
    pub(super) async fn open(simd: bool, options: &Options) -> Result<Self, String> {
        Ok(Self {
            simd,
            threads: if simd { options.threads.map_or(0, |most| most as usize) } else { 1 },
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            #[cfg(feature = "simd")]
            transforms: Transforms::default(),
        })
    }

    /// Whether by vector instructions, and on how many threads.
    pub(super) fn resources(&self) -> (bool, usize) {
        (self.simd, if self.threads == 0 { self.cores } else { self.cores.min(self.threads) })
    }

    pub(super) fn name(&self) -> String {
        let (_, threads) = self.resources();
        format!("{} CPU, {threads} thread{}", std::env::consts::ARCH, if threads == 1 { "" } else { "s" })
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        let own: &[_] = if self.simd { &["simd", "threads"] } else { &[] };
        // Of twins, which are Rust.
        own.iter().chain(&["shader-f64", "shader-i8", "unified-memory"]).copied().collect()
    }

    pub(super) fn variant(&self) -> &'static str {
        if self.simd { "simd" } else { "scalar" }
    }

    /// One, since the library that multiplies shares products out itself.
    pub(super) fn threads(&self, _problem: &Problem) -> u32 {
        1
    }

    /// Memory for what stays on the device.
    pub(super) fn kept(&self, extent: Extent) -> Result<HostVec> {
        let mut kept = HostVec::kept(extent)?;
        simd::in_large_pages(kept.bytes_mut());
        Ok(kept)
    }

    pub(super) fn matmul(&self, params: &Params, kernel: &Kernel, operands: &[Option<HostSlice<'_>>; 4], out: &mut HostVec) -> Result<()> {
        if out.dtype() == DType::I32 {
            self.integers(params, kernel, operands, bytemuck::cast_slice_mut(out.bytes_mut()));
            return Ok(());
        }
        if out.is_empty() || params.m == 0 || params.n == 0 {
            return Ok(());
        }
        // What is not f32 is widened, which changes no value, and the result is rounded once.
        let read = |at: usize| operands[at].as_ref().map_or(Ok(Cow::Borrowed(&[][..])), |values| self.widened(values));
        let [c, bias] = [read(2)?, read(3)?];
        #[cfg(feature = "simd")]
        if let Some([a, b]) = self.halves_in_lines(params, kernel, operands) {
            return wide(out, |out| {
                self.each_item(params, out, |[a_start, b_start, c_start], out, threads| {
                    self.product_by_vectors(params, kernel, [from(a, a_start), from(b, b_start)], from(&c, c_start), out, threads);
                    scalar::finish(params, &bias, out);
                });
            });
        }
        let [a, b] = [read(0)?, read(1)?];
        wide(out, |out| self.products(params, kernel, [&a, &b, &c, &bias], out))
    }

    /// Operands of f16, where it takes less time to widen them as they are multiplied: a matrix by a few rows or columns is read once.
    #[cfg(feature = "simd")]
    fn halves_in_lines<'a>(&self, params: &Params, kernel: &Kernel, operands: &'a [Option<HostSlice<'_>>; 4]) -> Option<[&'a [f16]; 2]> {
        let [Some(a), Some(b), ..] = operands else { return None };
        if !self.simd
            || [a, b].iter().any(|values| values.dtype() != DType::F16)
            || small::takes(params, kernel.constant("TRANSPOSE_A") != 0)
        {
            return None;
        }
        let halves = [a, b].map(|values| bytemuck::cast_slice(values.bytes()));
        let (sizes, matrices) = ([params.m, params.k, params.n].map(|size| size as usize), matrices(params, kernel, halves));
        let [m, k, n] = sizes;
        let has_few_rows = (2..=FEW_ROWS).contains(&m) && m < n && k > 1 && m * k * n >= MANY_PRODUCTS;
        let is_taken = has_few_rows || vector::Product::of(sizes, matrices).is_some() || few::Product::of(sizes, matrices).is_some();
        is_taken.then_some(halves)
    }

    /// Values in f32, which holds each of f16: many are widened by all threads, into large pages.
    fn widened<'a>(&self, values: &HostSlice<'a>) -> Result<Cow<'a, [f32]>> {
        #[cfg(feature = "simd")]
        if self.simd && values.dtype() == DType::F16 && values.bytes().len() > MANY_ELEMENTS * size_of::<f16>() {
            let halves: &[f16] = bytemuck::cast_slice(values.bytes());
            let mut wide = array(Extent::f32(halves.len() as u64))?.into_vec();
            each(&mut wide, SHARE_ELEMENTS, self.resources().1, |share, wide| {
                simd::widen(&halves[share * SHARE_ELEMENTS..][..wide.len()], wide);
            });
            return Ok(Cow::Owned(wide));
        }
        Ok(values.widened())
    }

    /// An elementwise operation.
    pub(super) fn map(&self, kernel: &Kernel, words: &[u32], inputs: &[Option<HostSlice<'_>>], out: &mut HostVec) -> Result<()> {
        let element_bytes = borrow(out).element_bytes();
        let out = out.bytes_mut();
        let streams = self.simd && out.len() > STREAM_BYTES;
        let map = Map::new(kernel, words, Elements::of(inputs))?.writing(element_bytes, streams);
        #[cfg(feature = "simd")]
        let map = map.with_vectors(self.simd);
        let (_, threads) = self.resources();
        if map.is_move(element_bytes) {
            map.move_all(element_bytes, out, threads, streams);
            return Ok(());
        }
        let out = &mut out[..map.elements() * element_bytes];
        #[cfg(feature = "simd")]
        if threads > 1 && map.elements() > MANY_ELEMENTS {
            each_with(out, SHARE_ELEMENTS * element_bytes, threads, Registers::default, |registers, share, out| {
                map.compute_with(registers, share * SHARE_ELEMENTS, out);
            });
            return Ok(());
        }
        map.compute(0, out);
        Ok(())
    }

    /// A convolution.
    pub(super) fn conv(&self, words: &[u32], inputs: &[Option<HostSlice<'_>>], out: &mut HostVec) -> Result<()> {
        let [images, filters, bias] = widened(inputs);
        let conv = Conv { problem: plan::conv::told(words, !bias.is_empty())?, images: &images, filters: &filters, bias: &bias };
        wide(out, |out| self.convolve(&conv, out))
    }

    fn convolve(&self, conv: &Conv<'_>, out: &mut [f32]) {
        let item_elements = conv.item_elements();
        #[cfg(feature = "simd")]
        if self.simd {
            let (_, threads) = self.resources();
            // Few items share the threads one after the other.
            let [at_once, of_item] = if out.len() / item_elements < threads { [1, threads] } else { [threads, 1] };
            return each(out, item_elements, at_once, |item, out| conv.by_products(item, out, of_item));
        }
        out.chunks_exact_mut(item_elements).enumerate().for_each(|(item, out)| conv.direct(item, out));
    }

    /// A Fourier transform.
    pub(super) fn fft(&self, words: &[u32], inputs: &[Option<HostSlice<'_>>], out: &mut HostVec) -> Result<()> {
        let ([values, ..], problem) = (widened(inputs), plan::fft::told(words)?);
        #[cfg(feature = "simd")]
        if self.simd {
            let (_, threads) = self.resources();
            return wide(out, |out| self.transforms.run(&problem, &values, out, threads));
        }
        wide(out, |out| fft::plain(&problem, &values, out))
    }

    /// A pool.
    pub(super) fn pool(&self, kernel: &Kernel, words: &[u32], inputs: &[Option<HostSlice<'_>>], out: &mut HostVec) -> Result<()> {
        let [values, ..] = widened(inputs);
        let problem = plan::pool::told(kernel, words, out.dtype())?;
        let (planes, of_plane) = (problem.planes as usize, (problem.elements() / u64::from(problem.planes.max(1))) as usize);
        let from = values.len() / planes.max(1);
        let one = |(plane, out): (usize, &mut [u32])| {
            pool::plane(&problem, &values[plane * from..][..from], (plane * from) as u32, out);
        };
        let all = |out: &mut [u32]| {
            #[cfg(feature = "simd")]
            if self.resources().1 > 1 && values.len() > 2 * SHARE_ELEMENTS {
                return each(out, of_plane, self.resources().1, |plane, out| one((plane, out)));
            }
            out.chunks_exact_mut(of_plane).enumerate().for_each(one);
        };
        if out.dtype() == DType::F16 {
            return wide(out, |out| all(bytemuck::cast_slice_mut(out)));
        }
        all(bytemuck::cast_slice_mut(out.bytes_mut()));
        Ok(())
    }

    /// A reduction.
    pub(super) fn reduce(&self, kernel: &Kernel, words: &[u32], inputs: &[Option<HostSlice<'_>>], out: &mut HostVec) -> Result<()> {
        let (_, threads) = self.resources();
        let reduce = Reduce::new(kernel, words, Elements::of(inputs))?;
        #[cfg(feature = "simd")]
        let reduce = reduce.with_vectors(self.simd);
        reduce.compute(bytemuck::cast_slice_mut(out.bytes_mut()), threads);
        Ok(())
    }

    /// Softmax or a norm.
    pub(super) fn normalize(&self, kernel: &Kernel, words: &[u32], inputs: &[Option<HostSlice<'_>>], out: &mut HostVec) -> Result<()> {
        let ((_, threads), dtype) = (self.resources(), out.dtype());
        let normalize = Normalize::new(kernel, words, Elements::of(inputs))?;
        #[cfg(feature = "simd")]
        let normalize = normalize.with_vectors(self.simd);
        normalize.compute(out.bytes_mut(), dtype, threads);
        Ok(())
    }

    /// All products of a batch of 8-bit integers.
    fn integers(&self, params: &Params, kernel: &Kernel, operands: &[Option<HostSlice<'_>>; 4], out: &mut [i32]) {
        let (shape, [a_zero, b_zero]) = ([params.m, params.k, params.n].map(|size| size as usize), int8::zero_points(params));
        let [Some(a), Some(b), ..] = operands else { return out.fill(0) };
        let strides = |along: bool, stride: u32| if along { [stride as usize, 1] } else { [1, stride as usize] };
        let a_strides = strides(kernel.constant("TRANSPOSE_A") == 0, params.lda);
        let b_strides = strides(kernel.constant("TRANSPOSE_B") != 0, params.ldb);
        let one = |(item, out): (usize, &mut [i32]), threads: usize| {
            let [a_start, b_start, _] = params.starts(item as u32);
            let (a, b) = (lines(a, a_start, a_zero, a_strides), lines(b, b_start, b_zero, b_strides));
            #[cfg(feature = "simd")]
            if self.simd {
                return int8::packed(shape, a, b, out, threads);
            }
            let _ = threads;
            int8::plain(shape, a, b, out);
        };
        let item_elements = shape[0] * shape[2];
        if item_elements == 0 {
            return;
        }
        let (_, threads) = self.resources();
        #[cfg(feature = "simd")]
        if threads > 1 && params.batch as usize >= threads && out.len() * shape[1] > MANY_PRODUCTS {
            return each(out, item_elements, threads, |item, out| one((item, out), 1));
        }
        out.chunks_exact_mut(item_elements).enumerate().for_each(|item| one(item, threads));
    }

    /// All products of a batch.
    fn products(&self, params: &Params, kernel: &Kernel, [a, b, c, bias]: [&[f32]; 4], out: &mut [f32]) {
        #[cfg(feature = "simd")]
        if self.simd && small::takes(params, kernel.constant("TRANSPOSE_A") != 0) {
            return self.small_products(params, kernel, [a, b, c, bias], out);
        }
        self.each_item(params, out, |[a_start, b_start, c_start], out, threads| {
            self.product(params, kernel, [from(a, a_start), from(b, b_start), from(c, c_start)], out, threads);
            scalar::finish(params, bias, out);
        });
    }

    /// Computes each product of a batch, by where its operands begin and on how many threads.
    fn each_item(&self, params: &Params, out: &mut [f32], compute: impl Fn([u64; 3], &mut [f32], usize) + Sync) {
        let item_elements = params.m as usize * params.n as usize;
        let one = |(item, out): (usize, &mut [f32]), threads: usize| compute(params.starts(item as u32), out, threads);
        let (_, threads) = self.resources();
        // Each thread takes some items after one another, where there are enough for all.
        #[cfg(feature = "simd")]
        if threads > 1 && params.batch as usize >= threads && out.len() * params.k as usize > MANY_PRODUCTS {
            return each(out, item_elements, threads, |item, out| one((item, out), 1));
        }
        out.chunks_exact_mut(item_elements).enumerate().for_each(|item| one(item, threads));
    }

    /// The same of small ones.
    #[cfg(feature = "simd")]
    fn small_products(&self, params: &Params, kernel: &Kernel, [a, b, c, bias]: [&[f32]; 4], out: &mut [f32]) {
        let (m, n) = (params.m as usize, params.n as usize);
        let [reads_c, turns_a, turns_b] = ["READS_C", "TRANSPOSE_A", "TRANSPOSE_B"].map(|name| kernel.constant(name) != 0);
        let rows_of = |item: u32, row: usize, out: &mut [f32]| {
            let [a_start, b_start, c_start] = params.starts(item);
            let a = Matrix::new(from(a, a_start), params.lda as usize, turns_a);
            let a = Matrix { values: &a.values[row * a.row_stride..], ..a };
            let b = Matrix::new(from(b, b_start), params.ldb as usize, turns_b);
            let c = reads_c.then(|| &from(c, c_start)[row * params.ldc as usize..]);
            small::multiply(params, [a, b], c, out);
            scalar::finish(params, bias, out);
        };
        let (_, threads) = self.resources();
        if params.batch == 1 {
            let threads = if m * OF_SMALL > MANY_PRODUCTS { threads } else { 1 };
            return each(out, SHARE_ROWS * n, threads, |share, out| rows_of(0, share * SHARE_ROWS, out));
        }
        let threads = if out.len() * params.k as usize + params.batch as usize * OF_SMALL > MANY_PRODUCTS { threads } else { 1 };
        each(out, m * n, threads, |item, out| rows_of(item as u32, 0, out));
    }

    /// One product of a batch.
    fn product(&self, params: &Params, kernel: &Kernel, [a, b, c]: [&[f32]; 3], out: &mut [f32], threads: usize) {
        #[cfg(feature = "simd")]
        if self.simd && params.k > 0 {
            return self.product_by_vectors(params, kernel, [a, b], c, out, threads);
        }
        let _ = threads;
        if kernel.constant("READS_C") != 0 {
            take(params, c, out);
        }
        let [a, b] = matrices(params, kernel, [a, b]);
        scalar::matmul(params, a, b, out);
    }

    /// The same by vector instructions, of numbers that are widened where they are multiplied; k is not 0.
    #[cfg(feature = "simd")]
    fn product_by_vectors<T: Number>(
        &self,
        params: &Params,
        kernel: &Kernel,
        operands: [&[T]; 2],
        c: &[f32],
        out: &mut [f32],
        threads: usize,
    ) {
        let (sizes, operands) = ([params.m, params.k, params.n].map(|size| size as usize), matrices(params, kernel, operands));
        let reads_c = kernel.constant("READS_C") != 0;
        let beta = if reads_c { params.beta } else { 0.0 };
        if let Some(product) = vector::Product::of(sizes, operands) {
            if reads_c {
                take(params, c, out);
            }
            return product.compute(params.alpha, beta, out, threads);
        }
        // The library would scale parts of a sum, or an operand, which may be too large then, or too small, where the sum is not: C is added behind.
        let scales = params.alpha != 1.0;
        let in_sums = (reads_c && !scales).then_some(beta);
        if in_sums.is_some() {
            take(params, c, out);
        }
        if let Some(product) = few::Product::of(sizes, operands) {
            product.compute(in_sums, out, threads);
        } else {
            let [a, b] = operands;
            let wide = T::all(a.values);
            let product = Product { sizes, a: a.of(&wide), b: Matrix::new(&[], 0, false), beta: in_sums };
            match T::plain(b.values) {
                Some(values) => Product { b: b.of(values), ..product }.compute(out, sizes[2], threads),
                None => product.compute_with(b, out, sizes[2], threads),
            }
        }
        if scales && beta != 0.0 {
            for (sums, c) in out.chunks_exact_mut(sizes[2]).zip(c.chunks(params.ldc as usize)) {
                sums.iter_mut().zip(c).for_each(|(sum, c)| *sum = params.alpha * *sum + beta * c);
            }
        } else if scales {
            out.iter_mut().for_each(|sum| *sum *= params.alpha);
        }
    }
}

/// Both operands of a product.
fn matrices<'a, T>(params: &Params, kernel: &Kernel, [a, b]: [&'a [T]; 2]) -> [Matrix<'a, T>; 2] {
    let is_turned = |name: &str| kernel.constant(name) != 0;
    [Matrix::new(a, params.lda as usize, is_turned("TRANSPOSE_A")), Matrix::new(b, params.ldb as usize, is_turned("TRANSPOSE_B"))]
}

/// Puts C where its product is to be added.
fn take(params: &Params, c: &[f32], out: &mut [f32]) {
    let n = params.n as usize;
    for (to, from) in out.chunks_exact_mut(n).zip(c.chunks(params.ldc as usize)) {
        to.copy_from_slice(&from[..n]);
    }
}

/// Three operands in f32, of which those that are not there are empty.
fn widened<'a>(inputs: &[Option<HostSlice<'a>>]) -> [Cow<'a, [f32]>; 3] {
    [0, 1, 2].map(|at| inputs.get(at).and_then(Option::as_ref).map_or(Cow::Borrowed(&[][..]), HostSlice::widened))
}

/// Computes in f32, and rounds once where the result is of something else.
fn wide(out: &mut HostVec, compute: impl FnOnce(&mut [f32])) -> Result<()> {
    if let Some(out) = out.as_f32_mut() {
        compute(out);
        return Ok(());
    }
    let mut wide = array(Extent::f32(out.len()))?;
    if let Some(wide) = wide.as_f32_mut() {
        compute(wide);
    }
    out.fill_from(&borrow(&wide));
    Ok(())
}

/// The values from one on; what is not read is empty, wherever it would start.
fn from<T>(values: &[T], start: u64) -> &[T] {
    values.get(start as usize..).unwrap_or_default()
}

/// The same of 8-bit integers, in lines.
fn lines<'a>(values: &'a HostSlice<'_>, start: u64, zero_point: i16, strides: [usize; 2]) -> int8::Lines<'a> {
    let bytes = values.bytes().get(start as usize..).unwrap_or_default();
    int8::Lines::new(bytes, values.dtype() == DType::I8, zero_point, strides)
}

/// So many elements, all zero.
/// A tensor's values, and what an operation reads.
pub(super) type Memory = HostVec;
pub(super) type Operand<'a> = HostSlice<'a>;

pub(super) fn given<'a>(values: &HostSlice<'a>) -> Operand<'a> {
    values.clone()
}

#[expect(clippy::unnecessary_wraps, reason = "in the browser it may be no array")]
pub(super) fn into_array(values: Memory) -> Option<HostVec> {
    Some(values)
}

pub(super) fn array(extent: Extent) -> Result<HostVec> {
    let mut zeros = HostVec::zeros(extent)?;
    simd::in_large_pages(zeros.bytes_mut());
    Ok(zeros)
}

pub(super) fn copy(from: &HostSlice<'_>, to: &mut HostVec) {
    to.fill_from(from);
}

/// The values as kernels read them, who widen f16 themselves.
#[expect(clippy::unnecessary_wraps, reason = "in the browser there may be no room")]
pub(super) fn readable<'a>(values: &HostSlice<'a>) -> Result<HostSlice<'a>> {
    Ok(values.clone())
}

pub(super) fn borrow(values: &HostVec) -> HostSlice<'_> {
    values.into()
}
