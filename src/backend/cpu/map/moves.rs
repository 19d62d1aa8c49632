//! What only moves elements, natively: copies, slices, what is put behind or around something else, and transpositions, in the size in which
//! elements are stored.
//!
//! Rows of the result are put together of runs, each from one input, or of one number. Where neighbours of the result are far apart in the
//! input, squares are read row by row and written row by row, so that both go through memory in order.

use std::ops::Range;

use bytemuck::Pod;

use super::{Elements, Map};
use crate::backend::cpu::reduce::each;
use crate::backend::cpu::simd;
use crate::backend::cpu::turned::{Turned, turn};
use crate::ops::elementwise::Step;
use crate::ops::map::MOST_DIMENSIONS;

/// Elements of a share.
const SHARE: usize = 1 << 16;
/// Side of the squares: some lines of the cache.
const SIDE: usize = 64;
/// Sides from which squares pay.
const LEAST_SIDE: usize = 8;
/// Elements of the longest row that is short.
const SHORT_ROW: usize = 64;
/// Bytes of a line of the cache.
const LINE_BYTES: usize = 64;
/// Elements from which a share of work on another thread pays.
const MANY: usize = 1 << 17;

/// Where a run of the result comes from.
#[derive(Clone, Copy)]
enum Run {
    Number(u32),
    Input { input: usize, place: u32, stride: u32 },
}

/// How far something goes on: up to where in the row, and if that is its end, for how many rows that lie behind one another; and for how many rows
/// it is so in each.
#[derive(Clone, Copy)]
struct Reach {
    end: usize,
    rows: usize,
    alike: usize,
}

impl Map<'_> {
    /// Whether it only moves elements of one size.
    pub(in crate::backend::cpu) fn is_move(&self, element_bytes: usize) -> bool {
        let program = &self.source.program;
        let moves = |step: &Step| match *step {
            Step::Input(_) | Step::Inside(_) | Step::Scalar(..) => true,
            Step::Select([condition, ..]) => matches!(program.steps[usize::from(condition)], Step::Inside(_)),
            Step::Cast(of, to) => program.kind(of) == to,
            Step::Index | Step::Apply(..) => false,
        };
        let is_alike = |(reading, elements): (&crate::plan::map::Reading, &Elements<'_>)| {
            reading.dtype == self.result() && elements.size == element_bytes
        };
        !matches!(program.steps[..], [] | [Step::Scalar(..)])
            && program.steps.iter().all(moves)
            && self.source.inputs.iter().zip(&self.inputs).all(is_alike)
    }

    /// Moves all elements, of so many bytes each; past the cache if the result is too large for it anyway.
    pub(in crate::backend::cpu) fn move_all(&self, element_bytes: usize, out: &mut [u8], threads: usize, streams: bool) {
        let threads = if self.elements() > MANY { threads } else { 1 };
        match element_bytes {
            1 => self.move_words(out, threads, streams, |word| word as u8),
            2 => {
                self.move_words(bytemuck::cast_slice_mut(out), threads, streams, |word| half::f16::from_f32(f32::from_bits(word)).to_bits())
            }
            _ => self.move_words::<u32>(bytemuck::cast_slice_mut(out), threads, streams, |word| word),
        }
    }

    fn move_words<T: Turned>(&self, out: &mut [T], threads: usize, streams: bool, number: impl Fn(u32) -> T + Sync) {
        let out = &mut out[..self.elements()];
        if let Some(across) = self.across() {
            return self.turn(across, out, threads);
        }
        each(out, SHARE, threads, |share, out| self.rows(share * SHARE, out, streams, &number));
    }

    /// Puts together the elements from `first` on.
    fn rows<T: Pod>(&self, first: usize, mut out: &mut [T], streams: bool, number: impl Fn(u32) -> T) {
        let mut coordinates = self.coordinates(first);
        let last = self.rank.saturating_sub(1);
        let row = self.row();
        while !out.is_empty() {
            let (run, Reach { end, rows, alike }) = self.run(self.source.program.last(), &coordinates);
            // What lies behind one another goes over several rows.
            let is_whole = coordinates[last] == 0 && end == row;
            let rows = if is_whole { rows.min(out.len() / end).max(1) } else { 1 };
            if rows == 1 && coordinates[last] == 0 && alike.min(out.len() / row) > 1 {
                let rows = self.rows_alike(&coordinates, out, streams, |run, to| self.write(run, to, streams, &number));
                out = &mut out[rows * row..];
                coordinates[last - 1] += rows - 1;
                coordinates[last] = row;
            } else {
                let length = (end - coordinates[last] + (rows - 1) * end).min(out.len());
                let (now, later) = out.split_at_mut(length);
                self.write(run, now, streams, &number);
                out = later;
                if rows > 1 {
                    coordinates[last - 1] += rows - 1;
                    coordinates[last] = end;
                } else {
                    coordinates[last] += length;
                }
            }
            self.carry(&mut coordinates);
        }
        if streams {
            simd::end_stream();
        }
    }

    /// Puts together the rows from this one on that are like it; gives how many those are.
    fn rows_alike<T: Pod>(
        &self,
        coordinates: &[usize; MOST_DIMENSIONS],
        out: &mut [T],
        streams: bool,
        write: impl Fn(Run, &mut [T]),
    ) -> usize {
        let (last, row) = (self.rank - 1, self.row());
        let (mut runs, mut rows, mut at) = (Vec::new(), out.len() / row, *coordinates);
        while at[last] < row {
            let (run, Reach { end, alike, .. }) = self.run(self.source.program.last(), &at);
            runs.push((run, at[last]..end));
            rows = rows.min(alike);
            at[last] = end;
        }
        let out = &mut out[..rows * row];
        // Most rows lie in one input as they are: they need nothing but their places.
        if let [(Run::Input { input, place, stride: 1 }, _)] = runs[..]
            && !streams
        {
            let (values, apart): (&[T], _) = (bytemuck::cast_slice(self.inputs[input].bytes), self.stride(input, last - 1));
            let mut place = place;
            for out in out.chunks_exact_mut(row) {
                out.copy_from_slice(&values[place as usize..][..row]);
                place = place.wrapping_add(apart);
            }
            return rows;
        }
        for out in out.chunks_exact_mut(row) {
            for (run, range) in &mut runs {
                write(*run, &mut out[range.clone()]);
                if let Run::Input { input, place, .. } = run {
                    *place = place.wrapping_add(self.stride(*input, last - 1));
                }
            }
        }
        rows
    }

    /// Writes a run.
    fn write<T: Pod>(&self, run: Run, to: &mut [T], streams: bool, number: impl Fn(u32) -> T) {
        let (input, place, stride) = match run {
            Run::Number(word) => return to.fill(number(word)),
            Run::Input { input, place, stride } => (input, place as usize, stride.cast_signed()),
        };
        let values: &[T] = bytemuck::cast_slice(self.inputs[input].bytes);
        match stride {
            1 if streams => simd::stream(&values[place..][..to.len()], to),
            1 => to.copy_from_slice(&values[place..][..to.len()]),
            0 => to.fill(values[place]),
            // Two values may be so far apart that the sign is not to be told.
            _ if stride.unsigned_abs() >= 1 << 30 => {
                let mut place = place as u32;
                for to in to {
                    *to = values[place as usize];
                    place = place.wrapping_add(stride.cast_unsigned());
                }
            }
            -1 => to.iter_mut().zip(values[..=place].iter().rev()).for_each(|(to, from)| *to = *from),
            2.. => to.iter_mut().zip(values[place..].iter().step_by(stride as usize)).for_each(|(to, from)| *to = *from),
            _ => {
                let back = values[..=place].iter().rev().step_by(stride.unsigned_abs() as usize);
                to.iter_mut().zip(back).for_each(|(to, from)| *to = *from);
            }
        }
    }

    /// What a step gives at a place, and how far.
    fn run(&self, step: u8, coordinates: &[usize; MOST_DIMENSIONS]) -> (Run, Reach) {
        let last = self.rank.saturating_sub(1);
        let rows = self.rows_left(coordinates);
        let everywhere = Reach { end: self.size(last), rows, alike: rows };
        match self.source.program.steps[usize::from(step)] {
            Step::Select([condition, no, yes]) => {
                let (is_inside, here) = self.is_inside(condition, coordinates, everywhere);
                let (run, of_run) = self.run(if is_inside { yes } else { no }, coordinates);
                (run, Reach { end: here.end.min(of_run.end), rows: here.rows.min(of_run.rows), alike: here.alike.min(of_run.alike) })
            }
            Step::Input(input) => {
                let input = usize::from(input);
                let stride = self.stride(input, last);
                let is_behind = last > 0 && stride == 1 && self.stride(input, last - 1) as usize == self.size(last);
                let reach = Reach { rows: if is_behind { everywhere.rows } else { 1 }, ..everywhere };
                (Run::Input { input, place: self.place(input, coordinates), stride }, reach)
            }
            Step::Scalar(scalar, _) => (Run::Number(self.words[self.scalars + usize::from(scalar)]), everywhere),
            Step::Cast(of, _) => self.run(of, coordinates),
            Step::Inside(_) | Step::Index | Step::Apply(..) => (Run::Number(0), everywhere),
        }
    }

    /// Rows from this one on, up to where the dimension outside of them is at its end.
    fn rows_left(&self, coordinates: &[usize; MOST_DIMENSIONS]) -> usize {
        if self.rank > 1 { self.size(self.rank - 2) - coordinates[self.rank - 2] } else { 1 }
    }

    /// Whether a place is inside of the bounds that a step asks for, and how far that is so.
    fn is_inside(&self, step: u8, coordinates: &[usize; MOST_DIMENSIONS], everywhere: Reach) -> (bool, Reach) {
        let last = self.rank.saturating_sub(1);
        let (Step::Inside(input), at) = (self.source.program.steps[usize::from(step)], coordinates[last]) else {
            return (false, everywhere);
        };
        let input = usize::from(input);
        let rows = if last == 0 {
            1
        } else {
            let (Range { start, end }, row) = (self.bounds(input, last - 1), coordinates[last - 1]);
            [start, end].into_iter().filter(|edge| *edge > row).min().map_or(everywhere.rows, |edge| (edge - row).min(everywhere.rows))
        };
        let Range { start, end } = self.bounds(input, last);
        let here = Reach { rows, alike: rows, ..everywhere };
        if !self.has_row(input, coordinates) || at >= end {
            return (false, here);
        }
        if at < start { (false, Reach { end: start.min(here.end), ..here }) } else { (true, Reach { end: end.min(here.end), ..here }) }
    }

    /// The dimension along which neighbours of the only input lie, if that is not the innermost one of the result.
    fn across(&self) -> Option<usize> {
        let [Step::Input(0)] = self.source.program.steps[..] else { return None };
        let last = self.rank.checked_sub(1)?;
        if self.source.inputs[0].is_bounded || self.stride(0, last).cast_signed() <= 1 {
            return None;
        }
        (0..last)
            .find(|&dimension| self.stride(0, dimension) == 1 && self.size(dimension) >= LEAST_SIDE)
            .filter(|_| self.size(last) >= LEAST_SIDE)
    }

    /// Transposes, square by square, where the input's neighbours lie along that dimension of the result.
    fn turn<T: Turned>(&self, across: usize, out: &mut [T], threads: usize) {
        let values: &[T] = bytemuck::cast_slice(self.inputs[0].bytes);
        let last = self.rank - 1;
        let (row, apart) = (self.size(last), self.stride(0, last) as usize);
        // Elements behind one step along that dimension, and those of all its steps.
        let step: usize = (across + 1..self.rank).map(|dimension| self.size(dimension)).product();
        let plane = step * self.size(across);
        let strip = |plane_at: usize, number: usize, out: &mut [T]| {
            let mut coordinates = self.coordinates(plane_at * plane + number * SIDE * step);
            let wide = out.len() / step;
            let mut place = self.place(0, &coordinates) as usize;
            for at in (0..step).step_by(row) {
                let here = place;
                coordinates[last] = row;
                // The dimensions in between.
                for dimension in (across + 1..=last).rev() {
                    if coordinates[dimension] == self.size(dimension) {
                        coordinates[dimension] = 0;
                        if dimension - 1 > across {
                            coordinates[dimension - 1] += 1;
                        }
                    }
                }
                place = self.place(0, &coordinates) as usize;
                // Lines of short rows, which are done with before the processor foresees what comes after them.
                if at + row < step && row <= SHORT_ROW {
                    for line in (0..row).flat_map(|at| values[place + at * apart..][..wide].chunks(LINE_BYTES / size_of::<T>())) {
                        simd::prefetch(&line[0]);
                    }
                }
                turn(&values[here..], apart, &mut out[at..], step, [row, wide]);
            }
        };
        if plane == out.len() {
            each(out, SIDE * step, threads, |number, out| strip(0, number, out));
        } else {
            each(out, plane, threads, |plane_at, out| {
                out.chunks_mut(SIDE * step).enumerate().for_each(|(number, out)| strip(plane_at, number, out));
            });
        }
    }
}
