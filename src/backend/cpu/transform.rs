//! Fourier transforms by libraries, natively: line by line where lines lie in memory, else some neighbouring lines at a time, so that each
//! line of the cache is read once.

use std::sync::{Arc, Mutex, PoisonError};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::crew::{each, each_with};
use super::fft;
use super::turned::{Turned, turn};
use crate::ops::fft::{Form, Problem};

/// Numbers of a share of the work: some microseconds.
const SHARE: usize = 1 << 13;
/// Numbers from which other threads are worth waking.
const MANY: usize = 1 << 16;
/// Lines that are gathered at once.
const TOGETHER: usize = 16;
/// Numbers between them, without which those of lengths that are powers of two would share a few places of the cache.
const GAP: usize = 16;
/// Rows that are turned at once, which a line of the cache is made of.
const ROWS: usize = 8;

/// Transforms by length, which take long to make.
pub(super) struct Transforms(Mutex<(FftPlanner<f32>, RealFftPlanner<f32>)>);

/// How a line is transformed.
enum Kind {
    Complex(Arc<dyn Fft<f32>>),
    Forward(Arc<dyn RealToComplex<f32>>),
    Inverse(Arc<dyn ComplexToReal<f32>>),
    /// As complex numbers forward, whatever the line is made of.
    Any(Arc<dyn Fft<f32>>),
}

/// The transform of the lines of a problem.
struct Lines<'a> {
    problem: &'a Problem,
    values: &'a [f32],
    kind: Kind,
    scale: f32,
    /// Numbers of an element of the input and of the result, and of a line of either.
    parts: [usize; 2],
    lengths: [usize; 2],
}

impl Default for Transforms {
    fn default() -> Self {
        Self(Mutex::new((FftPlanner::new(), RealFftPlanner::new())))
    }
}

impl Transforms {
    /// All lines of a problem.
    pub(super) fn run(&self, problem: &Problem, values: &[f32], out: &mut [f32], threads: usize) {
        let mut planners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ((complex, real), length) = (&mut *planners, problem.length as usize);
        let kind = match (problem.reads, problem.gives, problem.inverse) {
            (Form::Complex, Form::Complex, false) => Kind::Complex(complex.plan_fft_forward(length)),
            (Form::Complex, Form::Complex, true) => Kind::Complex(complex.plan_fft_inverse(length)),
            (Form::Real, Form::Half, false) => Kind::Forward(real.plan_fft_forward(length)),
            (Form::Half, Form::Real, true) => Kind::Inverse(real.plan_fft_inverse(length)),
            _ => Kind::Any(complex.plan_fft_forward(length)),
        };
        drop(planners);
        let scale = if problem.inverse { 1.0 / problem.length as f32 } else { 1.0 };
        let parts = [problem.reads, problem.gives].map(|form| form.parts() as usize);
        let lengths = [problem.reads, problem.gives].map(|form| (form.stored(problem.length) as u64 * form.parts()) as usize);
        Lines { problem, values, kind, scale, parts, lengths }.run(out, if out.len() > MANY { threads } else { 1 });
    }
}

impl Lines<'_> {
    fn run(&self, out: &mut [f32], threads: usize) {
        let inner = self.problem.inner as usize;
        let of_outer = self.lengths[1] * inner;
        if inner == 1 || matches!(self.kind, Kind::Any(_)) {
            let together = (SHARE / of_outer).max(1);
            each(out, together * of_outer, threads, |share, out| self.in_order(share * together, out));
            return;
        }
        let strips = inner.div_ceil(TOGETHER);
        if threads == 1 || strips == 1 || self.problem.outer as usize >= 2 * threads {
            return each_with(out, of_outer, threads, Strip::default, |strip, outer, out| {
                for number in 0..strips {
                    self.strip(outer, number, strip);
                    match self.parts[1] {
                        1 => strip.put::<u32>(out, inner, number * TOGETHER),
                        _ => strip.put::<[u32; 2]>(out, inner, number * TOGETHER),
                    }
                }
            });
        }
        // Strips write between one another's numbers: each has its part of every row.
        let mut parts: Vec<Vec<&mut [f32]>> = Vec::new();
        for out in out.chunks_exact_mut(of_outer) {
            let first = parts.len();
            parts.resize_with(first + strips, || Vec::with_capacity(self.lengths[1] / self.parts[1]));
            for row in out.chunks_exact_mut(inner * self.parts[1]) {
                let of_row = row.chunks_mut(TOGETHER * self.parts[1]);
                parts[first..].iter_mut().zip(of_row).for_each(|(part, of_row)| part.push(of_row));
            }
        }
        each_with(&mut parts, 1, threads, Strip::default, |strip, at, parts| {
            self.strip(at / strips, at % strips, strip);
            let put = if self.parts[1] == 1 { Strip::put_apart::<u32> } else { Strip::put_apart::<[u32; 2]> };
            parts.iter_mut().for_each(|parts| put(strip, parts));
        });
    }

    /// The lines of outer elements from one on, each line behind the other in the result.
    fn in_order(&self, first: usize, out: &mut [f32]) {
        let [length, of_line] = self.lengths;
        if let Kind::Any(transform) = &self.kind {
            let mut line = vec![Complex::default(); self.problem.length as usize];
            let mut scratch = vec![Complex::default(); transform.get_inplace_scratch_len()];
            let inner = self.problem.inner as usize;
            for (outer, out) in (first..).zip(out.chunks_exact_mut(of_line * inner)) {
                for at_inner in 0..inner {
                    for (at, element) in (0..self.problem.length).zip(&mut line) {
                        let [re, im] = fft::read(self.problem, self.values, outer * inner + at_inner, at);
                        *element = Complex { re, im };
                    }
                    transform.process_with_scratch(&mut line, &mut scratch);
                    fft::put(self.problem, at_inner, out, |at| [line[at].re * self.scale, line[at].im * self.scale]);
                }
            }
            return;
        }
        let stored = self.problem.input as usize * self.parts[0];
        if let (Kind::Complex(transform), true) = (&self.kind, stored == length) {
            let from = &self.values[first * length..][..out.len()];
            let mut scratch = vec![Complex::default(); transform.get_immutable_scratch_len()];
            transform.process_immutable_with_scratch(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(out), &mut scratch);
            self.finish(out);
            return;
        }
        let mut line = vec![0.0; length];
        let mut scratch = Vec::new();
        for (at, out) in (first..).zip(out.chunks_exact_mut(of_line)) {
            let (there, lacking) = line.split_at_mut(stored.min(length));
            there.copy_from_slice(&self.values[at * stored..][..there.len()]);
            lacking.fill(0.0);
            self.line(&mut line, out, &mut scratch);
        }
        self.finish(out);
    }

    /// One line, whose input is overwritten.
    fn line(&self, from: &mut [f32], to: &mut [f32], scratch: &mut Vec<Complex<f32>>) {
        match &self.kind {
            Kind::Complex(transform) | Kind::Any(transform) => {
                scratch.resize(transform.get_outofplace_scratch_len(), Complex::default());
                transform.process_outofplace_with_scratch(bytemuck::cast_slice_mut(from), bytemuck::cast_slice_mut(to), scratch);
            }
            Kind::Forward(transform) => {
                scratch.resize(transform.get_scratch_len(), Complex::default());
                // Lengths are the only fault, and they are as they should be.
                let _ = transform.process_with_scratch(from, bytemuck::cast_slice_mut(to), scratch);
            }
            Kind::Inverse(transform) => {
                scratch.resize(transform.get_scratch_len(), Complex::default());
                let from: &mut [Complex<f32>] = bytemuck::cast_slice_mut(from);
                // These come to imaginary parts alone, which are not asked for.
                if let [first, ..] = from {
                    first.im = 0.0;
                }
                if let ([.., last], true) = (&mut *from, self.problem.length.is_multiple_of(2)) {
                    last.im = 0.0;
                }
                let _ = transform.process_with_scratch(from, to, scratch);
            }
        }
    }

    fn finish(&self, out: &mut [f32]) {
        if self.problem.inverse {
            out.iter_mut().for_each(|value| *value *= self.scale);
        }
    }

    /// Transforms the lines of a strip.
    fn strip(&self, outer: usize, number: usize, strip: &mut Strip) {
        let (inner, [length, of_line], parts) = (self.problem.inner as usize, self.lengths, self.parts[0]);
        let first = number * TOGETHER;
        strip.begin(TOGETHER.min(inner - first), self.lengths);
        // Rows of the input, of which those are read that the lines have.
        let input = self.problem.input as usize * parts;
        let (rows, there) = (&self.values[outer * input * inner..], length.min(input));
        match parts {
            1 => strip.take::<u32>(&rows[..there * inner], inner, first),
            _ => strip.take::<[u32; 2]>(&rows[..there * inner], inner, first),
        }
        let Strip { count, apart, lines, made, scratch } = strip;
        for (from, to) in lines.chunks_exact_mut(apart[0]).zip(made.chunks_exact_mut(apart[1])).take(*count) {
            from[there..length].fill(0.0);
            self.line(&mut from[..length], &mut to[..of_line], scratch);
            self.finish(&mut to[..of_line]);
        }
    }
}

/// Some neighbouring lines, one behind the other with gaps, before and after they are transformed.
#[derive(Default)]
struct Strip {
    count: usize,
    apart: [usize; 2],
    lines: Vec<f32>,
    made: Vec<f32>,
    scratch: Vec<Complex<f32>>,
}

impl Strip {
    /// Makes room for so many lines.
    fn begin(&mut self, count: usize, lengths: [usize; 2]) {
        self.count = count;
        self.apart = lengths.map(|length| length + GAP);
        for (numbers, apart) in [&mut self.lines, &mut self.made].into_iter().zip(self.apart) {
            numbers.resize(TOGETHER * apart, 0.0);
        }
    }

    /// Takes columns of rows, from one on, as lines.
    fn take<T: Turned>(&mut self, rows: &[f32], inner: usize, first: usize) {
        let (rows, lines): (&[T], &mut [T]) = (bytemuck::cast_slice(rows), bytemuck::cast_slice_mut(&mut self.lines));
        for (block, rows) in rows.chunks(ROWS * inner).enumerate() {
            let size = [rows.len() / inner, self.count];
            turn(&rows[first..], inner, &mut lines[block * ROWS..], apart_in::<T>(self.apart[0]), size);
        }
    }

    /// Puts what was made into columns of rows, from one on.
    fn put<T: Turned>(&self, out: &mut [f32], inner: usize, first: usize) {
        let (made, out): (&[T], &mut [T]) = (bytemuck::cast_slice(&self.made), bytemuck::cast_slice_mut(out));
        let size = [self.count, out.len() / inner];
        turn(made, apart_in::<T>(self.apart[1]), &mut out[first..], inner, size);
    }

    /// Puts it into parts of rows that are wherever they are.
    fn put_apart<T: Turned>(&self, parts: &mut [&mut [f32]]) {
        let made: &[T] = bytemuck::cast_slice(&self.made);
        for (block, parts) in parts.chunks_mut(ROWS).enumerate() {
            let mut rows = [[T::zeroed(); TOGETHER]; ROWS];
            let size = [self.count, parts.len()];
            turn(&made[block * ROWS..], apart_in::<T>(self.apart[1]), rows.as_flattened_mut(), TOGETHER, size);
            for (part, row) in parts.iter_mut().zip(&rows) {
                bytemuck::cast_slice_mut(part).copy_from_slice(&row[..self.count]);
            }
        }
    }
}

/// How far numbers are apart, in elements.
fn apart_in<T>(numbers: usize) -> usize {
    numbers / (size_of::<T>() / size_of::<f32>())
}
