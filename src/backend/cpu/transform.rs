//! Fourier transforms by libraries, natively: line by line where lines lie in memory, else some neighbouring lines at a time, so that each
//! line of the cache is read once.

use std::sync::{Arc, Mutex, PoisonError};

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::fft;
use super::reduce::each;
use crate::ops::fft::{Form, Problem};

/// Numbers of a share of the work: some tens of microseconds.
const SHARE: usize = 1 << 15;
/// Numbers from which other threads are worth waking.
const MANY: usize = 1 << 16;
/// Lines that are gathered at once.
const TOGETHER: usize = 16;
/// Numbers between them, without which those of lengths that are powers of two would share a few places of the cache.
const GAP: usize = 16;

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
        if threads == 1 || self.problem.outer as usize >= strips {
            each(out, of_outer, threads, |outer, out| {
                let mut strip = vec![0.0; TOGETHER * (self.lengths[1] + GAP)];
                for number in 0..strips {
                    self.strip(outer, number, &mut strip);
                    self.put(&strip, number, out);
                }
            });
            return;
        }
        // Strips write between one another's numbers: they are put there once all are done.
        let of_strip = TOGETHER * (self.lengths[1] + GAP);
        let mut made = vec![0.0; strips * of_strip];
        for (outer, out) in out.chunks_exact_mut(of_outer).enumerate() {
            each(&mut made, of_strip, threads, |number, strip| self.strip(outer, number, strip));
            let (row, rows) = (inner * self.parts[1], (SHARE / inner).max(1));
            each(out, rows * row, threads, |share, out| {
                for (number, strip) in made.chunks_exact(of_strip).enumerate() {
                    self.put(&strip[share * rows * self.parts[1]..], number, out);
                }
            });
        }
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

    /// Transforms the lines of a strip, one behind the other with gaps.
    fn strip(&self, outer: usize, number: usize, out: &mut [f32]) {
        let inner = self.problem.inner as usize;
        let first = number * TOGETHER;
        let count = TOGETHER.min(inner - first);
        let ([length, of_line], parts) = (self.lengths, self.parts[0]);
        let input = self.problem.input as usize;
        let apart = length + GAP;
        let mut lines = vec![0.0; count * apart];
        // Rows of the input that are read, and their numbers in this strip.
        let rows = &self.values[outer * input * inner * parts..][..input.min(length / parts) * inner * parts];
        match parts {
            1 => turn_in::<1>(rows, inner, first, &mut lines, apart),
            _ => turn_in::<2>(rows, inner, first, &mut lines, apart),
        }
        let mut scratch = Vec::new();
        for (from, to) in lines.chunks_exact_mut(apart).zip(out.chunks_exact_mut(of_line + GAP)) {
            self.line(&mut from[..length], &mut to[..of_line], &mut scratch);
            self.finish(&mut to[..of_line]);
        }
    }

    /// Puts the lines of a strip, from some element on, where they belong in rows of the result.
    fn put(&self, strip: &[f32], number: usize, out: &mut [f32]) {
        let (inner, first) = (self.problem.inner as usize, number * TOGETHER);
        let (apart, parts) = (self.lengths[1] + GAP, self.parts[1]);
        match parts {
            1 => turn_out::<1>(strip, apart, out, inner, first),
            _ => turn_out::<2>(strip, apart, out, inner, first),
        }
    }
}

/// Rows that are read or written at once: a line of the cache.
const ROWS: usize = 8;

/// Puts columns of rows, from one on, into lines so far apart.
fn turn_in<const PARTS: usize>(rows: &[f32], inner: usize, first: usize, lines: &mut [f32], apart: usize) {
    for (block, rows) in rows.chunks(ROWS * inner * PARTS).enumerate() {
        for (number, line) in lines.chunks_mut(apart).enumerate() {
            let to = line[block * ROWS * PARTS..].as_chunks_mut::<PARTS>().0;
            for (to, row) in to.iter_mut().zip(rows.chunks_exact(inner * PARTS)) {
                to.copy_from_slice(&row[(first + number) * PARTS..][..PARTS]);
            }
        }
    }
}

/// Puts lines so far apart into columns of rows, from one on.
fn turn_out<const PARTS: usize>(lines: &[f32], apart: usize, rows: &mut [f32], inner: usize, first: usize) {
    for (block, rows) in rows.chunks_mut(ROWS * inner * PARTS).enumerate() {
        for (number, line) in lines.chunks(apart).take(inner - first).enumerate() {
            let from = line[block * ROWS * PARTS..].as_chunks::<PARTS>().0;
            for (from, row) in from.iter().zip(rows.chunks_exact_mut(inner * PARTS)) {
                row[(first + number) * PARTS..][..PARTS].copy_from_slice(from);
            }
        }
    }
}
