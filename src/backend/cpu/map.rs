//! Elementwise programs on the CPU: a block of elements goes through one step after the other, so that each step is a loop over a few
//! kilobytes that stay in the cache, which the compiler turns into vector instructions.

use half::f16;
use half::slice::HalfFloatSliceExt;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen::prelude::wasm_bindgen;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Source};
use crate::ops::elementwise::{Kind, Step};
#[cfg(not(target_arch = "wasm32"))]
use crate::plan::map::Reading;

/// Elements of a block. In the browser each brings a call of JavaScript for each input, and is longer.
const BLOCK: usize = if cfg!(target_arch = "wasm32") { 2048 } else { 512 };

/// An input's elements, in this module's memory, or in the page's: there an array of words, or of the bits of f16, and which it is.
#[cfg(not(target_arch = "wasm32"))]
pub(super) type Elements<'a> = &'a [u8];
#[cfg(target_arch = "wasm32")]
pub(super) type Elements<'a> = (js_sys::Object, DType);

#[cfg(target_arch = "wasm32")]
#[wasm_bindgen(module = "/src/backend/cpu/wasm/gather.js")]
extern "C" {
    /// Elements of an input as words, 0 where it has none; of no input 1 where it has some.
    fn gather(elements: Option<&js_sys::Object>, words: &[u32], rank: usize, at: u32, is_bounded: bool, first: usize, out: &mut [u32]);
}

/// A kernel with what it is told and what it reads.
pub(super) struct Map<'a> {
    source: &'a Source,
    /// As the shaders have them (`src/plan/map.rs`).
    words: &'a [u32],
    rank: usize,
    scalars: usize,
    inputs: Vec<Elements<'a>>,
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    simd: bool,
}

impl<'a> Map<'a> {
    pub(super) fn new(kernel: &'a Kernel, words: &'a [u32], inputs: Vec<Elements<'a>>) -> Result<Self> {
        let source = kernel.source.as_deref().ok_or_else(|| Error::internal("an elementwise kernel without a program"))?;
        let [rank, scalars] = ["RANK", "SCALARS"].map(|name| kernel.constant(name) as usize);
        Ok(Self {
            source,
            words,
            rank,
            scalars,
            inputs,
            #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
            simd: false,
        })
    }

    /// The same by the widest vectors that the CPU has, or by plain ones.
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    pub(super) fn with_vectors(self, simd: bool) -> Self {
        Self { simd, ..self }
    }

    /// Whether by the widest vectors.
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    pub(super) fn has_vectors(&self) -> bool {
        self.simd
    }

    /// Elements of the result.
    pub(super) fn elements(&self) -> usize {
        self.words[0] as usize
    }

    /// What the elements of the result are.
    pub(super) fn result(&self) -> DType {
        self.source.result
    }

    /// Nothing lies in this module's memory.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn stored(&self, _first: usize, _count: usize) -> Option<&[u32]> {
        None
    }

    #[cfg(target_arch = "wasm32")]
    fn lying(&self, _input: usize, _first: usize, _count: usize) -> Option<&'a [u32]> {
        None
    }

    /// Elements that are those of an input, one behind the other, as they lie there.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn stored(&self, first: usize, count: usize) -> Option<&[u32]> {
        let [Step::Input(0)] = self.source.program.steps[..] else { return None };
        if self.source.inputs[0].dtype == self.result() { self.lying(0, first, count) } else { None }
    }

    /// The words of an input that belong to elements, if they lie in that order, one behind the other.
    #[cfg(not(target_arch = "wasm32"))]
    fn lying(&self, input: usize, first: usize, count: usize) -> Option<&'a [u32]> {
        let Reading { at, is_bounded: false, dtype, .. } = self.source.inputs[input] else { return None };
        if dtype == DType::F16 || count == 0 {
            return None;
        }
        let words: &[u32] = bytemuck::cast_slice(self.inputs[input]);
        let start = self.words[at as usize];
        let mut row = 1;
        for dimension in (0..self.rank).rev() {
            // Beyond the dimensions that lie in order, both ends have to be in the same row.
            if self.stride(input, dimension) as usize != row && self.size(dimension) > 1 {
                let (ends, later) = ([first / row, (first + count - 1) / row], row);
                if ends[0] != ends[1] {
                    return None;
                }
                let mut rest = ends[0];
                let mut place = start.wrapping_add((first % later) as u32);
                for dimension in (0..=dimension).rev() {
                    let coordinate = rest % self.size(dimension);
                    rest /= self.size(dimension);
                    place = place.wrapping_add((coordinate as u32).wrapping_mul(self.stride(input, dimension)));
                }
                return words.get(place as usize..)?.get(..count);
            }
            row *= self.size(dimension);
        }
        words.get(start as usize + first..)?.get(..count)
    }

    /// Computes the elements from `first` on, as many as there is room for, by the widest vectors that the CPU has if that was asked for.
    pub(super) fn compute(&self, first: usize, out: &mut [u8]) {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.simd {
            struct Part<'a, 'b>(&'a Map<'b>, usize, &'a mut [u8]);

            impl pulp::WithSimd for Part<'_, '_> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    self.0.blocks(self.1, self.2);
                }
            }

            return pulp::Arch::new().dispatch(Part(self, first, out));
        }
        self.blocks(first, out);
    }

    #[inline(always)]
    fn blocks(&self, first: usize, out: &mut [u8]) {
        let steps = &self.source.program.steps;
        let mut registers = vec![[0u32; BLOCK]; steps.len()];
        // Inputs that are read where they lie.
        let mut lying: Vec<Option<&[u32]>> = vec![None; steps.len()];
        let result = self.source.result;
        let bytes = result.bytes() as usize;
        for (number, out) in out.chunks_mut(BLOCK * bytes).enumerate() {
            let (first, count) = (first + number * BLOCK, out.len() / bytes);
            for (step, what) in steps.iter().enumerate() {
                let is_last = step + 1 == steps.len();
                if let Step::Input(input) = *what
                    && !is_last
                {
                    lying[step] = self.lying(usize::from(input), first, count);
                    if lying[step].is_some() {
                        continue;
                    }
                }
                let (before, after) = registers.split_at_mut(step);
                let Some(register) = after.first_mut() else { return };
                let to = if is_last && result != DType::F16 { bytemuck::cast_slice_mut(out) } else { &mut register[..count] };
                self.step(*what, first, |operand| lying[operand].unwrap_or_else(|| &before[operand][..count]), to);
            }
            if result == DType::F16 {
                let Some(last) = registers.last() else { return };
                let to: &mut [f16] = bytemuck::cast_slice_mut(out);
                to.convert_from_f32_slice(bytemuck::cast_slice(&last[..count]));
            }
        }
    }

    /// A step, whose operands' values `register` gives.
    #[inline(always)]
    fn step<'r>(&self, step: Step, first: usize, register: impl Fn(usize) -> &'r [u32], out: &mut [u32]) {
        let program = &self.source.program;
        let register = |operand: u8| register(usize::from(operand));
        match step {
            Step::Input(input) => self.read(usize::from(input), first, out),
            Step::Inside(input) => self.inside(usize::from(input), first, out),
            Step::Scalar(scalar, _) => out.fill(self.words[self.scalars + usize::from(scalar)]),
            Step::Index => {
                for (index, out) in (self.words[1].wrapping_add(first as u32)..).zip(out) {
                    *out = index;
                }
            }
            Step::Apply(function, operands) => {
                let registers = operands.map(register);
                function.apply(program.kind(operands[0]), &registers[..function.arity()], out);
            }
            Step::Select([condition, no, yes]) => {
                let [condition, no, yes] = [condition, no, yes].map(register);
                for (((out, &condition), &no), &yes) in out.iter_mut().zip(condition).zip(no).zip(yes) {
                    *out = if condition != 0 { yes } else { no };
                }
            }
            Step::Cast(operand, to) => cast(register(operand), program.kind(operand), to, out),
        }
    }

    /// Whether an input's elements lie in the order of the result's.
    pub(super) fn is_in_order(&self, input: usize) -> bool {
        let mut row = 1;
        (0..self.rank).rev().all(|dimension| {
            let expected = row;
            row *= self.size(dimension);
            self.size(dimension) == 1 || self.stride(input, dimension) as usize == expected
        }) && self.words[self.source.inputs[input].at as usize] == 0
    }

    /// Does something for each value with the place of an input's element that belongs to it.
    pub(super) fn each_place(&self, input: usize, values: &[u32], mut run: impl FnMut(usize, u32)) {
        let mut coordinates = [0; crate::ops::map::MOST_DIMENSIONS];
        let mut place = self.words[self.source.inputs[input].at as usize];
        for &value in values {
            run(place as usize, value);
            // The next step, and back to the start of each dimension that has come to its end.
            for dimension in (0..self.rank).rev() {
                let stride = self.stride(input, dimension);
                coordinates[dimension] += 1;
                place = place.wrapping_add(stride);
                if coordinates[dimension] < self.size(dimension) {
                    break;
                }
                place = place.wrapping_sub(stride.wrapping_mul(coordinates[dimension] as u32));
                coordinates[dimension] = 0;
            }
        }
    }

    /// Elements of an input; 0 where it has none.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn read(&self, input: usize, first: usize, out: &mut [u32]) {
        // What the caller gave in f16 is kept in f32 here.
        let (elements, stored) = &self.inputs[input];
        self.gather(Some(elements), input, first, out);
        if *stored == DType::F16 {
            for word in out {
                *word = f16::from_bits(*word as u16).to_f32().to_bits();
            }
        }
    }

    /// Where an input has elements.
    #[cfg(target_arch = "wasm32")]
    fn inside(&self, input: usize, first: usize, out: &mut [u32]) {
        self.gather(None, input, first, out);
    }

    #[cfg(target_arch = "wasm32")]
    fn gather(&self, elements: Option<&js_sys::Object>, input: usize, first: usize, out: &mut [u32]) {
        let reading = &self.source.inputs[input];
        gather(elements, self.words, self.rank, reading.at, reading.is_bounded, first, out);
    }

    /// Where an input has elements.
    #[cfg(not(target_arch = "wasm32"))]
    fn inside(&self, input: usize, first: usize, out: &mut [u32]) {
        self.runs(input, first, out, |_, inside, out| out.fill(inside.into()));
    }

    /// Elements of an input; 0 where it has none.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn read(&self, input: usize, first: usize, out: &mut [u32]) {
        let (bytes, stride) = (self.inputs[input], self.stride(input, self.rank.saturating_sub(1)));
        if self.source.inputs[input].dtype == DType::F16 {
            let values: &[f16] = bytemuck::cast_slice(bytes);
            self.runs(input, first, out, |at, inside, out| {
                if !inside {
                    out.fill(0);
                } else if stride == 1 {
                    values[at as usize..][..out.len()].convert_to_f32_slice(bytemuck::cast_slice_mut(out));
                } else {
                    along(at, stride, out, |at| values[at].to_f32().to_bits());
                }
            });
        } else {
            let values: &[u32] = bytemuck::cast_slice(bytes);
            self.runs(input, first, out, |at, inside, out| {
                if !inside {
                    out.fill(0);
                } else if stride == 1 {
                    out.copy_from_slice(&values[at as usize..][..out.len()]);
                } else if stride == 0 {
                    out.fill(values[at as usize]);
                } else {
                    along(at, stride, out, |at| values[at]);
                }
            });
        }
    }

    fn size(&self, dimension: usize) -> usize {
        self.words[2 + dimension] as usize
    }

    fn stride(&self, input: usize, dimension: usize) -> u32 {
        self.words[self.source.inputs[input].at as usize + 1 + dimension]
    }

    /// Cuts the elements from `first` on into runs along the innermost dimension that are all inside of an input's bounds or all outside,
    /// and gives each its first element's place.
    #[cfg(not(target_arch = "wasm32"))]
    fn runs(&self, input: usize, first: usize, mut out: &mut [u32], mut run: impl FnMut(u32, bool, &mut [u32])) {
        let Reading { at, is_bounded, .. } = self.source.inputs[input];
        let (rank, at) = (self.rank, at as usize);
        let bounds = |dimension: usize| {
            let bound = |edge: usize| self.words[at + 1 + rank * (edge + 1) + dimension] as usize;
            if is_bounded { [bound(0), bound(1)] } else { [0, self.size(dimension)] }
        };
        let mut coordinates = [0; crate::ops::map::MOST_DIMENSIONS];
        let mut rest = first;
        for dimension in (0..rank).rev() {
            coordinates[dimension] = rest % self.size(dimension);
            rest /= self.size(dimension);
        }
        let last = rank.saturating_sub(1);
        let [begin, end] = bounds(last);
        while !out.is_empty() {
            let place = coordinates[last];
            let others = (0..last).all(|dimension| {
                let [begin, end] = bounds(dimension);
                (begin..end).contains(&coordinates[dimension])
            });
            // Up to the row's end, or to where the bounds begin or end.
            let edge = [begin, end, self.size(last)].into_iter().filter(|edge| *edge > place).min().unwrap_or(place + 1);
            let length = (edge - place).min(out.len());
            let start = (0..rank).fold(self.words[at], |at, dimension| {
                at.wrapping_add((coordinates[dimension] as u32).wrapping_mul(self.stride(input, dimension)))
            });
            let (now, later) = out.split_at_mut(length);
            run(start, others && (begin..end).contains(&place), now);
            out = later;
            coordinates[last] += length;
            for dimension in (1..rank).rev() {
                if coordinates[dimension] == self.size(dimension) {
                    coordinates[dimension] = 0;
                    coordinates[dimension - 1] += 1;
                }
            }
        }
    }
}

/// Elements a stride apart.
#[cfg(not(target_arch = "wasm32"))]
fn along(at: u32, stride: u32, out: &mut [u32], value: impl Fn(usize) -> u32) {
    let mut at = at;
    for out in out {
        *out = value(at as usize);
        at = at.wrapping_add(stride);
    }
}

/// Values of one kind as another: fractions are cut off, what does not fit is the nearest that does, and NaN is 0.
fn cast(from: &[u32], is: Kind, to: Kind, out: &mut [u32]) {
    let mut each = |f: fn(u32) -> u32| out.iter_mut().zip(from).for_each(|(out, &word)| *out = f(word));
    match (is, to) {
        (Kind::F32, Kind::I32) => each(|word| (f32::from_bits(word) as i32).cast_unsigned()),
        (Kind::F32, Kind::U32) => each(|word| f32::from_bits(word) as u32),
        (Kind::F32, Kind::Bool) => each(|word| (f32::from_bits(word) != 0.0).into()),
        (Kind::I32, Kind::F32) => each(|word| (word.cast_signed() as f32).to_bits()),
        (Kind::U32 | Kind::Bool, Kind::F32) => each(|word| (word as f32).to_bits()),
        (Kind::I32 | Kind::U32, Kind::Bool) => each(|word| (word != 0).into()),
        _ => out.copy_from_slice(from),
    }
}
