//! Reductions on the CPU: blocks of values, as the elementwise twin computes them, become states, which are joined in order.
//!
//! Blocks are folded in lanes, which the compiler turns into vector instructions, and states are of double precision. How values are cut
//! depends on the shape alone, so that the result is the same on any number of threads.

use super::fold::{Folding, State};
use super::map::{Elements, Map};
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::ops::reduce::Fold;

/// Values of a block.
pub(super) const BLOCK: usize = 4096;
/// Columns that are folded beside one another, so many rows at a time.
const COLUMNS: usize = 1024;
const HEIGHT: usize = if cfg!(target_arch = "wasm32") { 16 } else { 64 };
/// Values of a share of the work: some tens of microseconds.
pub(super) const SHARE: usize = 1 << 16;
/// Shares that are enough for any number of threads.
const MANY: usize = 64;

/// A kernel with what it is told and what it reads.
pub(super) struct Reduce<'a> {
    map: Map<'a>,
    folding: Folding,
    rows: usize,
    /// Values of each row.
    count: usize,
    is_in_columns: bool,
}

impl<'a> Reduce<'a> {
    pub(super) fn new(kernel: &'a Kernel, words: &'a [u32], inputs: Vec<Elements<'a>>) -> Result<Self> {
        let map = Map::new(kernel, words, inputs)?;
        let [rows, count, columns, fold] = ["ROWS", "COUNT", "COLUMNS", "FOLD"].map(|name| kernel.constant(name) as usize);
        let fold = *Fold::ALL.get(fold).ok_or_else(|| Error::internal("a reduction of no known kind"))?;
        let divisor = f32::from_bits(kernel.constant("DIVISOR")).into();
        let folding = Folding { fold, dtype: map.result(), divisor };
        Ok(Self { map, folding, rows, count, is_in_columns: columns != 0 })
    }

    /// The same by the widest vectors that the CPU has, or by plain ones.
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    pub(super) fn with_vectors(self, simd: bool) -> Self {
        Self { map: self.map.with_vectors(simd), ..self }
    }

    /// Computes all results. `share` runs a function for each piece of the second argument, given its number: on as many threads as there are,
    /// or one after the other.
    pub(super) fn compute(&self, out: &mut [u32], on_threads: bool) {
        let out = &mut out[..self.rows];
        // As many rows as make a share, of columns as many as are folded beside one another.
        let together = if self.is_in_columns { COLUMNS.min(self.rows) } else { (SHARE / self.count).clamp(1, self.rows) };
        // States of columns take more memory than a few values do.
        let share = if self.is_in_columns { 4 * SHARE } else { SHARE };
        let part = if self.rows.div_ceil(together) >= MANY { self.count } else { (share / together).max(1) };
        let parts = self.count.div_ceil(part);
        let on_threads = on_threads && self.rows * self.count > 2 * SHARE;
        let states = |at: usize| {
            let (first, number) = (at / parts * together, at % parts);
            let rows = [first, (first + together).min(self.rows)];
            self.states(rows, [number * part, ((number + 1) * part).min(self.count)])
        };
        let finish = |out: &mut [u32], states: &[State]| {
            for (out, state) in out.iter_mut().zip(states) {
                *out = self.folding.finish(*state);
            }
        };
        if parts == 1 {
            each(out, together, on_threads, |number, out| finish(out, &states(number)));
            return;
        }
        let mut made = vec![Vec::new(); self.rows.div_ceil(together) * parts];
        each(&mut made, 1, on_threads, |number, made| made[0] = states(number));
        for (out, parts) in out.chunks_mut(together).zip(made.chunks_mut(parts)) {
            let [first, others @ ..] = parts else { return };
            for other in others {
                first.iter_mut().zip(other).for_each(|(state, other)| *state = self.folding.join(*state, *other));
            }
            finish(out, first);
        }
    }

    /// The states of some rows, of some values of each, by the widest vectors that the CPU has if that was asked for.
    fn states(&self, rows: [usize; 2], values: [usize; 2]) -> Vec<State> {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.map.has_vectors() {
            struct Part<'a, 'b>(&'a Reduce<'b>, [usize; 2], [usize; 2]);

            impl pulp::WithSimd for Part<'_, '_> {
                type Output = Vec<State>;

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) -> Vec<State> {
                    self.0.folded(self.1, self.2)
                }
            }

            return pulp::Arch::new().dispatch(Part(self, rows, values));
        }
        self.folded(rows, values)
    }

    #[inline(always)]
    fn folded(&self, [first, end]: [usize; 2], [begin, behind]: [usize; 2]) -> Vec<State> {
        let mut states = vec![self.folding.empty(); end - first];
        let mut buffer = Vec::new();
        if self.is_in_columns {
            let width = end - first;
            for from in (begin..behind).step_by(HEIGHT) {
                let height = HEIGHT.min(behind - from);
                // Where they lie, rows are as far apart as there are columns; computed ones are not.
                let (values, stride) = match self.map.stored(from * self.rows + first, (height - 1) * self.rows + width) {
                    Some(values) => (values, self.rows),
                    None => {
                        buffer.resize(height * width, 0);
                        for (row, out) in buffer.chunks_exact_mut(width).enumerate() {
                            self.map.compute((from + row) * self.rows + first, bytemuck::cast_slice_mut(out));
                        }
                        (&buffer[..], width)
                    }
                };
                self.folding.columns(&mut states, values, stride, from);
            }
            return states;
        }
        for (row, state) in (first..end).zip(&mut states) {
            for from in (begin..behind).step_by(BLOCK) {
                let values = self.values(row * self.count + from, BLOCK.min(behind - from), &mut buffer);
                *state = self.folding.add(*state, values, from);
            }
        }
        states
    }

    /// Values one behind the other: where they lie, if nothing is to be computed of them.
    fn values<'b>(&'b self, first: usize, count: usize, buffer: &'b mut Vec<u32>) -> &'b [u32] {
        if let Some(values) = self.map.stored(first, count) {
            return values;
        }
        buffer.resize(count, 0);
        self.map.compute(first, bytemuck::cast_slice_mut(buffer));
        buffer
    }
}

/// Runs a function for each piece of so many items, given its number.
pub(super) fn each<T: Send>(items: &mut [T], size: usize, on_threads: bool, run: impl Fn(usize, &mut [T]) + Sync) {
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    if on_threads {
        use rayon::prelude::*;
        items.par_chunks_mut(size).enumerate().for_each(|(number, items)| run(number, items));
        return;
    }
    let _ = on_threads;
    items.chunks_mut(size).enumerate().for_each(|(number, items)| run(number, items));
}
