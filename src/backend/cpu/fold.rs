//! How the CPU folds values: the twin of `shaders/reduce/fold.wgsl`. Loops are inlined into what is compiled for the instructions that the
//! CPU has (`reduce.rs`); not where nothing is optimized, since the variables of all folds at once would be more than a thread's stack.

mod extremes;

#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
use super::lanes::apart;
use super::lanes::{Join, Largest, Product, Smallest, Squares, Sum, distances, exponentials, extremes, in_lanes, over_rows, with_rows};
#[cfg(not(target_arch = "wasm32"))]
use super::lanes::{NearSquares, exp, places};
#[cfg(target_arch = "wasm32")]
use super::wasm::vectorized;
use crate::dtype::DType;
use crate::ops::reduce::Fold;

/// What is kept of values, in double precision, which holds every value of 32 bits as it is:
///
/// ```text
/// sum            it                    extreme   it                     place of an extreme   it, its place, 1 if there is one
/// product        of floats a number from 1 up to 2 and a power of two (of 0, ∞ and NaN any); of integers it
/// variance       how many, their mean, the sum of squared distances from it
/// norm           the sum of squares    ln Σ eˣ   the largest value, the sum of powers by it
/// ```
pub(super) type State = [f64; 3];

/// A fold of values of a type.
pub(super) struct Folding {
    pub fold: Fold,
    pub dtype: DType,
    pub divisor: f64,
    /// Whether long loops are compiled by themselves for the widest vectors that the CPU has; in the browser in a module of their own.
    pub has_vectors: bool,
}

/// The nearest finite number, from which distances are finite or −∞.
pub(super) fn pivot(largest: f64) -> f64 {
    largest.clamp(f32::MIN.into(), f32::MAX.into())
}

/// Whether a sum of squares is one: neither beyond all numbers, nor of what was too small to be numbers, which is nothing beside this.
#[inline(always)]
fn are_squares(sum: f64) -> bool {
    (1e-28..f64::INFINITY).contains(&sum)
}

/// How many, their mean and their squared distances from it, of so many columns of some rows, for whose squares single precision is not enough.
#[inline(never)]
fn moments(rows: &[&[u32]], first: usize, columns: usize) -> State {
    let count = (rows.len() * columns) as f64;
    let sum = |term: &dyn Fn(f64) -> f64| {
        let mut sum = 0.0;
        for row in rows {
            for &word in &row[first..][..columns] {
                sum += term(f32::from_bits(word).into());
            }
        }
        sum
    };
    let one = rows[0][first];
    let are_alike = rows.iter().all(|row| row[first..][..columns].iter().all(|&word| word == one));
    // Beside none that is not a number.
    if are_alike && f32::from_bits(one).is_finite() {
        return [count, f32::from_bits(one).into(), 0.0];
    }
    let mean = sum(&|value| value) / count;
    [count, mean, sum(&|value| (value - mean) * (value - mean))]
}

/// The state of a product that is that number times that power of two.
fn parted(value: f64, power: f64) -> State {
    const EXPONENT: u64 = 0x7ff << 52;
    if !value.is_normal() {
        return [value, power, 0.0];
    }
    let bits = value.to_bits();
    let exponent = ((bits & EXPONENT) >> 52) as f64 - 1023.0;
    [f64::from_bits(bits & !EXPONENT | 1f64.to_bits()), power + exponent, 0.0]
}

/// The product of all, part by part.
#[inline(never)]
fn product_in_parts(values: &[f32]) -> State {
    values.iter().fold([1.0, 0.0, 0.0], |[part, power, _], &value| parted(part * f64::from(value), power))
}

/// The number that such a state stands for, as near as a double is: in two steps, since the power alone may be beyond all numbers.
fn whole([part, power, _]: State) -> f64 {
    // Beyond it all are 0 or ∞.
    let power = power.clamp(-2000.0, 2000.0) as i32;
    let times = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    part * times(power / 2) * times(power - power / 2)
}

impl Folding {
    /// Of no values.
    pub(super) fn empty(&self) -> State {
        let first = match self.fold {
            Fold::Prod => 1.0,
            Fold::Max | Fold::LogSumExp => f64::NEG_INFINITY,
            Fold::Min => f64::INFINITY,
            _ => 0.0,
        };
        [first, 0.0, 0.0]
    }

    /// Of values, the first of which is that of this number in its row.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn block(&self, values: &[u32], first: usize) -> State {
        let float: &[f32] = bytemuck::cast_slice(values);
        let count = values.len() as f64;
        match (self.fold, self.dtype) {
            (Fold::Sum | Fold::Mean, DType::F32) => [self.sum(float).into(), 0.0, 0.0],
            (Fold::Sum | Fold::Mean, _) => [self.in_lanes::<Sum, u32>(values).into(), 0.0, 0.0],
            (Fold::Prod, DType::F32) => self.product(float),
            (Fold::Prod, _) => [self.in_lanes::<Product, u32>(values).into(), 0.0, 0.0],
            (Fold::Max | Fold::Min, _) => [self.extreme(values), 0.0, 0.0],
            (Fold::ArgMax | Fold::ArgMin, _) => self.located(values, first),
            (Fold::Var | Fold::Std, _) => {
                // Distances from about the mean, which say how far off it is.
                let about = (f64::from(self.sum(float)) / count) as f32;
                let [off, squares] = self.distances(float, about);
                if !are_squares(squares) {
                    return moments(&[values], 0, values.len());
                }
                [count, f64::from(about) + off / count, (squares - off * off / count).max(0.0)]
            }
            (Fold::Norm | Fold::Rms, _) => [self.squares(float), 0.0, 0.0],
            (Fold::LogSumExp, _) => {
                let largest = self.extreme(values);
                let pivot = pivot(largest) as f32;
                [largest, self.exponentials(float, pivot), 0.0]
            }
        }
    }

    /// The sum of squares: in single precision where that holds it, since it takes half as long.
    #[inline(always)]
    fn squares(&self, values: &[f32]) -> f64 {
        #[cfg(not(target_arch = "wasm32"))]
        {
            // Squares that were too small to be numbers are nothing beside this.
            const LEAST: f32 = 1e-20;
            let sum = self.in_lanes::<NearSquares, f32>(values);
            if (LEAST..=f32::MAX).contains(&sum) {
                return sum.into();
            }
        }
        #[cfg(target_arch = "wasm32")]
        if self.has_vectors
            && let Some(sum) = vectorized::squares(values)
        {
            return sum;
        }
        in_lanes::<Squares, f32>(values)
    }

    /// The product of all, part by part where a part of it may be beyond all numbers.
    #[inline(always)]
    fn product(&self, values: &[f32]) -> State {
        let in_any_order = self.product_in_any_order(values);
        if in_any_order.is_normal() { parted(in_any_order, 0.0) } else { product_in_parts(values) }
    }

    #[inline(always)]
    fn product_in_any_order(&self, values: &[f32]) -> f64 {
        #[cfg(target_arch = "wasm32")]
        if self.has_vectors
            && let Some(product) = vectorized::product(values)
        {
            return product;
        }
        in_lanes::<Product, f32>(values)
    }

    #[inline(always)]
    fn sum(&self, values: &[f32]) -> f32 {
        #[cfg(target_arch = "wasm32")]
        if self.has_vectors
            && let Some(sum) = vectorized::sum(values)
        {
            return sum;
        }
        self.in_lanes::<Sum, f32>(values)
    }

    #[inline(always)]
    fn exponentials(&self, values: &[f32], from: f32) -> f64 {
        #[cfg(target_arch = "wasm32")]
        if self.has_vectors
            && let Some(sum) = vectorized::exponentials(values, from)
        {
            return sum;
        }
        exponentials(values, from)
    }

    #[inline(always)]
    fn in_lanes<J: Join<T>, T: Copy>(&self, values: &[T]) -> J::Lane {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.has_vectors && values.len() >= apart::LONG {
            return apart::in_lanes::<J, T>(values);
        }
        in_lanes::<J, T>(values)
    }

    #[inline(always)]
    fn distances(&self, values: &[f32], from: f32) -> [f64; 2] {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.has_vectors && values.len() >= apart::LONG {
            return apart::distances(values, from);
        }
        #[cfg(target_arch = "wasm32")]
        if self.has_vectors
            && let Some(sums) = vectorized::distances(values, from)
        {
            return sums;
        }
        distances(values, from)
    }

    /// Of values behind those of a state, the first of which is that of this number in its row.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn add(&self, state: State, values: &[u32], first: usize) -> State {
        if matches!(self.fold, Fold::ArgMax | Fold::ArgMin) {
            if state[2] == 0.0 {
                return self.located(values, first);
            }
            // Its place is looked for only if it matters.
            let extreme = self.extreme(values);
            let stays = state[0].is_nan() || self.more_extreme(state[0], extreme) == state[0];
            return if stays { state } else { self.located(values, first) };
        }
        self.join(state, self.block(values, first))
    }

    /// Of two, the first of values before the second's.
    #[cfg_attr(not(any(debug_assertions, target_arch = "wasm32")), inline(always))]
    pub(super) fn join(&self, a: State, b: State) -> State {
        match (self.fold, self.dtype) {
            (Fold::Sum | Fold::Mean, DType::I32 | DType::U32) => [(a[0] as u32).wrapping_add(b[0] as u32).into(), 0.0, 0.0],
            (Fold::Prod, DType::I32 | DType::U32) => [(a[0] as u32).wrapping_mul(b[0] as u32).into(), 0.0, 0.0],
            (Fold::Sum | Fold::Mean | Fold::Norm | Fold::Rms, _) => [a[0] + b[0], 0.0, 0.0],
            (Fold::Prod, _) => parted(a[0] * b[0], a[1] + b[1]),
            (Fold::Max | Fold::Min, _) => [self.more_extreme(a[0], b[0]), 0.0, 0.0],
            (Fold::ArgMax | Fold::ArgMin, _) => {
                // The first one stays where both are alike.
                let is_a = a[2] > 0.0 && (b[2] == 0.0 || a[0].is_nan() || self.more_extreme(a[0], b[0]) == a[0]);
                if is_a { a } else { b }
            }
            (Fold::Var | Fold::Std, _) => {
                let count = a[0] + b[0];
                let share = b[0] / count.max(1.0);
                let distance = b[1] - a[1];
                [count, a[1] + distance * share, a[2] + b[2] + distance * (distance * (a[0] * share))]
            }
            (Fold::LogSumExp, _) => {
                let largest = if b[0] > a[0] || b[0].is_nan() { b[0] } else { a[0] };
                let by = |state: State| if state[1] == 0.0 { 0.0 } else { state[1] * (pivot(state[0]) - pivot(largest)).exp() };
                [largest, by(a) + by(b), 0.0]
            }
        }
    }

    /// What the results hold, as words.
    pub(super) fn finish_all(&self, states: &[State], out: &mut [u32]) {
        let all = out.iter_mut().zip(states);
        match (self.fold, self.dtype) {
            // There may be as many as there are values.
            (Fold::Sum | Fold::Max | Fold::Min, DType::F32) => all.for_each(|(out, state)| *out = (state[0] as f32).to_bits()),
            _ => all.for_each(|(out, state)| *out = self.finish(*state)),
        }
    }

    /// What a result holds, as a word.
    fn finish(&self, state: State) -> u32 {
        let float = |value: f64| (value as f32).to_bits();
        match (self.fold, self.dtype) {
            (Fold::ArgMax | Fold::ArgMin, _) => state[1] as u32,
            (Fold::Sum | Fold::Prod | Fold::Max | Fold::Min, DType::U32) | (Fold::Sum | Fold::Prod, DType::I32) => state[0] as u32,
            (Fold::Max | Fold::Min, DType::I32) => (state[0] as i32).cast_unsigned(),
            (Fold::Prod, _) => float(whole(state)),
            (Fold::Mean, _) => float(state[0] / self.divisor),
            (Fold::Var, _) => float(state[2] / self.divisor),
            (Fold::Std, _) => float((state[2] / self.divisor).sqrt()),
            (Fold::Norm, _) => float(state[0].sqrt()),
            (Fold::Rms, _) => float((state[0] / self.divisor).sqrt()),
            (Fold::LogSumExp, _) if state[0].is_finite() => float(state[0] + state[1].ln()),
            _ => float(state[0]),
        }
    }

    /// Whether it is the same however values are put together.
    pub(super) fn is_exact(&self) -> bool {
        matches!((self.fold, self.dtype), (Fold::Max | Fold::Min, _) | (Fold::Sum | Fold::Prod, DType::I32 | DType::U32))
    }

    /// Whether it is the same however rows are cut.
    pub(super) fn joins_exactly(&self) -> bool {
        self.is_exact() || matches!(self.fold, Fold::ArgMax | Fold::ArgMin)
    }

    /// Whether words hold what is known of values until all are folded.
    pub(super) fn is_of_words(&self) -> bool {
        matches!((self.fold, self.dtype), (Fold::Max | Fold::Min, _) | (Fold::Sum, DType::I32 | DType::U32))
    }

    /// Joins such words with rows of values.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn columns_of_words(&self, all: &mut [u32], values: &[&[u32]]) {
        let float = values.iter().map(|row| bytemuck::cast_slice::<u32, f32>(row));
        let signed = values.iter().map(|row| bytemuck::cast_slice::<u32, i32>(row));
        let words = values.iter().copied();
        match (self.fold, self.dtype) {
            (Fold::Max, DType::F32) => extremes::<Largest>(bytemuck::cast_slice_mut(all), float),
            (Fold::Min, DType::F32) => extremes::<Smallest>(bytemuck::cast_slice_mut(all), float),
            (Fold::Max, DType::I32) => with_rows::<Largest, i32>(bytemuck::cast_slice_mut(all), signed),
            (Fold::Min, DType::I32) => with_rows::<Smallest, i32>(bytemuck::cast_slice_mut(all), signed),
            (Fold::Max, _) => with_rows::<Largest, u32>(all, words),
            (Fold::Min, _) => with_rows::<Smallest, u32>(all, words),
            _ => with_rows::<Sum, u32>(all, words),
        }
    }

    /// The state that such a word stands for.
    pub(super) fn state_of_word(&self, word: u32) -> State {
        let value = match (self.fold, self.dtype) {
            (Fold::Max | Fold::Min, DType::F32) => f32::from_bits(word).into(),
            (Fold::Max | Fold::Min, DType::I32) => word.cast_signed().into(),
            _ => word.into(),
        };
        [value, 0.0, 0.0]
    }

    /// Joins states with rows of values, one for each state, the first of which is that of this number.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn columns(&self, states: &mut [State], values: &[&[u32]], first: usize) {
        let width = states.len();
        let float = || values.iter().map(|row| bytemuck::cast_slice::<u32, f32>(row));
        #[cfg(not(target_arch = "wasm32"))]
        let signed = || values.iter().map(|row| bytemuck::cast_slice::<u32, i32>(row));
        let words = || values.iter().copied();
        match (self.fold, self.dtype) {
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::ArgMax, DType::F32) => self.put_places(states, places::<Largest, _>(float()), first),
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::ArgMin, DType::F32) => self.put_places(states, places::<Smallest, _>(float()), first),
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::ArgMax, DType::I32) => self.put_places(states, places::<Largest, _>(signed()), first),
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::ArgMin, DType::I32) => self.put_places(states, places::<Smallest, _>(signed()), first),
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::ArgMax, _) => self.put_places(states, places::<Largest, _>(words()), first),
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::ArgMin, _) => self.put_places(states, places::<Smallest, _>(words()), first),
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::Norm | Fold::Rms, _) => {
                for row in float() {
                    for (state, &value) in states.iter_mut().zip(row) {
                        state[0] += f64::from(value) * f64::from(value);
                    }
                }
            }
            (Fold::Var | Fold::Std, _) => {
                let count = values.len() as f64;
                let sums = over_rows::<Sum, _>(float());
                let abouts: Vec<f32> = sums.iter().map(|sum| sum / count as f32).collect();
                let (mut off, mut squares) = (vec![0.0f32; width], vec![0.0f32; width]);
                for row in float() {
                    for (((off, square), value), about) in off.iter_mut().zip(&mut squares).zip(row).zip(&abouts) {
                        let distance = value - about;
                        *off += distance;
                        *square += distance * distance;
                    }
                }
                let known = abouts.iter().zip(&off).zip(&squares);
                for (column, (state, ((&about, &off), &squares))) in states.iter_mut().zip(known).enumerate() {
                    let [about, off, squares] = [about, off, squares].map(f64::from);
                    let made = if are_squares(squares) {
                        [count, about + off / count, (squares - off * off / count).max(0.0)]
                    } else {
                        moments(values, column, 1)
                    };
                    *state = self.join(*state, made);
                }
            }
            #[cfg(not(target_arch = "wasm32"))]
            (Fold::LogSumExp, _) => {
                let mut largest = vec![f32::NEG_INFINITY; width];
                extremes::<Largest>(&mut largest, float());
                let pivots: Vec<f32> = largest.iter().map(|&largest| pivot(largest.into()) as f32).collect();
                let mut sums = vec![0.0f32; width];
                for row in float() {
                    for ((sum, value), pivot) in sums.iter_mut().zip(row).zip(&pivots) {
                        *sum += exp(value - pivot);
                    }
                }
                for ((state, &largest), &sum) in states.iter_mut().zip(&largest).zip(&sums) {
                    *state = self.join(*state, [largest.into(), sum.into(), 0.0]);
                }
            }
            // In the browser the others would be downloaded.
            _ => {
                for (number, row) in words().enumerate() {
                    for (state, value) in states.iter_mut().zip(row) {
                        *state = self.join(*state, self.block(std::slice::from_ref(value), first + number));
                    }
                }
            }
        }
    }
}
