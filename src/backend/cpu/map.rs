//! Elementwise programs on the CPU: a block of elements goes through one step after the other, so that each step is a loop over a few
//! kilobytes that stay in the cache, which the compiler turns into vector instructions.

#[cfg(not(target_arch = "wasm32"))]
mod moves;
#[cfg(not(target_arch = "wasm32"))]
mod places;
mod runs;
mod step;

use std::cell::Cell;
use std::ops::Range;

#[cfg(target_arch = "wasm32")]
use half::f16;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen::prelude::wasm_bindgen;

#[cfg(not(target_arch = "wasm32"))]
pub(super) use places::Elements;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::{Kernel, Source};
use crate::ops::elementwise::{Kind, Program, Step};

/// The fewest and the most elements of a block.
const BLOCK: [usize; 2] = [512, 4096];
/// Words of a line of the cache, which the widest vectors are as long as: what begins at such a line is written without touching a second one.
const LINE: usize = 16;
/// Lines of registers that a thread keeps for the next program.
const MOST_KEPT: usize = (256 << 10) / size_of::<Line>();
/// Elements of all values of a block: they are to stay in the nearest cache, where what is read ahead has its place, too.
const BLOCK_VALUES: usize = 6 << 10;
/// The most elements of a block where they need no cache.
const LONG_BLOCK: usize = 1 << 14;
/// Steps of programs that are short.
const FEW_STEPS: usize = 16;
/// Elements from which a row is a block of its own.
const LONG_ROW: usize = if cfg!(target_arch = "wasm32") { 256 } else { 128 };

/// An input's elements.
#[cfg(target_arch = "wasm32")]
pub(super) enum Elements<'a> {
    /// In the page's memory: an array of words, or of the bits of f16, and which it is.
    Page(js_sys::Object, DType),
    /// Words in this module's memory.
    Own(&'a [u32]),
}

#[cfg(target_arch = "wasm32")]
#[wasm_bindgen(module = "/src/backend/cpu/wasm/gather.js")]
extern "C" {
    /// Elements of an input as words, 0 where it has none.
    fn gather(elements: &js_sys::Object, words: &[u32], rank: usize, at: u32, is_bounded: bool, first: usize, out: &mut [u32]);
}

/// Where a step's values of a block are.
#[derive(Clone)]
enum Value<'a> {
    /// In an input.
    Lying(&'a [u32]),
    /// The same of all blocks.
    Whole(&'a [u32]),
    /// One for all elements, in what the kernel is told.
    Number(&'a [u32]),
    /// In the register of that number.
    Register(usize),
    /// Rows of an input that lies across them, from one element on up to another, in the register of that number.
    Turned(usize, Range<usize>),
}

/// What the steps of one program give, so far as it needs room: inputs may be read where they lie.
#[derive(Default)]
pub(super) struct Registers {
    lines: Vec<Vec<Line>>,
    /// Of each step one bit: whether its values are there, which those of numbers are for good.
    made: u128,
}

thread_local! {
    /// Those of the last program that the thread ran, for the next one: new memory has to be cleared.
    static LAST: Cell<Registers> = Cell::default();
}

/// Words that begin where a line of the cache does.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u32; LINE]);

/// A kernel with what it is told and what it reads.
pub(super) struct Map<'a> {
    source: &'a Source,
    /// As the shaders have them (`src/plan/map.rs`).
    words: &'a [u32],
    rank: usize,
    scalars: usize,
    inputs: Vec<Elements<'a>>,
    /// The step that gives the result: those behind it change no bits.
    last: usize,
    /// Bytes of an element of the result.
    result_bytes: usize,
    /// Of each step one bit: whether it is a number that each element has beside it, and not once for all of a block.
    repeated: u128,
    /// Whether the result is written past the cache.
    #[cfg(not(target_arch = "wasm32"))]
    streams: bool,
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    simd: bool,
}

impl<'a> Map<'a> {
    pub(super) fn new(kernel: &'a Kernel, words: &'a [u32], inputs: Vec<Elements<'a>>) -> Result<Self> {
        let source = kernel.source.as_deref().ok_or_else(|| Error::internal("an elementwise kernel without a program"))?;
        let [rank, scalars] = ["RANK", "SCALARS"].map(|name| kernel.constant(name) as usize);
        let program = &source.program;
        let mut last = program.steps.len().saturating_sub(1);
        while let Some(&Step::Cast(of, to)) = program.steps.get(last)
            && keeps_words(program.kind(of), to)
        {
            last = of.into();
        }
        Ok(Self {
            source,
            words,
            rank,
            scalars,
            inputs,
            last,
            result_bytes: source.result.bytes() as usize,
            repeated: repeated(program, last),
            #[cfg(not(target_arch = "wasm32"))]
            streams: false,
            #[cfg(any(feature = "simd", target_arch = "wasm32"))]
            simd: false,
        })
    }

    /// The same for elements of the result that take so many bytes, which are written past the cache or into it.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn writing(self, result_bytes: usize, streams: bool) -> Self {
        Self { result_bytes, streams, ..self }
    }

    /// The same by the widest vectors that the CPU has, or by plain ones.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn with_vectors(self, simd: bool) -> Self {
        Self { simd, ..self }
    }

    /// Whether by the widest vectors.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn has_vectors(&self) -> bool {
        self.simd
    }

    /// Elements of the result.
    pub(super) fn elements(&self) -> usize {
        self.words[0] as usize
    }

    /// Elements of a row of the result.
    pub(super) fn row(&self) -> usize {
        if self.rank == 0 { 1 } else { self.size(self.rank - 1) }
    }

    /// What the elements of the result are.
    pub(super) fn result(&self) -> DType {
        self.source.result
    }

    /// An input's words where they are in this module's memory.
    #[cfg(target_arch = "wasm32")]
    fn words_of(&self, input: usize) -> Option<&'a [u32]> {
        match self.inputs[input] {
            Elements::Page(..) => None,
            Elements::Own(words) => Some(words),
        }
    }

    /// Computes the elements from `first` on, as many as there is room for, by the widest vectors that the CPU has if that was asked for.
    pub(super) fn compute(&self, first: usize, out: &mut [u8]) {
        let mut registers = Registers { made: 0, ..LAST.try_with(Cell::take).unwrap_or_default() };
        self.compute_with(&mut registers, first, out);
        if registers.lines.iter().map(Vec::len).sum::<usize>() <= MOST_KEPT {
            // A thread that ends keeps nothing.
            let _ = LAST.try_with(|last| last.set(registers));
        }
    }

    /// The same with room that calls after one another share.
    pub(super) fn compute_with(&self, registers: &mut Registers, first: usize, out: &mut [u8]) {
        #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
        if self.simd {
            struct Part<'a, 'b>(&'a Map<'b>, &'a mut Registers, usize, &'a mut [u8]);

            impl pulp::WithSimd for Part<'_, '_> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    self.0.blocks(self.1, self.2, self.3);
                }
            }

            return pulp::Arch::new().dispatch(Part(self, registers, first, out));
        }
        self.blocks(registers, first, out);
    }

    #[inline(always)]
    fn blocks(&self, Registers { lines: registers, made }: &mut Registers, first: usize, out: &mut [u8]) {
        let Some(steps) = self.source.program.steps.get(..=self.last) else { return };
        // What is only turned is turned at once.
        #[cfg(target_arch = "wasm32")]
        if let ([Step::Input(input)], 4) = (steps, self.result_bytes)
            && self.lies_across(usize::from(*input))
        {
            return self.read(usize::from(*input), first, bytemuck::cast_slice_mut(out));
        }
        registers.resize(registers.len().max(steps.len()), Vec::new());
        // A short program's need no memory of their own: there may be as many calls as there are blocks.
        let (mut few, mut many) = ([const { Value::Register(0) }; FEW_STEPS], Vec::new());
        let values = few.get_mut(..steps.len()).unwrap_or_else(|| {
            many.resize(steps.len(), Value::Register(0));
            &mut many
        });
        let (is_direct, makes_truths) = (self.writes_words(), self.makes_truths());
        let (begin, elements) = (first, out.len() / self.result_bytes);
        for (at, (value, step)) in values.iter_mut().zip(steps).enumerate() {
            *value = match *step {
                Step::Input(input) => self.lying(usize::from(input), first, elements).map_or(Value::Register(0), Value::Whole),
                Step::Scalar(scalar, _) if self.repeated >> at & 1 == 0 => {
                    Value::Number(&self.words[self.scalars + usize::from(scalar)..][..1])
                }
                _ => continue,
            };
        }
        // Where nothing is put between inputs and the result, blocks need not stay in a cache.
        let most = if (is_direct || makes_truths) && !self.needs_room(values) { LONG_BLOCK } else { self.block() };
        // Rows are of no concern where all inputs lie in the order of the result.
        let is_of_rows = !steps.iter().zip(&*values).all(|(step, value)| match step {
            Step::Input(_) => matches!(value, Value::Whole(_)),
            Step::Inside(_) => false,
            _ => true,
        });
        let (mut first, mut rest) = (first, out);
        while !rest.is_empty() {
            let to_end = if is_of_rows { self.to_end_of_row(first) } else { usize::MAX };
            let count = (rest.len() / self.result_bytes).min(self.to_line(rest, most)).min(to_end);
            let (out, later) = rest.split_at_mut(count * self.result_bytes);
            for (step, what) in steps.iter().enumerate() {
                let is_written = is_direct && step == self.last;
                if !is_written && let Value::Whole(_) | Value::Number(_) = values[step] {
                    continue;
                }
                if !is_written && let Some(elsewhere) = self.elsewhere(*what, [first, count], values) {
                    values[step] = elsewhere;
                    continue;
                }
                let (before, after) = registers.split_at_mut(step);
                let Some(register) = after.first_mut() else { return };
                if !is_written
                    && let Step::Input(input) = *what
                    && self.lies_across(input.into())
                {
                    if !matches!(&values[step], Value::Turned(_, of) if of.start <= first && first + count <= of.end) {
                        let of = self.turn_rows(input.into(), [first, first + count, begin + elements], register);
                        values[step] = Value::Turned(step, of);
                    }
                    continue;
                }
                let operand = |operand: usize| match values[operand] {
                    Value::Lying(words) | Value::Number(words) => words,
                    Value::Whole(words) => &words[first - begin..][..count],
                    Value::Turned(number, ref of) => &bytemuck::cast_slice(&before[number])[first - of.start..][..count],
                    Value::Register(number) => &bytemuck::cast_slice(&before[number])[..count],
                };
                #[cfg(not(target_arch = "wasm32"))]
                if let Step::Apply(function, operands) = *what
                    && makes_truths
                    && step == self.last
                {
                    let registers = [operand(operands[0].into()), operand(operands[1].into())];
                    function.apply_to_truths(self.source.program.kind(operands[0]), &registers[..function.arity()], out);
                    continue;
                }
                let is_new = *made >> step & 1 == 0 || register.len() < most / LINE;
                if !is_written {
                    register.resize(register.len().max(most / LINE), bytemuck::Zeroable::zeroed());
                    *made |= 1 << step;
                }
                let to = match *what {
                    _ if is_written => bytemuck::cast_slice_mut(&mut *out),
                    // A number stays what it is.
                    Step::Scalar(..) if !is_new => &mut [],
                    Step::Scalar(..) => bytemuck::cast_slice_mut(register),
                    _ => &mut bytemuck::cast_slice_mut(register)[..count],
                };
                self.step(*what, first, operand, to);
                values[step] = Value::Register(step);
            }
            if !is_direct && !makes_truths {
                let made = match values[self.last] {
                    Value::Lying(words) | Value::Number(words) => words,
                    Value::Whole(words) => &words[first - begin..][..count],
                    Value::Turned(number, ref of) => &bytemuck::cast_slice(&registers[number])[first - of.start..][..count],
                    Value::Register(number) => &bytemuck::cast_slice(&registers[number])[..count],
                };
                self.put(made, out);
            }
            (first, rest) = (first + count, later);
        }
        #[cfg(not(target_arch = "wasm32"))]
        if self.streams {
            super::simd::end_stream();
        }
    }

    /// What a step gives where it needs no room: input that lies in order, or what a cast leaves as it is.
    #[inline(always)]
    fn elsewhere(&self, what: Step, [first, count]: [usize; 2], values: &[Value<'a>]) -> Option<Value<'a>> {
        match what {
            Step::Input(input) => self.lying(usize::from(input), first, count).map(Value::Lying),
            Step::Cast(of, to) if keeps_words(self.source.program.kind(of), to) => Some(values[usize::from(of)].clone()),
            _ => None,
        }
    }

    /// Whether a step before the last gives values that have to be put somewhere.
    fn needs_room(&self, values: &[Value<'_>]) -> bool {
        !values[..self.last].iter().all(|value| matches!(value, Value::Whole(_) | Value::Number(_)))
    }

    /// Elements of a block, of which there are the fewer the more values there are of each. Numbers take no room.
    fn block(&self) -> usize {
        let values = self.source.program.steps.iter().filter(|step| !matches!(step, Step::Scalar(..))).count();
        let [least, most] = BLOCK;
        (BLOCK_VALUES / values.max(1)).clamp(least, most) / 64 * 64
    }

    /// Elements of a block that ends where a line of the cache does: no more than that, and of many what is before the first line, since vectors as
    /// long as lines are written to two of them each otherwise. Absolute values of 10000 numbers, which
    /// `scripts/bench-numpy --elements 1e4` times, took 2.2 µs on a Xeon with AVX-512 then, and so 1.9.
    fn to_line(&self, out: &[u8], most: usize) -> usize {
        const MANY: usize = 64 * size_of::<Line>();
        let beyond = out.as_ptr().addr() % size_of::<Line>() / self.result_bytes;
        let is_first = cfg!(not(target_arch = "wasm32")) && most == LONG_BLOCK && beyond > 0 && out.len() >= MANY;
        if is_first { size_of::<Line>() / self.result_bytes - beyond } else { most - beyond }
    }

    /// Whether the last step writes the result as it is.
    fn writes_words(&self) -> bool {
        #[cfg(not(target_arch = "wasm32"))]
        return self.result_bytes == 4 && !self.streams;
        #[cfg(target_arch = "wasm32")]
        return self.result_bytes == 4;
    }

    /// The same that writes truths as bytes, if values are truths.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn of_truths(&self) -> Option<Self> {
        let Some(Step::Apply(..)) = self.source.program.steps.get(self.last) else { return None };
        let is_of_truths = self.source.program.kind(self.last as u8) == Kind::Bool;
        is_of_truths.then(|| Self { inputs: self.inputs.clone(), result_bytes: 1, streams: false, ..*self })
    }

    /// Whether the last step writes truths as bytes.
    fn makes_truths(&self) -> bool {
        let last = self.source.program.steps.get(self.last);
        cfg!(not(target_arch = "wasm32")) && self.result_bytes == 1 && matches!(last, Some(Step::Apply(..)))
    }

    /// Elements up to the end of a row. Within a long one inputs lie in order that do not from row to row; short ones go into one block.
    fn to_end_of_row(&self, first: usize) -> usize {
        if self.rank > 1
            && let row @ LONG_ROW.. = self.size(self.rank - 1)
        {
            return row - first % row;
        }
        usize::MAX
    }

    /// Whether an input's elements lie in the order of the result's.
    pub(super) fn is_in_order(&self, input: usize) -> bool {
        let mut row = 1;
        (0..self.rank).rev().all(|dimension| {
            let expected = row;
            row *= self.size(dimension);
            self.size(dimension) == 1 || self.stride(input, dimension) as usize == expected
        }) && self.words[self.source.inputs[input].at as usize] == 0
    }

    /// Does something for each value with the place of an input's element that belongs to it.
    pub(super) fn each_place(&self, input: usize, values: &[u32], mut run: impl FnMut(usize, u32)) {
        let mut coordinates = [0; crate::ops::map::MOST_DIMENSIONS];
        let mut place = self.words[self.source.inputs[input].at as usize];
        for &value in values {
            run(place as usize, value);
            // The next step, and back to the start of each dimension that has come to its end.
            for dimension in (0..self.rank).rev() {
                let stride = self.stride(input, dimension);
                coordinates[dimension] += 1;
                place = place.wrapping_add(stride);
                if coordinates[dimension] < self.size(dimension) {
                    break;
                }
                place = place.wrapping_sub(stride.wrapping_mul(coordinates[dimension] as u32));
                coordinates[dimension] = 0;
            }
        }
    }

    /// Elements of an input; 0 where it has none.
    #[cfg(target_arch = "wasm32")]
    fn read_rows(&self, input: usize, first: usize, out: &mut [u32]) {
        match &self.inputs[input] {
            Elements::Page(elements, stored) => {
                let reading = &self.source.inputs[input];
                gather(elements, self.words, self.rank, reading.at, reading.is_bounded, first, out);
                // What the caller gave in f16 is kept in f32 here.
                if *stored == DType::F16 {
                    for word in out {
                        *word = f16::from_bits(*word as u16).to_f32().to_bits();
                    }
                }
            }
            Elements::Own(words) => match self.lying(input, first, out.len()) {
                Some(lying) => out.copy_from_slice(lying),
                None if self.lies_across(input) && [first, out.len()].iter().all(|count| count.is_multiple_of(self.row())) => {
                    self.turn_rows_to(input, first / self.row(), out);
                }
                None => {
                    let stride = self.stride(input, self.rank.saturating_sub(1));
                    self.read_each(words, (input, stride), first, out, |&word| word, |from, to| to.copy_from_slice(from));
                }
            },
        }
    }

    fn size(&self, dimension: usize) -> usize {
        self.words[2 + dimension] as usize
    }

    fn stride(&self, input: usize, dimension: usize) -> u32 {
        self.words[self.source.inputs[input].at as usize + 1 + dimension]
    }
}

/// Whether values of one kind are the same words as another.
fn keeps_words(is: Kind, to: Kind) -> bool {
    is == to || is != Kind::F32 && matches!(to, Kind::I32 | Kind::U32)
}

/// Of each step one bit: whether it has to be there for each element where it is a number. A function of two takes a single one beside others.
fn repeated(program: &Program, last: usize) -> u128 {
    let is_number = |step: u8| matches!(program.steps[usize::from(step)], Step::Scalar(..));
    let asks = |step: &&Step| !matches!(step, Step::Apply(function, [a, b]) if function.arity() == 2 && !(is_number(*a) && is_number(*b)));
    let operands = program.steps.iter().filter(asks).flat_map(Step::operands);
    operands.fold(1 << last, |repeated, &operand| repeated | 1 << operand)
}
