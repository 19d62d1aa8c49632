//! Reductions on the CPU: blocks of values, as the elementwise twin computes them, become states, which are joined in order.
//!
//! Blocks are folded in lanes, which the compiler turns into vector instructions, and states are of double precision. How values are cut
//! depends on the shape alone where it matters, so that the result is the same on any number of threads.

#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
use super::crew;
use super::fold::{Folding, State};
use super::lanes::{LANES, Sum, over_rows};
use super::map::{Elements, Map, Registers};
#[cfg(target_arch = "wasm32")]
use super::wasm::vectorized;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::ops::reduce::Fold;

/// Values of a block: a lane adds up 64 of them.
pub(super) const BLOCK: usize = 64 * LANES;
/// Columns that are folded beside one another, so many rows at a time: of rows as long as the system reads ahead.
const COLUMNS: usize = if cfg!(target_arch = "wasm32") { 1024 } else { 4096 };
const HEIGHT: usize = if cfg!(target_arch = "wasm32") { 16 } else { 64 };
/// Values of a share of the work: some tens of microseconds.
pub(super) const SHARE: usize = 1 << 16;
/// Shares that are enough for any number of threads.
const MANY: usize = 64;
/// Parts of columns, whose states take more memory than a few values do.
const PARTS: usize = 16;

/// What is known of some rows: the less, the more of them there may be.
enum Folded {
    /// States in single words, which are the results.
    Words(Vec<u32>),
    /// Sums of f32.
    Sums(Vec<f64>),
    States(Vec<State>),
}

/// A kernel with what it is told and what it reads.
pub(super) struct Reduce<'a> {
    map: Map<'a>,
    /// The same values as bytes, where they are truths that are counted, many of each row.
    #[cfg(not(target_arch = "wasm32"))]
    truths: Option<Map<'a>>,
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
        let folding = Folding { fold, dtype: map.result(), divisor, has_vectors: false };
        Ok(Self {
            #[cfg(not(target_arch = "wasm32"))]
            truths: if fold == Fold::Sum && count >= BLOCK { map.of_truths() } else { None },
            map,
            folding,
            rows,
            count,
            is_in_columns: columns != 0,
        })
    }

    /// The same by the widest vectors that the CPU has, or by plain ones.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn with_vectors(self, simd: bool) -> Self {
        Self {
            map: self.map.with_vectors(simd),
            #[cfg(not(target_arch = "wasm32"))]
            truths: self.truths.map(|truths| truths.with_vectors(simd)),
            folding: Folding { has_vectors: simd, ..self.folding },
            ..self
        }
    }

    /// Computes all results, on so many threads at most.
    pub(super) fn compute(&self, out: &mut [u32], threads: usize) {
        let out = &mut out[..self.rows];
        // As many rows as make a share, of columns as many as are folded beside one another.
        let together = if self.is_in_columns { self.columns() } else { (SHARE / self.count).clamp(1, self.rows) };
        let threads = if self.rows * self.count > 2 * SHARE { threads } else { 1 };
        let part = match self.rows.div_ceil(together) {
            MANY.. => self.count,
            _ if threads == 1 && self.folding.joins_exactly() => self.count,
            _ if self.is_in_columns => self.count.div_ceil(PARTS).max(4 * SHARE / together).next_multiple_of(HEIGHT),
            _ => (SHARE / together).max(1),
        };
        let parts = self.count.div_ceil(part);
        let states = |at: usize| {
            let (first, number) = (at / parts * together, at % parts);
            // Ends of almost 2³² would be beyond what counts them in the browser.
            let (rows, begin) = (together.min(self.rows - first), number * part);
            self.states([first, first + rows], [begin, begin + part.min(self.count - begin)])
        };
        if parts == 1 {
            each(out, together, threads, |number, out| self.finish(states(number), out));
            return;
        }
        let mut made = vec![Vec::new(); self.rows.div_ceil(together) * parts];
        each(&mut made, 1, threads, |number, made| made[0] = self.as_states(states(number)));
        for (out, parts) in out.chunks_mut(together).zip(made.chunks_mut(parts)) {
            let [first, others @ ..] = parts else { return };
            for other in others {
                first.iter_mut().zip(other).for_each(|(state, other)| *state = self.folding.join(*state, *other));
            }
            self.folding.finish_all(first, out);
        }
    }

    fn finish(&self, folded: Folded, out: &mut [u32]) {
        match folded {
            Folded::Words(words) => out.copy_from_slice(&words),
            Folded::Sums(sums) => {
                let divisor = if self.folding.fold == Fold::Mean { self.folding.divisor } else { 1.0 };
                out.iter_mut().zip(sums).for_each(|(out, sum)| *out = ((sum / divisor) as f32).to_bits());
            }
            Folded::States(states) => self.folding.finish_all(&states, out),
        }
    }

    fn as_states(&self, folded: Folded) -> Vec<State> {
        match folded {
            Folded::Words(words) => words.into_iter().map(|word| self.folding.state_of_word(word)).collect(),
            Folded::Sums(sums) => sums.into_iter().map(|sum| [sum, 0.0, 0.0]).collect(),
            Folded::States(states) => states,
        }
    }

    /// What is known of some rows, of some values of each, by the widest vectors that the CPU has if that was asked for.
    fn states(&self, rows: [usize; 2], values: [usize; 2]) -> Folded {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.map.has_vectors() {
            struct Part<'a, 'b>(&'a Reduce<'b>, [usize; 2], [usize; 2]);

            impl pulp::WithSimd for Part<'_, '_> {
                type Output = Folded;

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) -> Folded {
                    self.0.folded(self.1, self.2)
                }
            }

            return pulp::Arch::new().dispatch(Part(self, rows, values));
        }
        self.folded(rows, values)
    }

    #[inline(always)]
    fn folded(&self, [first, end]: [usize; 2], [begin, behind]: [usize; 2]) -> Folded {
        if self.is_in_columns {
            return self.fold_columns([first, end], [begin, behind]);
        }
        #[cfg(not(target_arch = "wasm32"))]
        if [begin, behind] == [0, self.count]
            && let Some(rows) = self.map.stored(first * self.count, (end - first) * self.count)
            && let Some(places) = self.folding.places(rows, self.count)
        {
            return Folded::Words(places);
        }
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(truths) = &self.truths {
            return Folded::Words(self.counts(truths, [first, end], [begin, behind]));
        }
        let mut states = vec![self.folding.empty(); end - first];
        let mut ahead = Ahead::default();
        // Short rows are not worth asking for one by one.
        let all = self.map.stored(first * self.count + begin, (end - first - 1) * self.count + behind - begin);
        // Where nothing is rounded, it is the same in longer blocks.
        let block = if all.is_some() && self.folding.is_exact() { SHARE } else { BLOCK };
        // Whole rows lie one behind the other.
        let last = if [begin, behind] == [0, self.count] { end * self.count } else { 0 };
        for (row, state) in (first..end).zip(&mut states) {
            for from in (begin..behind).step_by(block) {
                let (at, count) = (row * self.count + from, block.min(behind - from));
                let values = match all {
                    Some(all) => &all[at - first * self.count - begin..][..count],
                    None => self.values([at, at + count], last, &mut ahead),
                };
                *state = self.folding.add(*state, values, from);
            }
        }
        Folded::States(states)
    }

    /// How many truths there are in each of some rows.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    fn counts(&self, truths: &Map<'_>, [first, end]: [usize; 2], [begin, behind]: [usize; 2]) -> Vec<u32> {
        /// Counts at once, none of which a block is too long for.
        const AT_ONCE: usize = 64;
        const BLOCK: usize = AT_ONCE * u8::MAX as usize;
        let (mut bytes, mut registers) = (vec![0; BLOCK.min(behind - begin)], Registers::default());
        let mut count = |row: usize| {
            let mut sum = 0;
            for from in (begin..behind).step_by(BLOCK) {
                let bytes = &mut bytes[..BLOCK.min(behind - from)];
                truths.compute_with(&mut registers, row * self.count + from, bytes);
                let (whole, rest) = bytes.as_chunks::<AT_ONCE>();
                let mut counts = [0; AT_ONCE];
                for truths in whole {
                    counts.iter_mut().zip(truths).for_each(|(count, truth)| *count += truth);
                }
                sum += counts.iter().chain(rest).map(|&count| u32::from(count)).sum::<u32>();
            }
            sum
        };
        (first..end).map(&mut count).collect()
    }

    /// How many columns are folded beside one another: of those that do not lie behind one another as many as do.
    fn columns(&self) -> usize {
        let most = COLUMNS.min(self.rows);
        let inner = self.map.row();
        // So few are not worth it.
        let least = (most / 16).max(1);
        if inner == self.rows {
            return most;
        }
        (inner.div_ceil(COLUMNS)..=inner / least).find(|parts| inner.is_multiple_of(*parts)).map_or(most, |parts| inner / parts)
    }

    /// Folds some rows of values, of some columns.
    #[inline(always)]
    fn fold_columns(&self, [first, end]: [usize; 2], [begin, behind]: [usize; 2]) -> Folded {
        let width = end - first;
        let (mut buffer, mut registers) = (Vec::new(), Registers::default());
        let mut folded = if self.folding.is_of_words() {
            Folded::Words(Vec::new())
        } else if matches!(self.folding.fold, Fold::Sum | Fold::Mean) && self.folding.dtype == DType::F32 {
            #[cfg(not(target_arch = "wasm32"))]
            if self.count <= HEIGHT {
                return Folded::Words(self.few_rows([first, end]));
            }
            Folded::Sums(vec![0.0; width])
        } else {
            Folded::States(vec![self.folding.empty(); width])
        };
        for from in (begin..behind).step_by(HEIGHT) {
            let height = HEIGHT.min(behind - from);
            let rows = self.rows([first, end], [from, from + height], &mut buffer, &mut registers);
            match &mut folded {
                Folded::Words(all) => {
                    let mut rest = &rows[..];
                    if let (true, [first, others @ ..]) = (all.is_empty(), rest) {
                        all.extend_from_slice(first);
                        rest = others;
                    }
                    self.folding.columns_of_words(all, rest);
                }
                Folded::Sums(all) => {
                    let of_rows = self.sum_of_rows(&rows);
                    for (all, &sum) in all.iter_mut().zip(&of_rows) {
                        *all += f64::from(sum);
                    }
                }
                Folded::States(states) => self.folding.columns(states, &rows, from),
            }
        }
        folded
    }

    /// Rows of f32 added up.
    #[inline(always)]
    fn sum_of_rows(&self, rows: &[&[u32]]) -> Vec<f32> {
        #[cfg(target_arch = "wasm32")]
        if let (true, [first, others @ ..]) = (self.map.has_vectors(), rows) {
            let mut sums: Vec<f32> = bytemuck::allocation::pod_collect_to_vec(first);
            if others.iter().all(|row| vectorized::combine(&mut sums, bytemuck::cast_slice(row), true).is_some()) {
                return sums;
            }
        }
        over_rows::<Sum, f32>(rows.iter().map(|row| bytemuck::cast_slice(row)))
    }

    /// The results of columns of so few values that their sums are taken in one go.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    fn few_rows(&self, columns: [usize; 2]) -> Vec<u32> {
        let (mut buffer, mut registers) = (Vec::new(), Registers::default());
        let rows = self.rows(columns, [0, self.count], &mut buffer, &mut registers);
        let mut sums = over_rows::<Sum, f32>(rows.iter().map(|row| bytemuck::cast_slice(row)));
        let divisor = if self.folding.fold == Fold::Mean { self.folding.divisor } else { 1.0 };
        // A sum of nothing but −0 is +0.
        sums.iter_mut().for_each(|sum| *sum = (f64::from(*sum + 0.0) / divisor) as f32);
        bytemuck::cast_vec(sums)
    }

    /// Rows of values of some columns: where they lie, if nothing is to be computed of them.
    #[inline(always)]
    fn rows<'b>(
        &'b self,
        [first, end]: [usize; 2],
        [begin, behind]: [usize; 2],
        buffer: &'b mut Vec<u32>,
        registers: &mut Registers,
    ) -> Vec<&'b [u32]> {
        let width = end - first;
        let lying: Option<Vec<_>> = (begin..behind).map(|row| self.map.stored(row * self.rows + first, width)).collect();
        lying.unwrap_or_else(|| {
            buffer.resize((behind - begin) * width, 0);
            for (row, out) in buffer.chunks_exact_mut(width).enumerate() {
                self.map.compute_with(registers, (begin + row) * self.rows + first, bytemuck::cast_slice_mut(out));
            }
            buffer.chunks_exact(width).collect()
        })
    }

    /// Values one behind the other: where they lie, if nothing is to be computed of them. What is, is computed a block at a time, as far as that
    /// is before the last.
    fn values<'b>(&'b self, [first, end]: [usize; 2], last: usize, ahead: &'b mut Ahead) -> &'b [u32] {
        let Ahead { values, first: begin, registers } = ahead;
        if !(*begin..*begin + values.len()).contains(&(end - 1)) {
            if let Some(values) = self.map.stored(first, end - first) {
                return values;
            }
            *begin = first;
            values.resize((first + BLOCK).min(last).max(end) - first, 0);
            self.map.compute_with(registers, first, bytemuck::cast_slice_mut(values));
        }
        &values[first - *begin..][..end - first]
    }
}

/// Values that were computed, from the first one on.
#[derive(Default)]
struct Ahead {
    values: Vec<u32>,
    first: usize,
    registers: Registers,
}

/// Runs a function for each piece of so many items, given its number, on so many threads at most.
pub(super) fn each<T: Send>(items: &mut [T], size: usize, threads: usize, run: impl Fn(usize, &mut [T]) + Sync) {
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    if threads > 1 {
        return crew::each(items, size, threads, run);
    }
    let _ = threads;
    items.chunks_mut(size).enumerate().for_each(|(number, items)| run(number, items));
}
