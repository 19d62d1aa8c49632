//! What is no product, in this thread: in this module's memory, of operands and for results that lie there or are brought and taken piece by piece.

use super::arrays::{array, brought, fill, from, has_room, readable, zeros};
use super::memory::{Memory, Operand, Place, steady};
use super::{Engine, fitting, job_of, parts};
use crate::backend::cpu::conv::Conv;
use crate::backend::cpu::map::{Elements, Map};
use crate::backend::cpu::normalize::Normalize;
use crate::backend::cpu::reduce::Reduce;
use crate::backend::cpu::{fft, pool};
use crate::dtype::{DType, Extent};
use crate::error::Result;
use crate::kernels::Kernel;
use crate::plan;
use crate::plan::matmul::Params;

impl Engine {
    /// Whether values are computed by vectors where the engine has them.
    fn has_vectors(&self) -> bool {
        !self.level.features.is_empty()
    }

    /// An elementwise operation: what stays in the page's memory is made here piece by piece.
    pub(in crate::backend::cpu) fn map(
        &self,
        kernel: &Kernel,
        words: &[u32],
        inputs: &[Option<Operand<'_>>],
        out: &mut Memory,
    ) -> Result<()> {
        const PIECE: usize = 1 << 15;
        let map = Map::new(kernel, words, elements(inputs))?.with_vectors(self.has_vectors());
        let to = match &mut out.place {
            Place::Page(array) => array.bytes(),
            Place::Own(own) => {
                map.compute(0, bytemuck::cast_slice_mut(own.words_mut()));
                return Ok(());
            }
        };
        let (elements, bytes) = (map.elements(), out.dtype().bytes() as usize);
        let mut piece = vec![0u32; (PIECE.min(elements) * bytes).div_ceil(4)];
        for first in (0..elements).step_by(PIECE) {
            let end = elements.min(first + PIECE);
            let piece = &mut bytemuck::cast_slice_mut(&mut piece)[..(end - first) * bytes];
            map.compute(first, piece);
            to.subarray((first * bytes) as u32, (end * bytes) as u32).copy_from(piece);
        }
        Ok(())
    }

    /// A reduction, of pieces of its operands in this module's memory.
    pub(in crate::backend::cpu) fn reduce(
        &self,
        kernel: &Kernel,
        words: &[u32],
        inputs: &[Option<Operand<'_>>],
        out: &mut Memory,
    ) -> Result<()> {
        let mut result = zeros(out.len())?;
        let reduce = Reduce::new(kernel, words, elements(inputs))?.with_vectors(self.has_vectors());
        reduce.compute(&mut result, 1);
        fill(out, &result)
    }

    /// Softmax or a norm: some rows after the others, in this module's memory.
    pub(in crate::backend::cpu) fn normalize(
        &self,
        kernel: &Kernel,
        words: &[u32],
        inputs: &[Option<Operand<'_>>],
        out: &mut Memory,
    ) -> Result<()> {
        let normalize = Normalize::new(kernel, words, elements(inputs))?.with_vectors(self.has_vectors());
        let to = match &mut out.place {
            Place::Page(array) => array.bytes(),
            Place::Own(own) => {
                has_room(if normalize.is_in_order() { 0 } else { own.words_mut().len() as u64 * 4 })?;
                normalize.compute(bytemuck::cast_slice_mut(own.words_mut()), DType::F32, 1);
                return Ok(());
            }
        };
        let (count, dtype) = (out.len() as usize, out.dtype());
        if dtype != DType::F32 || !normalize.is_in_order() {
            let mut result = zeros(to.length().div_ceil(4).into())?;
            has_room(out.len() * 4)?;
            let result = &mut bytemuck::cast_slice_mut(&mut result)[..to.length() as usize];
            normalize.compute(result, dtype, 1);
            to.copy_from(result);
            return Ok(());
        }
        let mut piece = vec![0.0; normalize.share().min(count)];
        for first in (0..count).step_by(piece.len().max(1)) {
            let end = count.min(first + piece.len());
            let piece = &mut piece[..end - first];
            normalize.rows(first, piece);
            to.subarray(first as u32 * 4, end as u32 * 4).copy_from(bytemuck::cast_slice(piece));
        }
        Ok(())
    }

    /// A Fourier transform, in this module's own memory.
    pub(in crate::backend::cpu) fn fft(&self, words: &[u32], inputs: &[Option<Operand<'_>>], out: &mut Memory) -> Result<()> {
        let problem = plan::fft::told(words)?;
        let ([values, ..], mut result) = brought(inputs, out.len(), fft::room_bytes(&problem))?;
        fft::plain(&problem, &values, bytemuck::cast_slice_mut(&mut result));
        fill(out, &result)
    }

    /// A convolution: by products where they pay, else in this module's own memory.
    pub(in crate::backend::cpu) fn conv(&self, words: &[u32], inputs: &[Option<Operand<'_>>], out: &mut Memory) -> Result<()> {
        let bias = inputs.get(2).and_then(Option::as_ref);
        let conv = Conv { problem: plan::conv::told(words, bias.is_some())?, images: &[], filters: &[], bias: &[] };
        let by_products = self.has_vectors() && conv.pays_by_products();
        let is_whole = by_products && out.dtype() == DType::F32 && bias.is_none() && conv.problem.activation.is_none();
        if is_whole {
            return self.convolve(&conv, inputs, out);
        }
        let mut made = array(Extent { elements: if by_products { out.len() } else { 0 }, dtype: DType::F32 })?;
        if by_products {
            self.convolve(&conv, inputs, &mut made)?;
        }
        let bias = [None, None, bias.cloned()];
        let ([images, filters, bias], mut result) = brought(if by_products { &bias } else { inputs }, out.len(), 0)?;
        let conv = Conv { images: &images, filters: &filters, bias: &bias, ..conv };
        let values = bytemuck::cast_slice_mut(&mut result);
        if by_products {
            made.shown().f32().copy_to(values);
        }
        for (item, values) in values.chunks_exact_mut(conv.item_elements()).enumerate() {
            if by_products {
                conv.finish_all(item, values);
            } else {
                conv.direct(item, values);
            }
        }
        fill(out, &result)
    }

    /// Products of filters, where they lie, with what windows see: the images as they lie, or some positions after the others, in this module's memory.
    fn convolve(&self, conv: &Conv<'_>, inputs: &[Option<Operand<'_>>], made: &mut Memory) -> Result<()> {
        /// Elements of what windows see that are in memory at once.
        const SEEN: u32 = 1 << 18;
        let [Some(images), Some(filters), ..] = inputs else { return Ok(()) };
        let (images, filters) = (readable(images)?, readable(filters)?);
        let is_plain = conv.is_plain();
        let (m, [k, positions]) = (conv.problem.filters, [conv.problem.terms(), conv.problem.positions()].map(|count| count as u32));
        let block = if is_plain { positions } else { fitting(SEEN as usize, k.max(1)).min(positions) };
        let mut seen = zeros(if is_plain { 0 } else { u64::from(k) * u64::from(block) })?;
        let ([brought, ..], _) = brought(if is_plain { &[] } else { &inputs[..1] }, 0, 0)?;
        let conv = Conv { images: &brought, ..*conv };
        let (image, of_filters, of_result) = [(k, positions), (m, k), (m, positions)].map(|(x, y)| u64::from(x) * u64::from(y)).into();
        for item in 0..conv.problem.batch * conv.problem.groups {
            for (first, n) in parts(positions, block) {
                let (b, start) = if is_plain {
                    (images.clone(), u64::from(item) * image)
                } else {
                    let seen = &mut seen[..(k * n) as usize];
                    conv.see(item as usize, first as usize..(first + n) as usize, bytemuck::cast_slice_mut(seen));
                    (Operand::Own(seen, DType::F32, None), 0)
                };
                let params = Params { m, k, n, lda: k, ldb: n, ldo: positions, alpha: 1.0, batch: 1, ..Params::default() };
                self.crew.compute(&steady(|| {
                    let a = from(filters.shown().f32(), u64::from(item % conv.problem.groups) * of_filters);
                    let b = from(b.shown().f32(), start);
                    let to = from(made.shown().f32(), u64::from(item) * of_result + u64::from(first));
                    job_of(&params, [false; 3], [&a, &b, &self.none], &to, None, None)
                }));
            }
        }
        Ok(())
    }

    /// A pool, in this module's own memory.
    pub(in crate::backend::cpu) fn pool(
        &self,
        kernel: &Kernel,
        words: &[u32],
        inputs: &[Option<Operand<'_>>],
        out: &mut Memory,
    ) -> Result<()> {
        let problem = plan::pool::told(kernel, words, out.dtype())?;
        let ([values, ..], mut result) = brought(inputs, out.len(), pool::room_bytes(&problem))?;
        let planes = (problem.planes as usize).max(1);
        let (from, to) = (values.len() / planes, result.len() / planes);
        for (plane, result) in result.chunks_exact_mut(to).enumerate() {
            pool::plane(&problem, &values[plane * from..][..from], (plane * from) as u32, result);
        }
        fill(out, &result)
    }
}

/// What an elementwise program reads.
fn elements<'a>(inputs: &[Option<Operand<'a>>]) -> Vec<Elements<'a>> {
    let of = |values: &Operand<'a>| match values {
        Operand::Page(page, _) => values.words().map_or_else(|| Elements::Page(page.bits(), page.dtype()), Elements::Own),
        Operand::Own(words, ..) => Elements::Own(words),
    };
    inputs.iter().flatten().map(of).collect()
}
