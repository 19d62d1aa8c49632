//! Plans for Fourier transforms: `shaders/fft`. A length whose transform fits workgroup memory takes one launch, a longer one as many as it
//! has factors that fit; and one with a prime factor above 7 is a convolution of a power of two, which takes three transforms.
//!
//! ```text
//! smooth   input ─ n1 ─► scratch ─ n2 ─► … ─► result
//! others   chirp ─ transform ─► its spectrum
//!          input · chirp ─ transform ─► scratch · spectrum ─ transform back ─► · chirp ─► result
//! ```
//!
//! Compute shaders do the latter two at once where a workgroup keeps the elements, and read the chirp behind its spectrum.
//!
//! What the kernel is told is a row of words:
//!
//! ```text
//! transforms, columns of a line, elements behind the dimension, elements of the steps before, elements of the whole transform,
//! elements of the input along the dimension, those of the result, factor of the result, the caller's length, 0,
//! in scratch: where it reads, where it writes, where the chirp's spectrum is
//! ```

#[cfg(not(target_arch = "wasm32"))]
mod cuda;
mod fragment;
#[cfg(test)]
mod tests;

use super::words::Words;
use super::{Binding, Dispatch, Plan, Slot, spread};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::template::Constant;
use crate::kernels::{Kernel, KernelId};
use crate::ops::fft::{Form, Problem};
#[cfg(not(target_arch = "wasm32"))]
pub use cuda::{cuda, plain};
pub use fragment::fragment;

/// The most invocations of a workgroup.
const THREADS: u32 = 256;

/// Elements of a step among others, of which so many fit a workgroup that it reads neighbours in memory.
const ELEMENTS: u32 = 1024;

/// The most elements of a workgroup in WGSL, of 8 bytes each, and about so many of them are an invocation's.
const MOST_ELEMENTS: u32 = 4096;
const EACH: u32 = 16;

/// The longest transform: angles are counted in 32 bits, in eighths.
const MOST: u32 = 1 << 27;

/// The most complex numbers of a launch, which kernels count in 32 bits.
const MOST_NUMBERS: u64 = (1 << 31) - 1;

/// Complex numbers that invocations read or write as neighbours: where the first pass or the last has fewer, they change hands before it or behind
/// it, or memory is read and written a few bytes at a time.
const NEIGHBOURS: u32 = 16;

/// Lines of a launch are such a multiple where there are several launches, so that each begins at a multiple of every alignment of bindings.
const LINES: u32 = 64;

/// Names with the numbers of passes.
macro_rules! of_passes {
    ($name:literal) => {
        [
            concat!($name, 0),
            concat!($name, 1),
            concat!($name, 2),
            concat!($name, 3),
            concat!($name, 4),
            concat!($name, 5),
            concat!($name, 6),
            concat!($name, 7),
            concat!($name, 8),
            concat!($name, 9),
        ]
    };
}

/// The names of the passes' radices, of what is before them, of the butterflies of an invocation, of whether elements are kept in workgroup memory
/// before them and behind them, and of whether they are multiplied by the chirp's spectrum on the way.
const RADICES: [&str; 10] = of_passes!("RADIX_");
const SPANS: [&str; 10] = of_passes!("SPAN_");
const GROUPS: [&str; 10] = of_passes!("GROUPS_");
const READS: [&str; 10] = of_passes!("READS_");
const KEPT: [&str; 10] = of_passes!("KEPT_");
const FILTERS: [&str; 10] = of_passes!("FILTERS_");

/// What the steps are written in.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    Wgsl,
    /// Told how many elements a block has at most.
    #[cfg(not(target_arch = "wasm32"))]
    Cuda(u32),
    Glsl,
}

impl Language {
    /// The radices of a step's passes.
    fn radices(self, step: u32) -> Vec<u32> {
        match self {
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cuda(_) => eights(step),
            _ => balanced(step),
        }
    }

    /// The lengths of the steps of transforms of such a length, the inner lines of which are neighbours, with so many elements to a workgroup.
    fn steps(self, padded: u32, inner: u32, elements: u32) -> Result<Vec<u32>> {
        let steps = match self {
            Self::Glsl => fragment::factors(padded),
            // A lone step reads neighbours if they are its own.
            Self::Wgsl if inner == 1 && padded <= elements => factors(padded, elements),
            _ => factors(padded, ELEMENTS),
        };
        steps.ok_or_else(|| Error::internal("a length of transforms with other factors"))
    }
}

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    planned(problem, caps, Language::Wgsl)
}

fn planned(problem: &Problem, caps: &Caps, language: Language) -> Result<Plan> {
    let mut plan = Plan::default();
    if problem.elements() == 0 {
        return Ok(plan);
    }
    let n = problem.length;
    if n > MOST {
        let what = "the length of a transform on this backend";
        return Err(Box::new(Error::LimitExceeded { what, requested: n.into(), max: MOST.into() }));
    }
    let elements = match language {
        #[cfg(not(target_arch = "wasm32"))]
        Language::Cuda(elements) => elements,
        _ => 1 << (caps.max_workgroup_bytes / 8).clamp(ELEMENTS, MOST_ELEMENTS).ilog2(),
    };
    let is_smooth = factors(n, ELEMENTS).is_some();
    let padded = if is_smooth { n } else { (2 * n - 1).next_power_of_two() };
    let steps = language.steps(padded, problem.inner, elements)?;
    let is_whole = language == Language::Wgsl && steps.len() == 1;
    // Those of a chirp are read and written more often than once.
    let regions = if is_smooth || is_whole { (steps.len() - 1).min(2) as u32 } else { 2 };
    let outer = lines(problem, padded, regions, caps)?;
    for first in (0..problem.outer).step_by(outer as usize) {
        let part = Part {
            problem,
            padded,
            steps: &steps,
            regions,
            first,
            outer: outer.min(problem.outer - first),
            caps,
            elements,
            language,
            is_whole,
        };
        part.add_to(&mut plan)?;
    }
    Ok(plan)
}

/// The only launch on a CPU, which is told all in words.
pub fn cpu(problem: &Problem, variant: &str) -> Result<Plan> {
    let mut words = Words::default();
    let &Problem { outer, length, inner, input, inverse, reads, gives } = problem;
    for word in [outer, length, inner, input, inverse.into(), reads as u32, gives as u32] {
        words.push(word)?;
    }
    let kernel = Kernel { id: KernelId::FftCpu, variant: variant.to_owned(), constants: Vec::new(), source: None };
    Ok(Plan::of(Dispatch { kernel, params: words.into(), bindings: Vec::new(), grid: [1; 3] }))
}

/// What the words of a CPU's launch say.
pub(crate) fn told(words: &[u32]) -> Result<Problem> {
    let &[outer, length, inner, input, inverse, reads, gives] = words else {
        return Err(Error::internal("a transform that was told something else"));
    };
    let form = |number: u32| match number {
        0 => Form::Complex,
        1 => Form::Real,
        _ => Form::Half,
    };
    Ok(Problem { outer, length, inner, input, inverse: inverse > 0, reads: form(reads), gives: form(gives) })
}

/// The lengths of the steps of a transform, of at most so many elements, as few as there can be and about as long as one another; None if a
/// factor is too large a prime.
fn factors(n: u32, most: u32) -> Option<Vec<u32>> {
    let (mut primes, mut rest) = (Vec::new(), n);
    for prime in [7, 5, 3, 2] {
        while rest.is_multiple_of(prime) {
            primes.push(prime);
            rest /= prime;
        }
    }
    if rest > 1 {
        return None;
    }
    (1..).find_map(|count| {
        let mut steps = vec![1u32; count];
        for &prime in &primes {
            let least = steps.iter_mut().min()?;
            *least *= prime;
        }
        steps.iter().all(|&step| step <= most).then_some(steps)
    })
}

/// The radices of a step: eights, then what is left.
#[cfg(not(target_arch = "wasm32"))]
fn eights(step: u32) -> Vec<u32> {
    divided(step, &[8, 4, 2, 3, 5, 7])
}

/// As few powers of two as there can be up to sixteen, the larger ones in front, then what is left; a transform of one element has a pass too.
fn balanced(step: u32) -> Vec<u32> {
    let twos = step.trailing_zeros();
    let passes = twos.div_ceil(4);
    let mut radices: Vec<u32> = (0..passes).map(|pass| 1 << ((twos + passes - 1 - pass) / passes)).collect();
    radices.extend(divided(step >> twos, &[3, 5, 7]));
    if radices.is_empty() {
        radices.push(1);
    }
    radices
}

/// A number's factors, which are among these, in their order.
fn divided(mut rest: u32, factors: &[u32]) -> Vec<u32> {
    let mut found = Vec::new();
    for &factor in factors {
        while rest.is_multiple_of(factor) {
            found.push(factor);
            rest /= factor;
        }
    }
    found
}

/// How many of the outer lines a launch takes, with so many regions of the scratch between launches.
fn lines(problem: &Problem, padded: u32, regions: u32, caps: &Caps) -> Result<u32> {
    let &Problem { inner, length, input, reads, gives, .. } = problem;
    let per_line = |along: u32, parts: u64| u64::from(inner) * u64::from(along) * parts * 4;
    let chirp = if padded == length { 0 } else { u64::from(padded + length) * 8 };
    let (scratch, caller) =
        (per_line(padded, 2 * u64::from(regions)), per_line(input, reads.parts()).max(per_line(gives.stored(length), gives.parts())));
    // Of the largest binding.
    let bytes = |outer: u32| (u64::from(outer) * scratch + chirp).max(u64::from(outer) * caller);
    let most = caps.max_binding_bytes.min(caps.max_buffer_bytes);
    let mut outer = problem.outer;
    let numbers = |outer: u32| u64::from(outer) * u64::from(inner) * u64::from(padded);
    while bytes(outer) > most || numbers(outer) > MOST_NUMBERS {
        if outer <= LINES {
            let (what, requested, max) = if bytes(outer) > most {
                ("bytes of transforms that a kernel sees at once", bytes(outer), most)
            } else {
                ("complex numbers of transforms at once", numbers(outer), MOST_NUMBERS)
            };
            return Err(Box::new(Error::LimitExceeded { what, requested, max }));
        }
        outer = (outer / 2).next_multiple_of(LINES);
    }
    Ok(outer)
}

/// Some lines of a transform.
struct Part<'a> {
    problem: &'a Problem,
    /// The length of what is computed, and its steps.
    padded: u32,
    steps: &'a [u32],
    /// Of the scratch.
    regions: u32,
    first: u32,
    outer: u32,
    caps: &'a Caps,
    /// The most elements of a workgroup.
    elements: u32,
    language: Language,
    /// Whether a workgroup keeps all elements of a transform, so that one launch multiplies spectra.
    is_whole: bool,
}

/// Where a transform reads or writes.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// The input or the result.
    Caller,
    /// So many complex numbers into the scratch.
    Scratch(u32),
    /// Nowhere: the chirp is made as it is read.
    Chirp,
}

/// A transform of the plan's.
struct Transform {
    outer: u32,
    inner: u32,
    from: Place,
    to: Place,
    /// Whether what it reads is multiplied by the chirp's spectrum.
    filtered: bool,
    /// The factor of its result, or of the chirp that it reads.
    scale: f32,
}

impl Part<'_> {
    fn add_to(&self, plan: &mut Plan) -> Result<()> {
        let &Problem { inner, length, inverse, .. } = self.problem;
        let scale = if inverse { 1.0 / length as f32 } else { 1.0 };
        let whole = Transform { outer: self.outer, inner, from: Place::Caller, to: Place::Caller, filtered: false, scale };
        if self.padded == length {
            return self.transform(&whole, plan);
        }
        let region = self.region();
        // The way back adds up as many numbers as there are: so much less the chirp is, that nothing is larger on the way than the result.
        let many = self.padded.next_power_of_two();
        let to = Place::Scratch(self.regions * region);
        let chirp = Transform { outer: 1, inner: 1, from: Place::Chirp, to, scale: 1.0 / many as f32, ..whole };
        if self.is_whole {
            self.transform(&chirp, plan)?;
            return self.transform(&Transform { filtered: true, ..whole }, plan);
        }
        let there = Transform { to: Place::Scratch(0), ..whole };
        let back = Transform { from: Place::Scratch(0), filtered: true, scale: scale * (many as f32 / self.padded as f32), ..whole };
        self.transform(&chirp, plan)?;
        self.transform(&there, plan)?;
        self.transform(&back, plan)
    }

    /// Complex numbers of a region of the scratch.
    fn region(&self) -> u32 {
        self.outer * self.problem.inner * self.padded
    }

    /// Adds the steps of a transform. Between them it writes to one region of the scratch and the other in turn.
    fn transform(&self, transform: &Transform, plan: &mut Plan) -> Result<()> {
        let region = self.region();
        let mut from = transform.from;
        let mut before = 1;
        for (number, &step) in self.steps.iter().enumerate() {
            let is_last = number + 1 == self.steps.len();
            let to = if is_last {
                transform.to
            } else {
                // No step writes where it reads: what begins in the first region goes on to the second, and what ends there comes from it. Else
                // the first is the first, and a second there need not be.
                let left = self.steps.len() - 1 - number;
                let is_second = match (transform.from, transform.to) {
                    (_, Place::Scratch(0)) => left % 2 == 1,
                    (Place::Scratch(_), _) => number % 2 == 0,
                    _ => number % 2 == 1,
                };
                Place::Scratch(if is_second { region } else { 0 })
            };
            let add = if self.language == Language::Glsl { Self::drawing } else { Self::step };
            add(self, transform, (step, before), (from, to), plan)?;
            (from, before) = (to, before * step);
        }
        Ok(())
    }

    fn step(&self, transform: &Transform, (step, before): (u32, u32), (from, to): (Place, Place), plan: &mut Plan) -> Result<()> {
        let &Problem { length, input, reads, gives, inverse, .. } = self.problem;
        let &Transform { outer, inner, filtered, scale, .. } = transform;
        let (is_first, is_chirped) = (before == 1, self.padded != length);
        let columns = self.padded / step * inner;
        let transforms = outer * columns;
        // Few long ones are spread over more workgroups.
        let mut batch = (self.elements / step).min(transforms.next_power_of_two()).max(1);
        if self.language == Language::Wgsl {
            // As many as give full lines of a cache, or enough invocations.
            let (neighbours, enough) = if columns > 1 { (8, 512) } else { (1, 1024) };
            batch = batch.min(neighbours.max(enough / step));
        }
        while batch > 4 && transforms / batch < 64 {
            batch /= 2;
        }
        if !batch.is_power_of_two() {
            batch = batch.next_power_of_two() / 2;
        }
        let threads = (batch * step).div_ceil(EACH).next_multiple_of(32).min(THREADS.min(self.caps.max_workgroup_invocations));
        let workgroups = transforms.div_ceil(batch);
        let [x, y] = spread(workgroups, self.caps.max_workgroups_per_dimension);
        let (reads_caller, writes_caller) = (from == Place::Caller, to == Place::Caller);
        let uses_scratch = matches!(from, Place::Scratch(_)) || !writes_caller || is_chirped;
        let flag = |yes: bool| u32::from(yes);
        let mut constants: Vec<Constant> = vec![
            ("THREADS", threads),
            ("LENGTH", step),
            ("BEFORE", before),
            ("INNER", inner),
            ("COLUMNS_OF_LINE", columns),
            ("BATCH", batch),
            ("COLUMNS", flag(columns > 1)),
            ("ACROSS", flag(columns > 1 && (before > 1 || inner > 1))),
            ("RAGGED", flag(transforms != x * y * batch)),
            ("CUT_IN", flag(input < self.padded)),
            ("CUT_OUT", flag(gives.stored(length) < self.padded)),
            ("SCALED", flag(scale.to_bits() != 1f32.to_bits())),
            ("SOURCE_REAL", flag(reads_caller && reads == Form::Real)),
            ("SOURCE_COMPLEX", flag(reads_caller && reads != Form::Real)),
            ("SOURCE_HALF", flag(reads_caller && reads == Form::Half)),
            ("SOURCE_SCRATCH", flag(matches!(from, Place::Scratch(_)))),
            ("SOURCE_CHIRP", flag(from == Place::Chirp)),
            ("TARGET_REAL", flag(writes_caller && gives == Form::Real)),
            ("TARGET_COMPLEX", flag(writes_caller && gives != Form::Real)),
            ("TARGET_SCRATCH", flag(!writes_caller)),
            ("SCRATCH", flag(uses_scratch)),
            ("CHIRP", flag(is_chirped)),
            ("CHIRP_IN", flag(is_chirped && reads_caller)),
            ("CHIRP_OUT", flag(is_chirped && writes_caller)),
            ("FILTERED", flag(filtered && is_first && !reads_caller)),
            ("CONJUGATE_IN", flag(inverse && reads_caller)),
            ("CONJUGATE_OUT", flag(inverse && writes_caller)),
        ];
        let mut radices = self.language.radices(step);
        let groups = |radix: u32| (batch * step / radix).div_ceil(threads);
        let mut spans: Vec<_> = (0..radices.len()).map(|pass| radices[..pass].iter().product::<u32>()).collect();
        let changes_hands = |neighbours: u32, form: Form, is_callers: bool| {
            // Of real numbers as many are half the bytes; and of a half many invocations would write nothing.
            let enough = if is_callers && form != Form::Complex { NEIGHBOURS / 2 } else { NEIGHBOURS };
            flag(self.language == Language::Wgsl && columns == 1 && neighbours < enough.min(step))
        };
        let [first, last] = [step / radices.first().copied().unwrap_or(1), spans.last().copied().unwrap_or(1)];
        let (staged_in, staged_out) = (changes_hands(first, reads, reads_caller), changes_hands(last, gives, writes_caller));
        // The way back behind the way there.
        let back = if filtered && reads_caller { radices.len() } else { usize::MAX };
        if back < usize::MAX {
            (radices, spans) = (radices.repeat(2), spans.repeat(2));
        }
        constants.extend([
            ("PASSES", radices.len() as u32),
            ("GROUPS", radices.iter().copied().map(groups).max().unwrap_or_default()),
            ("STAGED_IN", staged_in),
            ("STAGED_OUT", staged_out),
            ("STAGES", (batch * step).div_ceil(threads)),
        ]);
        for (pass, (&radix, &span)) in radices.iter().zip(&spans).enumerate() {
            let reads = if pass > 0 { 1 } else { staged_in };
            let kept = if pass + 1 < radices.len() { 1 } else { staged_out };
            constants.extend([(RADICES[pass], radix), (SPANS[pass], span), (GROUPS[pass], groups(radix))]);
            constants.extend([(READS[pass], reads), (KEPT[pass], kept), (FILTERS[pass], flag(pass == back))]);
        }
        let in_scratch = |place: Place| if let Place::Scratch(at) = place { at } else { 0 };
        let results = gives.stored(length);
        let mut words = Words::default();
        let told = [transforms, columns, inner, before, self.padded, input, results, scale.to_bits(), length, 0];
        for word in told.into_iter().chain([in_scratch(from), in_scratch(to), self.regions * self.region()]) {
            words.push(word)?;
        }
        let mut bindings = Vec::new();
        let bytes = |along: u32, form: Form| u64::from(inner) * u64::from(along) * form.parts() * 4;
        let mut bind = |slot, index, per_line: u64| {
            let size_bytes = (u64::from(outer) * per_line).next_multiple_of(16);
            bindings.push(Binding { slot, index, offset_bytes: u64::from(self.first) * per_line, size_bytes });
        };
        if reads_caller {
            bind(Slot::A, 0, bytes(input, reads));
        }
        if writes_caller {
            bind(Slot::Out, 2, bytes(results, gives));
        }
        if uses_scratch {
            let size_bytes = (u64::from(self.regions) * u64::from(self.region()) * 8
                + if is_chirped { u64::from(self.padded + length) * 8 } else { 0 })
            .next_multiple_of(16);
            bindings.push(Binding { slot: Slot::Scratch, index: 4, offset_bytes: 0, size_bytes });
            plan.scratch_bytes = plan.scratch_bytes.max(size_bytes);
        }
        let kernel = Kernel { id: KernelId::Fft, variant: format!("{step} of {}, {batch} at once", self.padded), constants, source: None };
        plan.dispatches.push(Dispatch { kernel, params: words.into(), bindings, grid: [x, y, 1] });
        Ok(())
    }
}
