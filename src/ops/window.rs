//! Windows that slide over the last dimensions of a tensor: what convolutions and pools have in common.
//!
//! ```text
//! place of tap t at step i = i · stride − before + t · dilation       what is outside of the input is padding
//! steps = ⌊(before + input + after − extent) / stride⌋ + 1            extent = (taps − 1) · dilation + 1
//! ```
//!
//! These are the rules of [ONNX](https://onnx.ai/onnx/operators/onnx__Conv.html) and of PyTorch, which agree.

use crate::error::{Error, Result};

/// Places are counted in 32 bits with a sign.
const MOST: u64 = 1 << 30;

/// A window along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The input's size.
    pub input: u32,
    /// How many elements a window has.
    pub taps: u32,
    /// From one window to the next.
    pub stride: u32,
    /// From one tap to the next.
    pub dilation: u32,
    /// Padding before the input.
    pub before: u32,
    /// Padding behind it.
    pub after: u32,
    /// How many windows there are: the result's size.
    pub steps: u32,
}

impl Window {
    /// A dimension of size 1, for what has one dimension less.
    pub const ONE: Self = Self { input: 1, taps: 1, stride: 1, dilation: 1, before: 0, after: 0, steps: 1 };

    /// Whether each element is a window of its own.
    pub fn is_plain(&self) -> bool {
        *self == Self { input: self.input, steps: self.input, ..Self::ONE }
    }

    /// What a kernel is told of one.
    pub(crate) const WORDS: usize = 7;

    /// As kernels are told.
    pub(crate) fn words(&self) -> [u32; Self::WORDS] {
        let &Self { input, taps, stride, dilation, before, after, steps } = self;
        [input, taps, stride, dilation, before, after, steps]
    }

    /// Of the words that a kernel was told.
    pub(crate) fn of_words(words: &[u32]) -> Option<Self> {
        let &[input, taps, stride, dilation, before, after, steps] = words else { return None };
        Some(Self { input, taps, stride, dilation, before, after, steps })
    }

    /// The taps of a step that lie within the input.
    pub(crate) fn inside(&self, step: u32) -> std::ops::Range<u32> {
        let start = i64::from(step) * i64::from(self.stride) - i64::from(self.before);
        let (input, dilation) = (i64::from(self.input), i64::from(self.dilation));
        // The first tap at or behind a place.
        let tap = |place: i64| ((place - start).max(0) as u64).div_ceil(dilation as u64).min(self.taps.into()) as u32;
        tap(0)..tap(input).max(tap(0))
    }

    /// Where a tap of a step is in the input, which it has to be inside of.
    pub(crate) fn place(&self, step: u32, tap: u32) -> usize {
        (u64::from(step) * u64::from(self.stride) + u64::from(tap) * u64::from(self.dilation)) as usize - self.before as usize
    }

    /// The elements from the first that the first of so many neighbouring windows sees to the last of the last one.
    pub(crate) fn extent(&self, windows: u32) -> u32 {
        let taps = self.taps.saturating_sub(1).saturating_mul(self.dilation);
        self.stride.saturating_mul(windows - 1).saturating_add(taps).saturating_add(1)
    }
}

/// What is around the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Padding {
    /// So much before and behind it along each dimension; nothing if no dimension is named.
    Given(Vec<[u64; 2]>),
    /// As much as makes the result ⌈input / stride⌉ large, what is odd of it behind the input.
    SameUpper,
    /// The same, what is odd of it before the input.
    SameLower,
}

/// How a window slides, as callers say it: a number for each dimension that it slides along, or none where all are as usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sliding {
    pub strides: Vec<u64>,
    pub dilations: Vec<u64>,
    pub padding: Padding,
    /// Counts a last window that is not all within the input and its padding, if it begins there.
    pub ceil: bool,
}

impl Default for Sliding {
    fn default() -> Self {
        Self { strides: Vec::new(), dilations: Vec::new(), padding: Padding::Given(Vec::new()), ceil: false }
    }
}

impl Sliding {
    /// The windows over an input of those sizes.
    pub fn windows(&self, input: &[u64], taps: &[u64]) -> Result<Vec<Window>> {
        let rank = input.len();
        let strides = each("the number of strides", &self.strides, rank, 1)?;
        let dilations = each("the number of dilations", &self.dilations, rank, 1)?;
        let given = match &self.padding {
            Padding::Given(given) => each("the number of pairs of pads", given, rank, [0; 2])?,
            _ => vec![[0; 2]; rank],
        };
        if taps.len() != rank {
            return Err(wrong_number("the number of the kernel's sizes", taps.len(), rank));
        }
        (0..rank).map(|at| self.window(input[at], taps[at], [strides[at], dilations[at]], given[at])).collect()
    }

    fn window(&self, input: u64, taps: u64, [stride, dilation]: [u64; 2], [before, after]: [u64; 2]) -> Result<Window> {
        let numbers = [("an input's size", input), ("a kernel's size", taps), ("a stride", stride), ("a dilation", dilation)];
        let all = numbers.map(|(name, value)| (name, value, 1)).into_iter().chain([("a pad", before, 0), ("a pad", after, 0)]);
        for (name, value, least) in all {
            if !(least..=MOST).contains(&value) {
                let expected = format!("a whole number from {least} to {MOST}");
                return Err(Box::new(Error::InvalidDimension { name, value: value.to_string(), expected }));
            }
        }
        let extent = (taps - 1) * dilation + 1;
        let [before, after] = match self.padding {
            Padding::Given(_) => [before, after],
            Padding::SameUpper | Padding::SameLower => {
                let both = ((input.div_ceil(stride) - 1) * stride + extent).saturating_sub(input);
                let (less, more) = (both / 2, both.div_ceil(2));
                if self.padding == Padding::SameUpper { [less, more] } else { [more, less] }
            }
        };
        let padded = input + before + after;
        if padded > MOST {
            return Err(Box::new(Error::LimitExceeded { what: "an input's size with its padding", requested: padded, max: MOST }));
        }
        if extent > padded {
            let expected = format!("at most {padded}, the input's size with its padding");
            return Err(Box::new(Error::InvalidDimension { name: "the extent of a kernel", value: extent.to_string(), expected }));
        }
        let room = padded - extent;
        let mut steps = if self.ceil { room.div_ceil(stride) } else { room / stride } + 1;
        // A window that begins behind the input has none of it.
        if self.ceil && (steps - 1) * stride >= input + before {
            steps -= 1;
        }
        let [input, taps, stride, dilation, before, after, steps] =
            [input, taps, stride, dilation, before, after, steps].map(|number| number as u32);
        Ok(Window { input, taps, stride, dilation, before, after, steps })
    }
}

/// A number for each dimension: those given, or the usual one.
fn each<T: Clone>(name: &'static str, given: &[T], rank: usize, usual: T) -> Result<Vec<T>> {
    match given.len() {
        0 if rank > 0 => Ok(vec![usual; rank]),
        length if length == rank => Ok(given.to_vec()),
        length => Err(wrong_number(name, length, rank)),
    }
}

fn wrong_number(name: &'static str, length: usize, rank: usize) -> Box<Error> {
    let (value, expected) = (length.to_string(), format!("{rank}, one for each dimension that the window slides along"));
    Box::new(Error::InvalidDimension { name, value, expected })
}

/// Windows along so many dimensions, the first of size 1 where there are fewer.
pub(crate) fn padded<const N: usize>(windows: &[Window]) -> [Window; N] {
    let mut all = [Window::ONE; N];
    for (to, from) in all.iter_mut().rev().zip(windows.iter().rev()) {
        *to = *from;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_formula() {
        let sliding =
            |stride, pads, ceil| Sliding { strides: vec![stride], padding: Padding::Given(vec![pads]), ceil, ..Sliding::default() };
        for (input, taps, stride, pads, ceil, steps) in [
            (7, 3, 1, [0, 0], false, 5),
            (7, 3, 2, [1, 1], false, 4),
            (6, 3, 2, [0, 0], false, 2),
            (6, 3, 2, [0, 0], true, 3),
            // It would begin in the padding behind the input.
            (4, 1, 2, [0, 1], true, 2),
            (2, 3, 3, [1, 1], true, 1),
        ] {
            let window = sliding(stride, pads, ceil).windows(&[input], &[taps]).unwrap()[0];
            assert_eq!(window.steps, steps, "{window:?}");
        }
        for (padding, pads) in [(Padding::SameUpper, [0, 1]), (Padding::SameLower, [1, 0])] {
            let sliding = Sliding { strides: vec![2], padding, ..Sliding::default() };
            let window = sliding.windows(&[6], &[3]).unwrap()[0];
            assert_eq!(([window.before, window.after], window.steps), (pads, 3));
        }
    }

    #[test]
    fn the_taps_inside_are_those_that_have_a_place() {
        let window = Window { input: 5, taps: 3, stride: 2, dilation: 2, before: 3, after: 4, steps: 4 };
        for step in 0..4 {
            let place = |tap: u32| i64::from(step * 2 + tap * 2) - 3;
            let expected: Vec<_> = (0..3).filter(|tap| (0..5).contains(&place(*tap))).collect();
            assert_eq!(window.inside(step).collect::<Vec<_>>(), expected, "step {step}");
            assert!(expected.iter().all(|tap| window.place(step, *tap) as i64 == place(*tap)));
        }
        assert_eq!(Window::of_words(&window.words()), Some(window));
    }
}
