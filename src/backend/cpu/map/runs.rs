//! Where inputs have the elements that belong to those of the result, and what is read of those in memory, run by run.

use std::ops::Range;

use super::{LINE, Line, Map};
use crate::backend::cpu::turned::turn;
use crate::ops::elementwise::Step;
use crate::ops::map::MOST_DIMENSIONS;
use crate::plan::map::Reading;

/// Sides from which it pays to turn rows.
const LEAST_SIDE: usize = 8;
/// Elements of a row of which as many as lie in a line of the cache are no more than the second cache holds.
const LONGEST_ROW: usize = 1 << 14;

impl<'a> Map<'a> {
    /// Elements that are those of an input, one behind the other, as they lie there.
    pub(in crate::backend::cpu) fn stored(&self, first: usize, count: usize) -> Option<&[u32]> {
        let [Step::Input(0)] = self.source.program.steps[..] else { return None };
        if self.source.inputs[0].dtype == self.result() { self.lying(0, first, count) } else { None }
    }

    /// The words of an input that belong to elements, if they lie in that order, one behind the other.
    pub(in crate::backend::cpu) fn lying(&self, input: usize, first: usize, count: usize) -> Option<&'a [u32]> {
        let Reading { at, is_bounded: false, .. } = self.source.inputs[input] else { return None };
        let words = self.words_of(input)?;
        if count == 0 {
            return None;
        }
        let start = self.words[at as usize];
        let mut row = 1;
        for dimension in (0..self.rank).rev() {
            // Beyond the dimensions that lie in order, both ends have to be in the same row.
            if self.stride(input, dimension) as usize != row && self.size(dimension) > 1 {
                let (ends, later) = ([first / row, (first + count - 1) / row], row);
                if ends[0] != ends[1] {
                    return None;
                }
                let mut rest = ends[0];
                let mut place = start.wrapping_add((first % later) as u32);
                for dimension in (0..=dimension).rev() {
                    let coordinate = rest % self.size(dimension);
                    rest /= self.size(dimension);
                    place = place.wrapping_add((coordinate as u32).wrapping_mul(self.stride(input, dimension)));
                }
                return words.get(place as usize..)?.get(..count);
            }
            row *= self.size(dimension);
        }
        words.get(start as usize + first..)?.get(..count)
    }

    /// Whether what lies beside one another in the result's columns does so in an input, and not what does in its rows: such rows are turned some
    /// at a time, which reads a line of the cache once.
    pub(super) fn lies_across(&self, input: usize) -> bool {
        let [Some(last), Some(across)] = [1, 2].map(|from_end| self.rank.checked_sub(from_end)) else { return false };
        let sides = [last, across].map(|dimension| self.size(dimension));
        self.words_of(input).is_some()
            && !self.source.inputs[input].is_bounded
            && self.stride(input, across) == 1
            // Not from the end to the beginning.
            && self.stride(input, last).cast_signed() > 1
            && sides.iter().all(|&side| side >= LEAST_SIDE)
            && self.size(last) <= LONGEST_ROW
    }

    /// Turns the rows of an input that some elements are in, and some more up to an end; gives from which element up to which those are.
    pub(super) fn turn_rows(&self, input: usize, [first, behind, end]: [usize; 3], register: &mut Vec<Line>) -> Range<usize> {
        let row = self.row();
        let begin = first / row;
        let some = (behind.div_ceil(row) - begin).next_multiple_of(LINE);
        let rows = begin..(begin + some).min(end.div_ceil(row));
        register.resize(register.len().max((rows.len() * row).div_ceil(LINE)), bytemuck::Zeroable::zeroed());
        self.turn_rows_to(input, rows.start, &mut bytemuck::cast_slice_mut(register)[..rows.len() * row]);
        rows.start * row..rows.end * row
    }

    /// Turns as many rows of an input as there is room for.
    pub(super) fn turn_rows_to(&self, input: usize, first: usize, mut out: &mut [u32]) {
        let (row, plane) = (self.row(), self.size(self.rank - 2));
        let apart = self.stride(input, self.rank - 1) as usize;
        let words = self.words_of(input).unwrap_or_default();
        let mut at = first;
        while !out.is_empty() {
            // Up to where the next rows lie elsewhere.
            let together = (plane - at % plane).min(out.len() / row);
            let place = self.place(input, &self.coordinates(at * row)) as usize;
            turn(&words[place..], apart, out, row, [row, together]);
            out = &mut out[together * row..];
            at += together;
        }
    }

    /// Where an input has elements.
    pub(super) fn inside(&self, input: usize, first: usize, out: &mut [u32]) {
        self.runs(input, first, out, |_, inside, out| out.fill(inside.into()));
    }

    /// Elements of an input as words; 0 where it has none.
    pub(in crate::backend::cpu) fn read(&self, input: usize, first: usize, out: &mut [u32]) {
        let row = self.row();
        // What is the same in each row is read once.
        let is_repeated =
            !self.source.inputs[input].is_bounded && (0..self.rank.saturating_sub(1)).all(|dimension| self.stride(input, dimension) == 0);
        let own = if is_repeated { row.min(out.len()) } else { out.len() };
        self.read_rows(input, first, &mut out[..own]);
        let mut known = own;
        while known < out.len() {
            let more = known.min(out.len() - known);
            out.copy_within(..more, known);
            known += more;
        }
    }

    /// Elements of an input that are of one size, as words, by what makes a word of one of them, and of many that lie behind one another.
    pub(super) fn read_each<T>(
        &self,
        values: &[T],
        (input, stride): (usize, u32),
        first: usize,
        out: &mut [u32],
        one: impl Fn(&T) -> u32,
        many: impl Fn(&[T], &mut [u32]),
    ) {
        self.runs(input, first, out, |at, inside, out| {
            if !inside {
                out.fill(0);
            } else if stride == 1 {
                many(&values[at as usize..][..out.len()], out);
            } else if stride == 0 {
                out.fill(one(&values[at as usize]));
            } else {
                let mut at = at;
                for out in out {
                    *out = one(&values[at as usize]);
                    at = at.wrapping_add(stride);
                }
            }
        });
    }

    /// The steps along a dimension at which an input has elements.
    pub(super) fn bounds(&self, input: usize, dimension: usize) -> Range<usize> {
        let Reading { at, is_bounded, .. } = self.source.inputs[input];
        if !is_bounded {
            return 0..self.size(dimension);
        }
        let bound = |edge: usize| self.words[at as usize + 1 + self.rank * (edge + 1) + dimension] as usize;
        bound(0)..bound(1)
    }

    /// The place of an input's element.
    pub(super) fn place(&self, input: usize, coordinates: &[usize; MOST_DIMENSIONS]) -> u32 {
        let start = self.words[self.source.inputs[input].at as usize];
        let step = |at: u32, dimension: usize| at.wrapping_add((coordinates[dimension] as u32).wrapping_mul(self.stride(input, dimension)));
        (0..self.rank).fold(start, step)
    }

    /// Along each dimension where an element of the result is.
    pub(super) fn coordinates(&self, number: usize) -> [usize; MOST_DIMENSIONS] {
        let mut coordinates = [0; MOST_DIMENSIONS];
        let mut rest = number;
        for dimension in (0..self.rank).rev() {
            coordinates[dimension] = rest % self.size(dimension);
            rest /= self.size(dimension);
        }
        coordinates
    }

    /// Goes to the start of the next row, where a row has come to its end.
    pub(super) fn carry(&self, coordinates: &mut [usize; MOST_DIMENSIONS]) {
        for dimension in (1..self.rank).rev() {
            if coordinates[dimension] < self.size(dimension) {
                break;
            }
            coordinates[dimension] = 0;
            coordinates[dimension - 1] += 1;
        }
    }

    /// Whether an input has elements in a row.
    pub(super) fn has_row(&self, input: usize, coordinates: &[usize; MOST_DIMENSIONS]) -> bool {
        (0..self.rank.saturating_sub(1)).all(|dimension| self.bounds(input, dimension).contains(&coordinates[dimension]))
    }

    /// Cuts the elements from `first` on into runs along the innermost dimension that are all inside of an input's bounds or all outside,
    /// and gives each its first element's place.
    fn runs(&self, input: usize, first: usize, mut out: &mut [u32], mut run: impl FnMut(u32, bool, &mut [u32])) {
        let mut coordinates = self.coordinates(first);
        let last = self.rank.saturating_sub(1);
        let bounds = self.bounds(input, last);
        while !out.is_empty() {
            let place = coordinates[last];
            // Up to the row's end, or to where the bounds begin or end.
            let edge = [bounds.start, bounds.end, self.size(last)].into_iter().filter(|edge| *edge > place).min().unwrap_or(place + 1);
            let length = (edge - place).min(out.len());
            let (now, later) = out.split_at_mut(length);
            run(self.place(input, &coordinates), self.has_row(input, &coordinates) && bounds.contains(&place), now);
            out = later;
            coordinates[last] += length;
            self.carry(&mut coordinates);
        }
    }
}
