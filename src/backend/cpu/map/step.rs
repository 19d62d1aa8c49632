//! What one step of a program does to a block of elements.

use half::f16;
#[cfg(target_arch = "wasm32")]
use half::slice::HalfFloatSliceExt;

use super::Map;
#[cfg(not(target_arch = "wasm32"))]
use crate::backend::cpu::simd;
#[cfg(target_arch = "wasm32")]
use crate::backend::cpu::wasm::vectorized;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
use crate::ops::elementwise::Function;
use crate::ops::elementwise::{Kind, Step};

impl Map<'_> {
    /// Writes words as elements of the result.
    #[inline(always)]
    pub(super) fn put(&self, values: &[u32], out: &mut [u8]) {
        match self.result_bytes {
            2 => {
                let out: &mut [f16] = bytemuck::cast_slice_mut(out);
                #[cfg(not(target_arch = "wasm32"))]
                simd::narrow(bytemuck::cast_slice(values), out);
                #[cfg(target_arch = "wasm32")]
                out.convert_from_f32_slice(bytemuck::cast_slice(values));
            }
            #[cfg(not(target_arch = "wasm32"))]
            1 => out.iter_mut().zip(values).for_each(|(out, &truth)| *out = truth as u8),
            #[cfg(not(target_arch = "wasm32"))]
            _ => simd::stream(values, bytemuck::cast_slice_mut(out)),
            #[cfg(target_arch = "wasm32")]
            _ => {}
        }
    }

    /// A step, whose operands' values `register` gives.
    #[inline(always)]
    pub(super) fn step<'r>(&self, step: Step, first: usize, register: impl Fn(usize) -> &'r [u32], out: &mut [u32]) {
        let program = &self.source.program;
        let register = |operand: u8| register(usize::from(operand));
        match step {
            Step::Input(input) => self.read(usize::from(input), first, out),
            Step::Inside(input) => self.inside(usize::from(input), first, out),
            Step::Scalar(scalar, _) => out.fill(self.words[self.scalars + usize::from(scalar)]),
            Step::Index => {
                for (index, out) in (self.words[1].wrapping_add(first as u32)..).zip(out) {
                    *out = index;
                }
            }
            Step::Apply(function, operands) => {
                let registers = [register(operands[0]), register(operands[1])];
                #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
                if self.simd
                    && (function, program.kind(operands[0])) == (Function::Pow, Kind::F32)
                    && simd::power::powers(registers[0], registers[1], out)
                {
                    return;
                }
                #[cfg(target_arch = "wasm32")]
                if self.simd && vectorized::applies(function, program.kind(operands[0]), &registers[..function.arity()], out) {
                    return;
                }
                function.apply(program.kind(operands[0]), &registers[..function.arity()], out);
            }
            Step::Select([condition, no, yes]) => {
                let [condition, no, yes] = [condition, no, yes].map(register);
                for (((out, &condition), &no), &yes) in out.iter_mut().zip(condition).zip(no).zip(yes) {
                    // Both are read: one place or the other would be gathered.
                    *out = std::hint::select_unpredictable(condition != 0, yes, no);
                }
            }
            Step::Cast(operand, to) => cast(register(operand), program.kind(operand), to, out),
        }
    }
}

/// Values of one kind as another: fractions are cut off, what does not fit is the nearest that does, and NaN is 0.
#[inline(always)]
fn cast(from: &[u32], is: Kind, to: Kind, out: &mut [u32]) {
    macro_rules! each {
        ($word:ident => $value:expr) => {
            for (out, &$word) in out.iter_mut().zip(from) {
                *out = $value;
            }
        };
    }
    match (is, to) {
        #[cfg(not(target_arch = "wasm32"))]
        (Kind::F32, Kind::I32) => each!(word => simd::to_i32(f32::from_bits(word)).cast_unsigned()),
        #[cfg(target_arch = "wasm32")]
        (Kind::F32, Kind::I32) => each!(word => (f32::from_bits(word) as i32).cast_unsigned()),
        (Kind::F32, Kind::U32) => each!(word => f32::from_bits(word) as u32),
        (Kind::F32, Kind::Bool) => each!(word => (f32::from_bits(word) != 0.0).into()),
        (Kind::I32, Kind::F32) => each!(word => (word.cast_signed() as f32).to_bits()),
        (Kind::U32 | Kind::Bool, Kind::F32) => each!(word => (word as f32).to_bits()),
        (Kind::I32 | Kind::U32, Kind::Bool) => each!(word => (word != 0).into()),
        _ => out.copy_from_slice(from),
    }
}
