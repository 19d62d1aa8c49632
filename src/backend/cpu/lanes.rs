//! Loops over values that become vector instructions: some lanes beside one another, as many as are under way at once.
//!
//! What is done to values is a trait's and no closure, which a compiler may leave out of the loop: then it is compiled for any CPU, one number at
//! a time.

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

/// The lanes and what is left over, folded.
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

/// The product of all. In lanes parts of it may be beyond all numbers where the whole is not: then it is taken in order.
#[inline(always)]
pub(super) fn product(values: &[f32]) -> f64 {
    let in_any_order = in_lanes::<Product, f32>(values);
    if in_any_order.is_normal() { in_any_order } else { values.iter().fold(1.0, |product, &value| product * f64::from(value)) }
}

/// The extreme of some; NaN if there is one: looked for beside it, since an instruction finds the larger of two, but not where one of them is NaN.
#[inline(always)]
pub(super) fn extreme<J: Join<f32, Lane = f32>>(values: &[f32]) -> f32 {
    // In the browser both would be downloaded.
    if cfg!(not(target_arch = "wasm32")) && values.len() < 4 * LANES {
        extreme_of_so_many::<J, 16>(values)
    } else {
        extreme_of_so_many::<J, LANES>(values)
    }
}

#[inline(always)]
fn extreme_of_so_many<J: Join<f32, Lane = f32>, const N: usize>(values: &[f32]) -> f32 {
    let (mut lanes, mut nans) = ([J::EMPTY; N], [0u32; N]);
    let (blocks, rest) = values.as_chunks::<N>();
    let (pairs, last) = blocks.as_chunks::<2>();
    for &[a, b] in pairs {
        // One comparison tells whether one of two is NaN.
        for ((nan, a), b) in nans.iter_mut().zip(a).zip(b) {
            *nan |= u32::from(a.is_nan() | b.is_nan());
        }
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane = J::join(*lane, J::join(a, b));
        }
    }
    for &block in last {
        for ((lane, nan), value) in lanes.iter_mut().zip(&mut nans).zip(block) {
            *nan |= u32::from(value.is_nan());
            *lane = J::join(*lane, value);
        }
    }
    for (nan, value) in nans.iter_mut().zip(rest) {
        *nan |= u32::from(value.is_nan());
    }
    if nans.into_iter().fold(0, |any, nan| any | nan) != 0 { f32::NAN } else { ended::<J, f32, N>(lanes, rest) }
}

/// Where a value is first; 0 if it is nowhere. Whole blocks are looked through at once.
#[inline(always)]
pub(super) fn place<T: Copy + PartialEq>(values: &[T], of: T) -> usize {
    let (blocks, rest) = values.as_chunks::<LANES>();
    for (number, block) in blocks.iter().enumerate() {
        let any = block.iter().fold(false, |any, &value| any | (value == of));
        if any {
            // The least place of any lane, which is found without a branch for each.
            let mut places = [u32::MAX; LANES];
            for at in 0..LANES {
                places[at] = if block[at] == of { at as u32 } else { u32::MAX };
            }
            return number * LANES + ended::<Smallest, u32, LANES>(places, &[]) as usize;
        }
    }
    rest.iter().position(|&value| value == of).map_or(0, |at| blocks.len() * LANES + at)
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
pub(super) fn with_rows<'a, J: Join<T, Lane = T>, T: Copy + 'a>(all: &mut [T], mut rows: impl ExactSizeIterator<Item = &'a [T]>) {
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

/// The same of extremes; NaN where there is one, which stays, since no number is more than it.
#[inline(always)]
pub(super) fn extremes<'a, J: Join<f32, Lane = f32>>(all: &mut [f32], mut rows: impl ExactSizeIterator<Item = &'a [f32]>) {
    #[cfg(not(target_arch = "wasm32"))]
    while rows.len() >= TOGETHER {
        let [a, b, c, d] = [(); TOGETHER].map(|()| rows.next().unwrap_or_default());
        for ((((all, &a), &b), &c), &d) in all.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let is_nan = (a.is_nan() | b.is_nan()) | (c.is_nan() | d.is_nan());
            let joined = J::join(*all, J::join(J::join(a, b), J::join(c, d)));
            *all = if is_nan { f32::NAN } else { joined };
        }
    }
    for row in rows {
        for (all, &value) in all.iter_mut().zip(row) {
            *all = if value.is_nan() { value } else { J::join(*all, value) };
        }
    }
}

/// The extremes of rows, the first NaN before all numbers, and the number of the row that each is first in.
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::eq_op, reason = "only NaN differs from itself, and integers never do")]
#[inline(always)]
pub(super) fn places<'a, J: Join<T, Lane = T>, T: Copy + PartialEq + 'a>(mut rows: impl Iterator<Item = &'a [T]>) -> (Vec<T>, Vec<u32>) {
    let mut best = rows.next().map_or_else(Vec::new, <[T]>::to_vec);
    let mut places = vec![0u32; best.len()];
    for (number, row) in (1u32..).zip(rows) {
        for ((best, place), &value) in best.iter_mut().zip(&mut places).zip(row) {
            // A number is as itself: what is not is NaN.
            let [was_nan, is_nan] = [*best != *best, value != value];
            let is_more = !was_nan & (is_nan | (J::join(*best, value) != *best));
            *place = if is_more { number } else { *place };
            *best = if is_more { value } else { *best };
        }
    }
    (best, places)
}
