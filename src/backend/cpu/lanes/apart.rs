//! Loops compiled by themselves for the widest vectors that the CPU has: in one function with those of all other folds, some of their lanes
//! would lie in memory.

use std::marker::PhantomData;

use super::Join;

/// Values from which a call of its own pays.
pub(in crate::backend::cpu) const LONG: usize = 512;

struct InLanes<'a, J, T>(&'a [T], PhantomData<J>);

impl<J: Join<T>, T: Copy> pulp::WithSimd for InLanes<'_, J, T> {
    type Output = J::Lane;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> J::Lane {
        super::in_lanes::<J, T>(self.0)
    }
}

struct Extreme<'a, J, T>(&'a [T], PhantomData<J>);

impl<J: Join<T, Lane = T>, T: Copy + PartialEq> pulp::WithSimd for Extreme<'_, J, T> {
    type Output = (T, bool);

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> (T, bool) {
        super::extreme::<J, T>(self.0)
    }
}

struct Distances<'a>(&'a [f32], f32);

impl pulp::WithSimd for Distances<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> [f64; 2] {
        super::distances(self.0, self.1)
    }
}

/// The sums of distances from a number and of their squares.
pub(in crate::backend::cpu) fn distances(values: &[f32], from: f32) -> [f64; 2] {
    pulp::Arch::new().dispatch(Distances(values, from))
}

/// Folds values in lanes, and then the lanes.
pub(in crate::backend::cpu) fn in_lanes<J: Join<T>, T: Copy>(values: &[T]) -> J::Lane {
    pulp::Arch::new().dispatch(InLanes::<J, T>(values, PhantomData))
}

/// The extreme of some, and whether one of them is NaN.
pub(in crate::backend::cpu) fn extreme<J: Join<T, Lane = T>, T: Copy + PartialEq>(values: &[T]) -> (T, bool) {
    pulp::Arch::new().dispatch(Extreme::<J, T>(values, PhantomData))
}
