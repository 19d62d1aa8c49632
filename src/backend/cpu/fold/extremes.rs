//! Extremes of values, and where they are: by the widest vectors that the CPU has, or in lanes.

#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
use super::apart;
use super::{Folding, State};
use crate::backend::cpu::lanes::{Join, Largest, Smallest, extreme, place};
#[cfg(not(target_arch = "wasm32"))]
use crate::backend::cpu::simd::sought::Sought;
#[cfg(target_arch = "wasm32")]
use crate::backend::cpu::wasm::vectorized;
use crate::dtype::DType;
use crate::ops::reduce::Fold;

impl Folding {
    #[inline(always)]
    fn extreme_by<J: Join<T, Lane = T>, T: Copy + PartialEq>(&self, values: &[T]) -> (T, bool) {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.has_vectors && values.len() >= apart::LONG {
            return apart::extreme::<J, T>(values);
        }
        extreme::<J, T>(values)
    }

    /// Where the extreme of values is, the first of which is that of this number in its row.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn located(&self, values: &[u32], first: usize) -> State {
        #[cfg(not(target_arch = "wasm32"))]
        if self.has_vectors
            && let Some((extreme, place)) = self.located_by_vectors(values)
        {
            return [extreme, (first + place) as f64, 1.0];
        }
        let (extreme, float) = (self.extreme(values), bytemuck::cast_slice::<u32, f32>(values));
        let place = match self.dtype {
            DType::I32 => place(values, (extreme as i32).cast_unsigned()),
            DType::U32 => place(values, extreme as u32),
            _ if extreme.is_nan() => float.iter().position(|value| value.is_nan()).unwrap_or_default(),
            _ => place(float, extreme as f32),
        };
        [extreme, (first + place) as f64, 1.0]
    }

    /// The extreme of values and where it is, by the widest vectors there are.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    fn located_by_vectors(&self, values: &[u32]) -> Option<(f64, usize)> {
        let is_min = self.fold == Fold::ArgMin;
        match self.dtype {
            DType::I32 => i32::first_extreme_of(bytemuck::cast_slice(values), is_min).map(|(extreme, place)| (extreme.into(), place)),
            DType::U32 => u32::first_extreme_of(values, is_min).map(|(extreme, place)| (extreme.into(), place)),
            _ => f32::first_extreme_of(bytemuck::cast_slice(values), is_min).map(|(extreme, place)| (extreme.into(), place)),
        }
    }

    /// Where the extreme of each of some rows of so many values is, where it is asked for and there are vectors to find it by.
    #[cfg(not(target_arch = "wasm32"))]
    pub(in crate::backend::cpu) fn places(&self, rows: &[u32], count: usize) -> Option<Vec<u32>> {
        if !self.has_vectors || !matches!(self.fold, Fold::ArgMax | Fold::ArgMin) {
            return None;
        }
        let is_min = self.fold == Fold::ArgMin;
        match self.dtype {
            DType::I32 => i32::places_in_rows(bytemuck::cast_slice(rows), count, is_min),
            DType::U32 => u32::places_in_rows(rows, count, is_min),
            _ => f32::places_in_rows(bytemuck::cast_slice(rows), count, is_min),
        }
    }

    /// Joins each state with an extreme, and the row in which it is.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    pub(super) fn put_places<T: Copy + Into<f64>>(&self, states: &mut [State], (values, places): (Vec<T>, Vec<u32>), first: usize) {
        for ((state, &value), &place) in states.iter_mut().zip(&values).zip(&places) {
            *state = self.join(*state, [value.into(), (first + place as usize) as f64, 1.0]);
        }
    }

    #[inline(always)]
    pub(super) fn more_extreme(&self, a: f64, b: f64) -> f64 {
        let is_b = if matches!(self.fold, Fold::Min | Fold::ArgMin) { b < a } else { b > a };
        if !a.is_nan() && (is_b || b.is_nan()) { b } else { a }
    }

    /// The extreme of values, by the widest vectors there are.
    #[cfg(not(target_arch = "wasm32"))]
    #[inline(always)]
    fn extreme_by_vectors(&self, values: &[u32], is_min: bool) -> Option<f64> {
        match self.dtype {
            DType::I32 => i32::extreme_of(bytemuck::cast_slice(values), is_min).map(|(extreme, _)| extreme.into()),
            DType::U32 => u32::extreme_of(values, is_min).map(|(extreme, _)| extreme.into()),
            _ => f32::extreme_of(bytemuck::cast_slice(values), is_min)
                .map(|(extreme, has_nan)| if has_nan { f64::NAN } else { extreme.into() }),
        }
    }

    /// The extreme of values, of which there is one at least.
    #[cfg_attr(debug_assertions, inline)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn extreme(&self, values: &[u32]) -> f64 {
        let is_min = matches!(self.fold, Fold::Min | Fold::ArgMin);
        #[cfg(not(target_arch = "wasm32"))]
        if self.has_vectors
            && let Some(extreme) = self.extreme_by_vectors(values, is_min)
        {
            return extreme;
        }
        #[cfg(target_arch = "wasm32")]
        if self.has_vectors
            && self.dtype == DType::F32
            && let Some(extreme) = vectorized::extreme(bytemuck::cast_slice(values), is_min)
        {
            return extreme.into();
        }
        match self.dtype {
            DType::I32 => {
                let values: &[i32] = bytemuck::cast_slice(values);
                if is_min { self.extreme_by::<Smallest, _>(values).0.into() } else { self.extreme_by::<Largest, _>(values).0.into() }
            }
            DType::U32 if is_min => self.extreme_by::<Smallest, _>(values).0.into(),
            DType::U32 => self.extreme_by::<Largest, _>(values).0.into(),
            _ => {
                let values: &[f32] = bytemuck::cast_slice(values);
                let (extreme, has_nan) =
                    if is_min { self.extreme_by::<Smallest, _>(values) } else { self.extreme_by::<Largest, _>(values) };
                if has_nan { f64::NAN } else { extreme.into() }
            }
        }
    }
}
