//! Plans for Fourier transforms by fragment shaders: a drawing for each factor of the length, from one texture to another. A length with a prime factor
//! above 31 is a convolution, as it is for compute shaders.
//!
//! ```text
//! elements that are drawn, those behind the dimension, those of the whole transform, those of the steps before, the factor,
//! elements of the input along the dimension, those of the target, factor of the result, the caller's length
//! ```

use super::{Language, Part, Place, Transform};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::fft::{Form, Problem};
use crate::plan::map::OUT_BINDING;
use crate::plan::matmul::fold;
use crate::plan::words::Words;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// The longest transform: angles are counted in 32 bits.
const MOST: u32 = 1 << 25;
/// The most complex numbers of all transforms, so that places do not overflow.
const MOST_NUMBERS: u64 = 1 << 30;

/// The factors of a length, those that are tried first in front: a fragment reads as many elements as its factor says.
const FACTORS: [u32; 15] = [8, 9, 7, 5, 4, 6, 3, 2, 11, 13, 17, 19, 23, 29, 31];

/// A plan for fragment shaders.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let mut plan = Plan::default();
    if problem.elements() == 0 {
        return Ok(plan);
    }
    let n = problem.length;
    if n > MOST {
        let what = "the length of a transform on this backend";
        return Err(Box::new(Error::LimitExceeded { what, requested: n.into(), max: MOST.into() }));
    }
    let padded = if factors(n).is_some() { n } else { (2 * n - 1).next_power_of_two() };
    let requested = problem.lines() * u64::from(padded);
    if requested > MOST_NUMBERS {
        let what = "the number of complex numbers of a transform on this backend";
        return Err(Box::new(Error::LimitExceeded { what, requested, max: MOST_NUMBERS }));
    }
    let language = Language::Glsl;
    let steps = &language.steps(padded, problem.inner, 0)?;
    Part { problem, padded, steps, regions: 2, first: 0, outer: problem.outer, caps, elements: 0, language, is_whole: false }
        .add_to(&mut plan)?;
    Ok(plan)
}

/// The factors of the steps; None if one is too large a prime.
pub(super) fn factors(n: u32) -> Option<Vec<u32>> {
    let (mut steps, mut rest) = (Vec::new(), n);
    for factor in FACTORS {
        while rest.is_multiple_of(factor) {
            steps.push(factor);
            rest /= factor;
        }
    }
    if steps.is_empty() {
        // Of one element there is a step too.
        steps.push(1);
    }
    (rest == 1).then_some(steps)
}

impl Part<'_> {
    /// The drawing of a step.
    pub(super) fn drawing(
        &self,
        transform: &Transform,
        (step, before): (u32, u32),
        (from, to): (Place, Place),
        plan: &mut Plan,
    ) -> Result<()> {
        let &Problem { length, input, reads, gives, inverse, .. } = self.problem;
        let &Transform { outer, inner, filtered, scale, .. } = transform;
        let (reads_caller, writes_caller, is_chirped) = (from == Place::Caller, to == Place::Caller, self.padded != length);
        let flag = |yes: bool| u32::from(yes);
        let constants = vec![
            ("SOURCE_REAL", flag(reads_caller && reads == Form::Real)),
            ("SOURCE_HALF", flag(reads_caller && reads == Form::Half)),
            ("SOURCE_CALLER", flag(reads_caller)),
            ("SOURCE_SCRATCH", flag(matches!(from, Place::Scratch(_)))),
            ("SOURCE_CHIRP", flag(from == Place::Chirp)),
            ("TARGET_REAL", flag(writes_caller && gives == Form::Real)),
            ("TARGET_SCRATCH", flag(!writes_caller)),
            ("CHIRP", flag(is_chirped)),
            ("CHIRP_IN", flag(is_chirped && reads_caller)),
            ("CHIRP_OUT", flag(is_chirped && writes_caller)),
            ("FILTERED", flag(filtered && before == 1)),
            ("CONJUGATE_IN", flag(inverse && reads_caller)),
            ("CONJUGATE_OUT", flag(inverse && writes_caller)),
            ("SCALARS", 0),
        ];
        let along = if writes_caller { gives.stored(length) } else { self.padded };
        let elements = u64::from(outer) * u64::from(inner) * u64::from(along);
        let mut words = Words::default();
        let told = [elements as u32, inner, self.padded, before, step, input, along, scale.to_bits(), length];
        told.into_iter().try_for_each(|word| words.push(word))?;
        // A texture for each place in the scratch.
        let scratch = |place: u32, index: u32, elements: u64| {
            let size_bytes = (elements * 8).next_multiple_of(16);
            Binding { slot: Slot::Scratch, index, offset_bytes: u64::from(place) * 8, size_bytes }
        };
        let numbers = u64::from(outer) * u64::from(inner) * u64::from(self.padded);
        let mut bindings = Vec::new();
        match from {
            Place::Caller => bindings.push(Binding { slot: Slot::A, index: 0, offset_bytes: 0, size_bytes: self.problem.inputs() * 4 }),
            Place::Scratch(place) => bindings.push(scratch(place, 0, numbers)),
            Place::Chirp => {}
        }
        if filtered && before == 1 {
            bindings.push(scratch(2 * self.region(), 1, self.padded.into()));
        }
        let target = match to {
            Place::Scratch(place) => scratch(place, OUT_BINDING, numbers),
            _ => Binding { slot: Slot::Out, index: OUT_BINDING, offset_bytes: 0, size_bytes: self.problem.elements() * 4 },
        };
        if target.slot == Slot::Scratch {
            plan.scratch_bytes = plan.scratch_bytes.max(target.offset_bytes + target.size_bytes);
        }
        bindings.push(target);
        let per_texel = if writes_caller && gives == Form::Real { 4 } else { 2 };
        let (width, height) = fold(elements.div_ceil(per_texel), self.caps)?;
        // One for all factors and lengths: drivers take their time to compile.
        let kernel = Kernel { id: KernelId::FftFragment, variant: String::new(), constants, source: None };
        plan.dispatches.push(Dispatch { kernel, params: words.into(), bindings, grid: [width, height, 1] });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Params;

    #[test]
    fn no_drawing_reads_what_it_draws_to_or_what_was_not_drawn() {
        for (length, drawings) in [(1, 1), (8, 1), (12, 2), (31, 1), (1 << 20, 7), (37, 9), (74, 9), (1009, 12)] {
            for [reads, gives] in [[Form::Complex; 2], [Form::Real, Form::Half], [Form::Half, Form::Real]] {
                let problem = Problem { outer: 2, length, inner: 3, input: gives.stored(length), inverse: true, reads, gives };
                let caps = Caps { max_texture_size: 8192, ..Caps::UNLIMITED };
                let plan = fragment(&problem, &caps).unwrap();
                assert_eq!(plan.dispatches.len(), drawings, "{plan}");
                let mut drawn: Vec<u64> = Vec::new();
                for (number, Dispatch { kernel, params, bindings, .. }) in plan.dispatches.iter().enumerate() {
                    let (target, read) = bindings.split_last().unwrap();
                    assert_eq!((target.index, target.slot == Slot::Out), (OUT_BINDING, number + 1 == drawings), "{plan}");
                    for binding in read.iter().filter(|binding| binding.slot == Slot::Scratch) {
                        assert!(drawn.contains(&binding.offset_bytes), "{plan}");
                        assert!(target.slot == Slot::Out || binding.offset_bytes != target.offset_bytes, "{plan}");
                    }
                    drawn.push(target.offset_bytes);
                    assert!(matches!(params, Params::Words(_)) && kernel.glsl().unwrap().contains("void main()"));
                }
            }
        }
        assert_eq!(factors(74), None);
        let long = |length| Problem { outer: 1, length, inner: 1, input: 1, inverse: false, reads: Form::Real, gives: Form::Half };
        let error = fragment(&long(MOST + 1), &Caps::UNLIMITED).unwrap_err();
        assert_eq!(
            *error,
            Error::LimitExceeded { what: "the length of a transform on this backend", requested: (1 << 25) + 1, max: 1 << 25 }
        );
        let error = fragment(&Problem { outer: 64, ..long(1 << 25) }, &Caps::UNLIMITED).unwrap_err();
        assert!(matches!(*error, Error::LimitExceeded { requested, max, .. } if (requested, max) == (1 << 31, 1 << 30)));
    }
}
