//! What is read of inputs natively: as it lies, turned, or run by run.

use half::f16;

use super::Map;
use crate::backend::cpu::simd;
use crate::host::HostSlice;

/// An input's elements in memory.
#[derive(Clone, Copy)]
pub(in crate::backend::cpu) struct Elements<'a> {
    pub bytes: &'a [u8],
    /// Bytes of each: truths that stay here have one, those of the caller's four.
    pub size: usize,
}

impl<'a> Elements<'a> {
    /// Those of each input; none of one that is not there.
    pub(in crate::backend::cpu) fn of(inputs: &'a [Option<HostSlice<'_>>]) -> Vec<Self> {
        let of = |input: &'a Option<HostSlice<'_>>| match input {
            Some(values) => Self { bytes: values.bytes(), size: values.element_bytes() },
            None => Self { bytes: &[], size: 4 },
        };
        inputs.iter().map(of).collect()
    }
}

impl<'a> Map<'a> {
    /// An input's words.
    pub(super) fn words_of(&self, input: usize) -> Option<&'a [u32]> {
        let Elements { bytes, size: 4 } = self.inputs[input] else { return None };
        Some(bytemuck::cast_slice(bytes))
    }

    /// Elements of an input as words; 0 where it has none.
    pub(super) fn read_rows(&self, input: usize, first: usize, out: &mut [u32]) {
        let stride = self.stride(input, self.rank.saturating_sub(1));
        let Elements { bytes, size } = self.inputs[input];
        match size {
            1 => self.read_each(
                bytes,
                (input, stride),
                first,
                out,
                |&truth| truth.into(),
                |from, to| {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
                },
            ),
            2 => self.read_each(
                bytemuck::cast_slice(bytes),
                (input, stride),
                first,
                out,
                |half: &f16| half.to_f32().to_bits(),
                |from, to| simd::widen(from, bytemuck::cast_slice_mut(to)),
            ),
            _ => {
                self.read_each(bytemuck::cast_slice(bytes), (input, stride), first, out, |&word| word, |from, to| to.copy_from_slice(from))
            }
        }
    }
}
