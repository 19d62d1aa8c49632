//! Softmax and the norms on the CPU: a row at a time, which is read once and stays in the cache while it is put into proportion.

#[cfg(not(target_arch = "wasm32"))]
mod columns;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::fold::{Folding, State, pivot};
use super::lanes::exp;
use super::map::{Elements, Map, Registers};
use super::reduce::{BLOCK, SHARE, each};
#[cfg(target_arch = "wasm32")]
use super::wasm::vectorized;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::ops::normalize::Form;
use crate::ops::reduce::Fold;

/// A kernel with what it is told and what it reads.
pub(super) struct Normalize<'a> {
    map: Map<'a>,
    form: Form,
    /// Values of each row.
    count: usize,
    epsilon: f64,
    /// The first input that is none of the values', and how many scales and biases there are; the places of the result come behind.
    own: usize,
    beside: usize,
    /// Rows whose neighbours lie beside one another, in which order all elements are then; 0 if neighbours are those of one row.
    #[cfg(not(target_arch = "wasm32"))]
    columns: usize,
}

impl<'a> Normalize<'a> {
    pub(super) fn new(kernel: &'a Kernel, words: &'a [u32], inputs: Vec<Elements<'a>>) -> Result<Self> {
        let map = Map::new(kernel, words, inputs)?;
        let [count, form, own, beside] = ["COUNT", "FORM", "INPUTS", "BESIDE"].map(|name| kernel.constant(name) as usize);
        let form = *Form::ALL.get(form).ok_or_else(|| Error::internal("a norm of no known kind"))?;
        let epsilon = f32::from_bits(kernel.constant("EPSILON")).into();
        Ok(Self {
            map,
            form,
            count,
            epsilon,
            own,
            beside,
            #[cfg(not(target_arch = "wasm32"))]
            columns: kernel.constant("COLUMNS") as usize,
        })
    }

    /// The same by the widest vectors that the CPU has, or by plain ones.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn with_vectors(self, simd: bool) -> Self {
        Self { map: self.map.with_vectors(simd), ..self }
    }

    /// Elements of as many rows as make a share.
    pub(super) fn share(&self) -> usize {
        (SHARE / self.count).max(1) * self.count
    }

    /// Whether elements of the result lie in the order of the values.
    pub(super) fn is_in_order(&self) -> bool {
        self.map.is_in_order(self.own + self.beside)
    }

    /// Computes all elements of a result of that type.
    pub(super) fn compute(&self, out: &mut [u8], dtype: DType, threads: usize) {
        let elements = self.map.elements();
        let threads = if elements > 2 * SHARE { threads } else { 1 };
        #[cfg(not(target_arch = "wasm32"))]
        if self.columns > 0 {
            return self.planes(&mut bytemuck::cast_slice_mut(out)[..elements], threads);
        }
        let together = self.share();
        if dtype == DType::F32 && self.is_in_order() {
            let out: &mut [f32] = &mut bytemuck::cast_slice_mut(out)[..elements];
            each(out, together, threads, |share, out| self.rows(share * together, out));
            return;
        }
        let mut made = vec![0.0f32; elements];
        each(&mut made, together, threads, |share, made| self.rows(share * together, made));
        let places = self.own + self.beside;
        if dtype == DType::F32 {
            let out: &mut [u32] = bytemuck::cast_slice_mut(out);
            self.map.each_place(places, bytemuck::cast_slice(&made), |place, value| out[place] = value);
            return;
        }
        let out: &mut [f16] = bytemuck::cast_slice_mut(out);
        if self.is_in_order() {
            out[..elements].convert_from_f32_slice(&made);
        } else {
            self.map.each_place(places, bytemuck::cast_slice(&made), |place, value| out[place] = f16::from_f32(f32::from_bits(value)));
        }
    }

    /// Rows from that with the value of this number on, by the widest vectors that the CPU has if that was asked for.
    pub(super) fn rows(&self, first: usize, out: &mut [f32]) {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.map.has_vectors() {
            struct Part<'a, 'b>(&'a Normalize<'b>, usize, &'a mut [f32]);

            impl pulp::WithSimd for Part<'_, '_> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    self.0.each_row(self.1, self.2);
                }
            }

            return pulp::Arch::new().dispatch(Part(self, first, out));
        }
        self.each_row(first, out);
    }

    #[inline(always)]
    fn each_row(&self, first: usize, out: &mut [f32]) {
        let mut registers = Registers::default();
        let mut room = Vec::new();
        for (number, row) in out.chunks_exact_mut(self.count).enumerate() {
            let at = first + number * self.count;
            #[cfg(target_arch = "wasm32")]
            if self.map.has_vectors() && matches!(self.form, Form::Softmax) {
                let values = self.map.stored(at, self.count).unwrap_or_else(|| {
                    room.resize(self.count, 0);
                    self.map.compute_with(&mut registers, at, bytemuck::cast_slice_mut(&mut room));
                    &room
                });
                if vectorized::softmax(bytemuck::cast_slice(values), row).is_some() {
                    continue;
                }
            }
            self.map.compute_with(&mut registers, at, bytemuck::cast_slice_mut(row));
            self.proportion(row);
            for input in 0..self.beside {
                let beside: &[f32] = bytemuck::cast_slice(match self.map.lying(self.own + input, at, self.count) {
                    Some(words) => words,
                    None => {
                        room.resize(self.count, 0);
                        self.map.read(self.own + input, at, &mut room);
                        &room
                    }
                });
                #[cfg(target_arch = "wasm32")]
                if self.map.has_vectors() && vectorized::combine(row, beside, input > 0).is_some() {
                    continue;
                }
                if input == 0 {
                    row.iter_mut().zip(beside).for_each(|(value, scale)| *value *= scale);
                } else {
                    row.iter_mut().zip(beside).for_each(|(value, bias)| *value += bias);
                }
            }
        }
    }

    #[inline(always)]
    fn folded(&self, row: &[f32], fold: Fold) -> State {
        // Natively all of this is compiled for the vectors that the CPU has.
        #[cfg(target_arch = "wasm32")]
        let has_vectors = self.map.has_vectors();
        #[cfg(not(target_arch = "wasm32"))]
        let has_vectors = false;
        let folding = Folding { fold, dtype: DType::F32, divisor: 1.0, has_vectors };
        let mut state = folding.empty();
        for values in row.chunks(BLOCK) {
            state = folding.join(state, folding.block(bytemuck::cast_slice(values), 0));
        }
        state
    }

    /// Puts in the place of each value the power by how far it is above a number.
    #[inline(always)]
    fn powers(&self, row: &mut [f32], from: f32) {
        for value in row {
            *value = exp(*value - from);
        }
    }

    /// Puts in the place of each value how far it is above a number in two parts, times a factor.
    #[inline(always)]
    fn scale(&self, row: &mut [f32], [from, rest]: [f32; 2], by: f32) {
        #[cfg(target_arch = "wasm32")]
        if self.map.has_vectors() && vectorized::scale(row, [from, rest], by).is_some() {
            return;
        }
        for value in row {
            *value = ((*value - from) - rest) * by;
        }
    }

    #[inline(always)]
    fn proportion(&self, row: &mut [f32]) {
        match self.form {
            Form::Softmax => {
                let [largest, ..] = self.folded(row, Fold::Max);
                let about = pivot(largest) as f32;
                self.powers(row, about);
                let [sum, ..] = self.folded(row, Fold::Sum);
                // No number is in proportion to an infinity, to NaN, or to zeros alone.
                let by = if largest.is_finite() { (1.0 / sum) as f32 } else { f32::NAN };
                self.scale(row, [0.0; 2], by);
            }
            Form::LogSoftmax => {
                let [largest, sum, _] = self.folded(row, Fold::LogSumExp);
                let (from, by) = (largest as f32, if largest.is_finite() { sum.ln() as f32 } else { f32::NAN });
                self.scale(row, [from, by], 1.0);
            }
            Form::LayerNorm => {
                let [count, mean, spread] = self.folded(row, Fold::Var);
                let by = 1.0 / (spread / count + self.epsilon).sqrt();
                if is_beyond(by) {
                    row.iter_mut().for_each(|value| *value = ((f64::from(*value) - mean) * by) as f32);
                    return;
                }
                let by = by as f32;
                // The mean in two parts, since it is more exact than a number of f32.
                let from = mean as f32;
                let rest = (mean - f64::from(from)) as f32;
                self.scale(row, [from, rest], by);
            }
            Form::RmsNorm => {
                let [squares, ..] = self.folded(row, Fold::Norm);
                let by = 1.0 / (squares / self.count as f64 + self.epsilon).sqrt();
                if is_beyond(by) {
                    row.iter_mut().for_each(|value| *value = (f64::from(*value) * by) as f32);
                    return;
                }
                self.scale(row, [0.0; 2], by as f32);
            }
        }
    }
}

/// Whether a factor is a number, but none of f32.
#[inline(always)]
fn is_beyond(by: f64) -> bool {
    by > f32::MAX.into() && by < f64::INFINITY
}
