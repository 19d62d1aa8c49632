//! A program as the numbers that `shaders/map/interpreted.cu` reads: where no compiler is, the kernel is one for all programs.
//!
//! A step's result is in registers for the step behind it. What others need of it is kept in one of a few slots, which serves again once
//! nobody needs what is in it.

use bytemuck::{Pod, Zeroable};

use super::Source;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernels::template::Constant;
use crate::ops::elementwise::{Function, Kind, Program, Step};
use crate::ops::map::MOST_INPUTS;
use crate::plan::map::Reading;

/// In place of a slot: the step before, or no slot at all.
const NO_SLOT: u8 = 255;

/// The codes of steps, which are in `interpreted.cu` too; those of casts and of functions begin at a number.
const INPUT: u32 = 0;
const SCALAR: u32 = 1;
const INDEX: u32 = 2;
const INSIDE: u32 = 3;
const SELECT: u32 = 4;
const CAST: u32 = 8;
const FUNCTION: u32 = 32;

/// What the kernel is told behind the words that all kernels of the kind are told; the layout is that of the type of the same name there.
#[repr(C)]
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
pub struct Interpretation {
    rank: u32,
    is_quad: u32,
    scalars: u32,
    is_f16: u32,
    /// Of each input where in the words its offset is, and how it is read.
    inputs: [[u32; 2]; MOST_INPUTS],
    /// Slots that are needed.
    pub slots: u32,
    count: u32,
    /// Of each step the code and the slot for its result, then its operands.
    steps: [[u32; 2]; Program::MOST_STEPS],
}

impl Interpretation {
    /// That of a kernel with those constants.
    ///
    /// # Errors
    /// An internal one if the program has more steps or inputs than there are.
    pub fn of(source: &Source, constants: &[Constant]) -> Result<Self> {
        let Source { program, inputs, result, .. } = source;
        let constant = |name: &str| constants.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        if program.steps.len() > Program::MOST_STEPS || inputs.len() > MOST_INPUTS {
            return Err(Error::internal("a program of more steps or inputs than there are"));
        }
        let mut all = Self {
            rank: constant("RANK"),
            is_quad: constant("QUAD"),
            scalars: constant("SCALARS"),
            is_f16: u32::from(*result == DType::F16),
            count: program.steps.len() as u32,
            ..Self::zeroed()
        };
        for (to, input) in all.inputs.iter_mut().zip(inputs) {
            *to = [input.at, how(input)];
        }
        let last_uses = last_uses(program);
        let mut slots = vec![NO_SLOT; program.steps.len()];
        let mut free: Vec<u8> = Vec::new();
        for (number, (&step, to)) in program.steps.iter().zip(&mut all.steps).enumerate() {
            let (code, mut operands) = code(program, step);
            for operand in &operands {
                // Its slot may be that of this step's result, which is written after it is read.
                let slot = operand.map_or(NO_SLOT, |operand| slots[usize::from(operand)]);
                if slot != NO_SLOT && operand.is_some_and(|operand| last_uses[usize::from(operand)] == number) && !free.contains(&slot) {
                    free.push(slot);
                }
            }
            for operand in &mut operands {
                *operand = operand.map(|operand| if usize::from(operand) + 1 == number { NO_SLOT } else { slots[usize::from(operand)] });
            }
            if last_uses[number] > number + 1 {
                slots[number] = free.pop().unwrap_or_else(|| {
                    all.slots += 1;
                    (all.slots - 1) as u8
                });
            }
            // What is not a step's result stands where a third operand would.
            let named = match step {
                Step::Input(input) | Step::Inside(input) => Some(input),
                Step::Scalar(scalar, _) => Some(scalar),
                _ => None,
            };
            let [a, b, c] = operands.map(|operand| u32::from(operand.unwrap_or(NO_SLOT)));
            *to = [code | u32::from(slots[number]) << 16, a | b << 8 | named.map_or(c, u32::from) << 16];
        }
        Ok(all)
    }
}

fn how(input: &Reading) -> u32 {
    let flags = [input.dtype == DType::F16, input.is_vec4, input.is_splat, input.is_bounded];
    (0..).zip(flags).map(|(bit, flag)| u32::from(flag) << bit).sum()
}

/// A step's code, and the steps that it needs.
fn code(program: &Program, step: Step) -> (u32, [Option<u8>; 3]) {
    match step {
        Step::Input(_) => (INPUT, [None; 3]),
        Step::Scalar(..) => (SCALAR, [None; 3]),
        Step::Index => (INDEX, [None; 3]),
        Step::Inside(_) => (INSIDE, [None; 3]),
        Step::Select(operands) => (SELECT, operands.map(Some)),
        Step::Cast(operand, to) => (CAST + 4 * program.kind(operand) as u32 + to as u32, [Some(operand), None, None]),
        Step::Apply(function, [a, b]) => (code_of(function, program.kind(a)), [Some(a), Some(b), None]),
    }
}

/// The code of a function of operands of a kind.
fn code_of(function: Function, kind: Kind) -> u32 {
    FUNCTION + 4 * function as u32 + kind as u32
}

/// Of each step the last that needs it.
fn last_uses(program: &Program) -> Vec<usize> {
    let mut last_uses = vec![0; program.steps.len()];
    for (number, &step) in program.steps.iter().enumerate() {
        for operand in code(program, step).1.into_iter().flatten() {
            last_uses[usize::from(operand)] = number;
        }
    }
    last_uses
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::sync::Arc;

    use super::*;
    use crate::ops::elementwise::Language;

    /// Whether one copy of a function's code is enough, since it is long.
    fn is_long(function: Function, kind: Kind) -> bool {
        let text = Language::Cuda.function(function, kind);
        let calls = [" / ", "exp(", "log(", "sqrt(", "sin(", "cos(", "tan(", "arctangent(", "power", "remainder(", " % "];
        calls.iter().any(|call| text.contains(call))
    }

    /// The functions of the table for `interpreted.cu`, and its choice among them.
    fn functions() -> String {
        let mut out =
            "// Made of the table in src/ops/elementwise/function.rs: LAPIDARY_BLESS=1 cargo test --lib interpretation\n".to_owned();
        let mut cases = String::new();
        for &function in Function::ALL {
            for kind in [Kind::F32, Kind::I32, Kind::U32, Kind::Bool] {
                if function.of(kind).is_some() {
                    out += &Language::Cuda.function(function, kind);
                    let how = if is_long(function, kind) { "in_turns" } else { "each" };
                    writeln!(cases, "        case {}: return {how}({}_{}, a, b);", code_of(function, kind), function.name(), kind.name())
                        .unwrap();
                }
            }
        }
        out += "\nstatic __device__ __forceinline__ uint4 apply(u32 code, uint4 a, uint4 b) {\n    switch (code) {\n";
        out + &cases + "        default: return a;\n    }\n}\n"
    }

    #[test]
    fn the_functions_of_the_interpreter_are_those_of_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/map/functions.cuh");
        if std::env::var_os("LAPIDARY_BLESS").is_some() {
            std::fs::write(path, functions()).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).is_ok_and(|text| text == functions()),
            "LAPIDARY_BLESS=1 makes it anew, then run scripts/ptx"
        );
    }

    #[test]
    fn slots_are_few_and_serve_again() {
        let [a, b] = [Step::Input(0), Step::Input(1)];
        let apply = |function, a, b| Step::Apply(function, [a, b]);
        let steps = vec![
            a,
            apply(Function::Exp, 0, 0),
            b,
            apply(Function::Mul, 1, 2),
            apply(Function::Add, 3, 0),
            apply(Function::Sqrt, 4, 4),
            apply(Function::Mul, 5, 3),
        ];
        let program = Program { inputs: vec![Kind::F32; 2], steps };
        let reading =
            |at| Reading { at, binding: at, dtype: DType::F32, is_vec4: true, is_splat: false, is_bounded: false, is_turned: false };
        let source =
            Source { program: Arc::new(program), inputs: vec![reading(3), reading(5)], beside: Vec::new(), result: DType::F16, end: None };
        let all = Interpretation::of(&source, &[("RANK", 1), ("QUAD", 1), ("SCALARS", 7)]).unwrap();
        let slot = |step: usize| all.steps[step][0] >> 16;
        // a, exp(a) and then the product are needed later, the others by the next step alone.
        assert_eq!((0..7).map(slot).collect::<Vec<_>>(), [0, 1, 255, 1, 255, 255, 255]);
        assert_eq!(all.steps[3][1], 1 | 255 << 8 | 255 << 16, "the first from its slot, the second of the step before");
        assert_eq!((all.slots, all.count, all.inputs[1], all.is_f16), (2, 7, [5, 2], 1));
    }
}
