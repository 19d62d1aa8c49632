//! Loops over values that become vector instructions: some lanes beside one another, as many as are under way at once.
//!
//! What is done to values is a trait's and no closure, which a compiler may leave out of the loop: then it is compiled for any CPU, one number at
//! a time.

#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
pub(super) mod apart;

/// Values that are folded beside one another: some vectors of any width.
pub(super) const LANES: usize = if cfg!(target_arch = "wasm32") { 16 } else { 64 };

/// How values are folded.
pub(super) trait Join<T: Copy> {
    /// What they become.
    type Lane: Copy;
    /// Of no values.
    const EMPTY: Self::Lane;
    fn of(value: T) -> Self::Lane;
    fn join(a: Self::Lane, b: Self::Lane) -> Self::Lane;
}

macro_rules! joins {
    ($($(#[doc = $doc:literal])+ $join:ident { $($from:ty => $lane:ty, $empty:expr; $value:ident: $of:expr; $a:ident, $b:ident: $joined:expr;)+ })+) => { $(
        $(#[doc = $doc])+
        pub(super) struct $join;
        $(
            impl Join<$from> for $join {
                type Lane = $lane;
                const EMPTY: $lane = $empty;

                #[inline(always)]
                fn of($value: $from) -> $lane {
                    $of
                }

                #[inline(always)]
                fn join($a: $lane, $b: $lane) -> $lane {
                    $joined
                }
            }
        )+
    )+ };
}

joins! {
    /// Their sum.
    Sum {
        f32 => f32, 0.0; value: value; a, b: a + b;
        u32 => u32, 0; value: value; a, b: a.wrapping_add(b);
    }
    /// Their product.
    Product {
        f32 => f64, 1.0; value: f64::from(value); a, b: a * b;
        u32 => u32, 1; value: value; a, b: a.wrapping_mul(b);
    }
    /// The sum of their squares.
    Squares {
        f32 => f64, 0.0; value: f64::from(value) * f64::from(value); a, b: a + b;
    }
    /// The largest, but for NaN.
    Largest {
        f32 => f32, f32::NEG_INFINITY; value: value; a, b: if b > a { b } else { a };
        i32 => i32, i32::MIN; value: value; a, b: if b > a { b } else { a };
        u32 => u32, 0; value: value; a, b: if b > a { b } else { a };
    }
    /// The smallest, but for NaN.
    Smallest {
        f32 => f32, f32::INFINITY; value: value; a, b: if b < a { b } else { a };
        i32 => i32, i32::MAX; value: value; a, b: if b < a { b } else { a };
        u32 => u32, u32::MAX; value: value; a, b: if b < a { b } else { a };
    }
}

#[cfg(not(target_arch = "wasm32"))]
joins! {
    /// The sum of their squares, which may be beyond all numbers, or nothing where they are small.
    NearSquares {
        f32 => f32, 0.0; value: value * value; a, b: a + b;
    }
}

/// Folds values in lanes, and then the lanes.
#[inline(always)]
pub(super) fn in_lanes<J: Join<T>, T: Copy>(values: &[T]) -> J::Lane {
    // In the browser both would be downloaded.
    if cfg!(not(target_arch = "wasm32")) && values.len() < 4 * LANES {
        in_so_many::<J, T, 16>(values)
    } else {
        in_so_many::<J, T, LANES>(values)
    }
}

#[inline(always)]
fn in_so_many<J: Join<T>, T: Copy, const N: usize>(values: &[T]) -> J::Lane {
    let mut lanes = [J::EMPTY; N];
    let (blocks, rest) = values.as_chunks::<N>();
    // A copy of each block, which cannot be where the lanes are: those stay in registers then.
    for &block in blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            *lane = J::join(*lane, J::of(value));
        }
    }
    ended::<J, T, N>(lanes, rest)
}

/// The lanes and what is left over, folded: what is left over one vector at a time, since lanes of which each may be written lie in memory.
#[cfg(not(target_arch = "wasm32"))]
#[inline(always)]
fn ended<J: Join<T>, T: Copy, const N: usize>(lanes: [J::Lane; N], rest: &[T]) -> J::Lane {
    const FEW: usize = 16;
    let mut few = [J::EMPTY; FEW];
    for &part in lanes.as_chunks::<FEW>().0 {
        for (lane, other) in few.iter_mut().zip(part) {
            *lane = J::join(*lane, other);
        }
    }
    let (parts, rest) = rest.as_chunks::<FEW>();
    for &part in parts {
        for (lane, value) in few.iter_mut().zip(part) {
            *lane = J::join(*lane, J::of(value));
        }
    }
    let mut half = FEW / 2;
    while half > 0 {
        for at in 0..half {
            few[at] = J::join(few[at], few[at + half]);
        }
        half /= 2;
    }
    rest.iter().fold(few[0], |all, &value| J::join(all, J::of(value)))
}

/// The lanes and what is left over, folded.
#[cfg(target_arch = "wasm32")]
#[inline(always)]
fn ended<J: Join<T>, T: Copy, const N: usize>(mut lanes: [J::Lane; N], rest: &[T]) -> J::Lane {
    for (lane, &value) in lanes.iter_mut().zip(rest) {
        *lane = J::join(*lane, J::of(value));
    }
    let mut half = N / 2;
    while half > 0 {
        let (low, high) = lanes.split_at_mut(half);
        for (low, &high) in low.iter_mut().zip(&*high) {
            *low = J::join(*low, high);
        }
        half /= 2;
    }
    lanes[0]
}

/// The sums of distances from a number and of their squares.
#[inline(always)]
pub(super) fn distances(values: &[f32], from: f32) -> [f64; 2] {
    // In the browser both would be downloaded.
    if cfg!(not(target_arch = "wasm32")) && values.len() < 4 * LANES {
        distances_in_so_many::<16>(values, from)
    } else {
        distances_in_so_many::<LANES>(values, from)
    }
}

#[inline(always)]
fn distances_in_so_many<const N: usize>(values: &[f32], from: f32) -> [f64; 2] {
    let (mut off, mut squares) = ([0.0f32; N], [0.0f32; N]);
    let (blocks, rest) = values.as_chunks::<N>();
    for block in blocks {
        for ((off, square), value) in off.iter_mut().zip(&mut squares).zip(block) {
            let distance = value - from;
            *off += distance;
            *square += distance * distance;
        }
    }
    for ((off, square), value) in off.iter_mut().zip(&mut squares).zip(rest) {
        let distance = value - from;
        *off += distance;
        *square += distance * distance;
    }
    [off, squares].map(|lanes| {
        let mut sums = [0.0f64; 8];
        for part in lanes.as_chunks::<8>().0 {
            for (sum, &lane) in sums.iter_mut().zip(part) {
                *sum += f64::from(lane);
            }
        }
        sums.iter().sum()
    })
}

/// a·b + c, rounded once where there is an instruction for it; in the browser there is none.
#[inline(always)]
fn fma(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_arch = "wasm32") { a * b + c } else { a.mul_add(b, c) }
}

/// eˣ for x up to 88, 0 below −87.3: without a call, so that it is a vector instruction after the other (Cephes' `expf`; within 2 ulp).
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // 1.5 · 2²³ + 127: added and subtracted again it leaves a whole number, which stands in the lowest bits as the exponent of its power of two.
    const MAGIC: f32 = 12_583_039.0;
    let shifted = fma(x, std::f32::consts::LOG2_E, MAGIC);
    let whole = shifted - MAGIC;
    let rest = fma(whole, 2.121_944_4e-4, fma(whole, -0.693_359_4, x));
    let mut series = 1.987_569_1e-4;
    for factor in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        series = fma(series, rest, factor);
    }
    let power = f32::from_bits(shifted.to_bits() << 23);
    if x < -87.3 { 0.0 } else { (fma(series * rest, rest, rest) + 1.0) * power }
}

/// Sums of powers that are under way at once.
const SUMS: usize = 16;

/// The sum of the powers by how far values are above a number.
#[inline(always)]
pub(super) fn exponentials(values: &[f32], from: f32) -> f64 {
    let mut sums = [0.0f64; SUMS];
    let (blocks, rest) = values.as_chunks::<SUMS>();
    for block in blocks {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum += f64::from(exp(value - from));
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += f64::from(exp(value - from));
    }
    sums.iter().sum()
}

/// The extreme of some, of which there is one at least, and whether one of them is NaN: an instruction finds the larger of two, but not where
/// one of them is NaN.
#[inline(always)]
pub(super) fn extreme<J: Join<T, Lane = T>, T: Copy + PartialEq>(values: &[T]) -> (T, bool) {
    // In the browser both would be downloaded.
    if cfg!(not(target_arch = "wasm32")) && values.len() < 4 * LANES {
        extreme_of_so_many::<J, T, 16>(values)
    } else {
        extreme_of_so_many::<J, T, LANES>(values)
    }
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself, and integers never do")]
#[inline(always)]
fn extreme_of_so_many<J: Join<T, Lane = T>, T: Copy + PartialEq, const N: usize>(values: &[T]) -> (T, bool) {
    let Some(end) = values.last_chunk::<N>() else {
        let (mut extreme, mut has_nan) = (J::EMPTY, false);
        for &value in values {
            has_nan |= value != value;
            extreme = J::join(extreme, value);
        }
        return (extreme, has_nan);
    };
    let (mut lanes, mut nans) = ([J::EMPTY; N], [0u32; N]);
    // In the browser blocks are taken one by one, since both would be downloaded.
    let pairs = if cfg!(target_arch = "wasm32") { &[] } else { values.as_chunks::<N>().0.as_chunks::<2>().0 };
    for &[a, b] in pairs {
        // One comparison tells whether one of two is NaN.
        for ((nan, a), b) in nans.iter_mut().zip(a).zip(b) {
            *nan = if (a != a) | (b != b) { 1 } else { *nan };
        }
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane = J::join(*lane, J::join(a, b));
        }
    }
    // What is left over with some of those before it, which change nothing a second time: no lane is written by itself.
    for block in values[pairs.len() * 2 * N..].as_chunks::<N>().0 {
        extreme_with::<J, T, N>(&mut lanes, &mut nans, block);
    }
    extreme_with::<J, T, N>(&mut lanes, &mut nans, end);
    (ended::<J, T, N>(lanes, &[]), nans.into_iter().fold(0, |any, nan| any | nan) != 0)
}

#[expect(clippy::eq_op, reason = "only NaN differs from itself, and integers never do")]
#[inline(always)]
fn extreme_with<J: Join<T, Lane = T>, T: Copy + PartialEq, const N: usize>(lanes: &mut [T; N], nans: &mut [u32; N], block: &[T; N]) {
    for ((lane, nan), &value) in lanes.iter_mut().zip(nans).zip(block) {
        *nan = if value != value { 1 } else { *nan };
        *lane = J::join(*lane, value);
    }
}

/// Where a value is first; 0 if it is nowhere. Whole blocks are looked through at once.
#[inline(always)]
pub(super) fn place<T: Copy + PartialEq>(values: &[T], of: T) -> usize {
    // In the browser there are no vectors to look through them with.
    let blocks = if cfg!(target_arch = "wasm32") { &[] } else { values.as_chunks::<LANES>().0 };
    for (number, block) in blocks.iter().enumerate() {
        if let Some(place) = place_in(block, of) {
            return number * LANES + place;
        }
    }
    // The last ones with some before them, among which it is not.
    if let (Some(block), false) = (values.last_chunk::<LANES>(), cfg!(target_arch = "wasm32")) {
        return place_in(block, of).map_or(0, |place| values.len() - LANES + place);
    }
    values.iter().position(|&value| value == of).unwrap_or_default()
}

/// The same in a block, in parts of which all places are bits at once.
#[inline(always)]
fn place_in<T: Copy + PartialEq>(block: &[T; LANES], of: T) -> Option<usize> {
    const PART: usize = 16;
    if !block.iter().fold(false, |any, &value| any | (value == of)) {
        return None;
    }
    for (number, part) in block.as_chunks::<PART>().0.iter().enumerate() {
        let mut places = 0u32;
        for (at, &value) in part.iter().enumerate() {
            places |= u32::from(value == of) << at;
        }
        if places != 0 {
            return Some(number * PART + places.trailing_zeros() as usize);
        }
    }
    None
}

/// Rows that are read at once, so that what they are folded into is read and written less often.
#[cfg(not(target_arch = "wasm32"))]
const TOGETHER: usize = 4;

/// Rows folded into one.
#[inline(always)]
pub(super) fn over_rows<'a, J: Join<T, Lane = T>, T: Copy + 'a>(mut rows: impl ExactSizeIterator<Item = &'a [T]>) -> Vec<T> {
    let mut all = rows.next().map_or_else(Vec::new, <[T]>::to_vec);
    with_rows::<J, T>(&mut all, rows);
    all
}

/// Folds rows into what others have been folded into.
#[inline(always)]
pub(super) fn with_rows<'a, J: Join<T, Lane = T>, T: Copy + 'a>(all: &mut [T], rows: impl ExactSizeIterator<Item = &'a [T]>) {
    #[cfg(not(target_arch = "wasm32"))]
    let mut rows = rows;
    #[cfg(not(target_arch = "wasm32"))]
    while rows.len() >= TOGETHER {
        let [a, b, c, d] = [(); TOGETHER].map(|()| rows.next().unwrap_or_default());
        for ((((all, &a), &b), &c), &d) in all.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *all = J::join(*all, J::join(J::join(a, b), J::join(c, d)));
        }
    }
    for row in rows {
        for (all, &value) in all.iter_mut().zip(row) {
            *all = J::join(*all, value);
        }
    }
}

/// The next row and those behind it, as many as are read at once: where there are no more, the last one again, which changes no extreme.
#[cfg(not(target_arch = "wasm32"))]
#[inline(always)]
fn next_rows<'a, T>(rows: &mut impl Iterator<Item = &'a [T]>) -> Option<[&'a [T]; TOGETHER]> {
    let mut last = rows.next()?;
    let mut all = [last; TOGETHER];
    for row in &mut all[1..] {
        last = rows.next().unwrap_or(last);
        *row = last;
    }
    Some(all)
}

/// The same of extremes; NaN where there is one, which stays, since no number is more than it.
#[inline(always)]
pub(super) fn extremes<'a, J: Join<f32, Lane = f32>>(all: &mut [f32], rows: impl ExactSizeIterator<Item = &'a [f32]>) {
    #[cfg(not(target_arch = "wasm32"))]
    {
        let mut rows = rows;
        while let Some([a, b, c, d]) = next_rows(&mut rows) {
            for ((((all, &a), &b), &c), &d) in all.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let is_nan = (a.is_nan() | b.is_nan()) | (c.is_nan() | d.is_nan());
                let joined = J::join(*all, J::join(J::join(a, b), J::join(c, d)));
                *all = if is_nan { f32::NAN } else { joined };
            }
        }
    }
    #[cfg(target_arch = "wasm32")]
    for row in rows {
        for (all, &value) in all.iter_mut().zip(row) {
            *all = if value.is_nan() { value } else { J::join(*all, value) };
        }
    }
}

/// The extremes of rows, the first NaN before all numbers, and the number of the row that each is first in.
///
/// Some rows at a time, whose places stay in registers: of one alone they would be stored under a mask, which some CPUs do lane by lane.
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::eq_op, reason = "only NaN differs from itself, and integers never do")]
#[inline(always)]
pub(super) fn places<'a, J: Join<T, Lane = T>, T: Copy + PartialEq + 'a>(mut rows: impl Iterator<Item = &'a [T]>) -> (Vec<T>, Vec<u32>) {
    let mut all = rows.next().map_or_else(Vec::new, <[T]>::to_vec);
    let mut places = vec![0u32; all.len()];
    let mut first = 1;
    while let Some([a, b, c, d]) = next_rows(&mut rows) {
        for (((((all, place), &a), &b), &c), &d) in all.iter_mut().zip(&mut places).zip(a).zip(b).zip(c).zip(d) {
            let (mut best, mut best_place) = (*all, *place);
            for (number, value) in (first..).zip([a, b, c, d]) {
                // A number is as itself: what is not is NaN.
                let [was_nan, is_nan] = [best != best, value != value];
                let is_more = !was_nan & (is_nan | (J::join(best, value) != best));
                best_place = if is_more { number } else { best_place };
                best = if is_more { value } else { best };
            }
            (*all, *place) = (best, best_place);
        }
        first += TOGETHER as u32;
    }
    (all, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_found_where_they_are_in_any_number_of_values() {
        for count in (1..=3 * LANES).chain([4 * LANES, 9 * LANES + 5]) {
            let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect();
            let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(extreme::<Largest, _>(&values), (largest, false), "{count}");
            assert_eq!(place(&values, largest), values.iter().position(|&value| value == largest).unwrap(), "{count}");
            let whole: Vec<i32> = values.iter().map(|&value| value as i32).collect();
            assert_eq!(extreme::<Smallest, _>(&whole), (whole.iter().copied().min().unwrap(), false), "{count}");
            for at in [0, count / 2, count - 1] {
                let mut with_nan = values.clone();
                with_nan[at] = f32::NAN;
                assert!(extreme::<Smallest, _>(&with_nan).1, "{count} values with NaN at {at}");
            }
        }
    }

    #[test]
    fn rows_are_folded_in_any_number() {
        for height in 1..12 {
            let rows: Vec<Vec<f32>> = (0..height).map(|row| (0..37).map(|i| ((row * 37 + i) * 7919 % 1009) as f32).collect()).collect();
            let mut largest = rows[0].clone();
            extremes::<Largest>(&mut largest, rows[1..].iter().map(|row| &row[..]));
            let sums = over_rows::<Sum, f32>(rows.iter().map(|row| &row[..]));
            for column in 0..37 {
                let of_column = || rows.iter().map(|row| row[column]);
                assert_eq!(largest[column], of_column().fold(f32::NEG_INFINITY, f32::max), "{height} rows");
                assert_eq!(sums[column], of_column().sum::<f32>(), "{height} rows");
            }
            for nan in 1..height {
                let mut rows = rows.clone();
                rows[nan][5] = f32::NAN;
                let mut largest = rows[0].clone();
                extremes::<Largest>(&mut largest, rows[1..].iter().map(|row| &row[..]));
                assert!((0..37).all(|column| largest[column].is_nan() == (column == 5)), "{height} rows with NaN in {nan}");
            }
        }
    }
}
