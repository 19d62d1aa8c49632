//! What of a kernel's source is generated for it: how its inputs are read, and what is computed of them. The rest, and the text for each
//! input, are templates in `shaders/map`.

#[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
mod cuda;
mod end;
#[cfg(not(target_arch = "wasm32"))]
mod interpretation;

use std::fmt::Write;

use super::template::{Constant, expand_with};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::elementwise::{Kind, Language, Program, Step};
use crate::plan::map::Reading;

pub use end::End;
#[cfg(not(target_arch = "wasm32"))]
pub use interpretation::Interpretation;

/// The generated part of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// What is computed.
    pub program: std::sync::Arc<Program>,
    /// One for each input of the program.
    pub inputs: Vec<Reading>,
    /// What the kernel reads beside them, by name.
    pub beside: Vec<(&'static str, Reading)>,
    /// What the elements of the result are.
    pub result: DType,
    /// What is computed of the result before it is written, if anything is.
    pub end: Option<End>,
}

impl Reading {
    fn constants(&self) -> Vec<Constant> {
        let flag = u32::from;
        vec![
            ("F16", flag(self.dtype == DType::F16)),
            ("BOOL", flag(self.dtype == DType::Bool)),
            ("VEC4", flag(self.is_vec4)),
            ("SPLAT", flag(self.is_splat)),
            ("BOUNDED", flag(self.is_bounded)),
            ("TURNED", flag(self.is_turned)),
        ]
    }

    /// Its text in WGSL as that of input `number` of a kernel with those constants.
    fn wgsl(&self, number: usize, rank: u32, constants: &[Constant], mut out: String) -> Result<String> {
        const INPUT: &str = include_str!(concat!(env!("OUT_DIR"), "/map-input.wgsl"));
        let kind = Kind::from(self.dtype).name();
        let stored = if self.dtype == DType::Bool { "u32" } else { kind };
        // Writing to a string does not fail.
        let _ = writeln!(out, "alias Kind{number} = {kind};\nalias Stored{number} = {stored};");
        let (all, variables) = self.told(number, rank, constants);
        expand_with(INPUT, &all, &variables, out)
    }

    /// What its text depends on, and what it says of an input: its number, where the kernel is told how it lies, its binding, and how far
    /// apart four are in a tile.
    fn told(&self, number: usize, rank: u32, constants: &[Constant]) -> (Vec<Constant>, [Constant; 7]) {
        let mut all = self.constants();
        all.extend(["EDGES", "HALVES"].map(|name| (name, constant(constants, name))));
        all.push(("RANK", rank));
        let (at, i) = (self.at, number as u32);
        let last = at + rank - u32::from(self.is_turned);
        let apart = apart(constants, if self.is_turned { "ALIGNED" } else { "WHOLE" });
        (
            all,
            [("i", i), ("at", at), ("binding", self.binding), ("last", last), ("bounds", at + rank + 1), ("rank", rank), ("apart", apart)],
        )
    }
}

/// A constant's value, 0 where there is none.
fn constant(constants: &[Constant], name: &str) -> u32 {
    constants.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
}

/// From one element of four to the next in a tile: neighbours where they are vectors.
fn apart(constants: &[Constant], are_vectors: &str) -> u32 {
    if constant(constants, are_vectors) > 0 { 1 } else { 16 }
}

/// How the scalars of a program are read that lie there in the words.
fn scalars(prefix: &str, at: &str) -> String {
    let mut out = String::new();
    for (kind, text) in [("f32", "bitcast<f32>(WORD)"), ("i32", "bitcast<i32>(WORD)"), ("u32", "WORD"), ("bool", "WORD != 0u")] {
        let text = text.replace("WORD", &format!("word({at} + i)"));
        out += &format!("fn {prefix}scalar_{kind}(i: u32) -> {kind} {{ return {text}; }}\n");
    }
    out
}

/// What a program is told behind an input that it asks for the bounds of.
fn inside(program: &Program, input: usize, is_bounded: bool) -> String {
    match program.steps.contains(&Step::Inside(input as u8)) {
        true if is_bounded => format!(", is_inside_{input}"),
        true => ", true".to_owned(),
        false => String::new(),
    }
}

impl Source {
    /// The WGSL before a kernel's template: that of its values, if it has any, and of what is computed of its result.
    #[inline(never)]
    pub fn wgsl(&self, constants: &[Constant]) -> Result<String> {
        const WORDS: &str = include_str!(concat!(env!("OUT_DIR"), "/map-words.wgsl"));
        const PRELUDE: &str = include_str!(concat!(env!("OUT_DIR"), "/map-prelude.wgsl"));
        let programs = std::iter::once(&*self.program).chain(self.end.as_ref().map(|end| &*end.program));
        let mut out = PRELUDE.to_owned() + &Language::Wgsl.functions(programs);
        if !self.program.steps.is_empty() {
            out += WORDS;
            out += &scalars("", "SCALARS");
            out = self.values(constants, out)?;
        }
        match &self.end {
            Some(end) => end.wgsl(out),
            None => Ok(out),
        }
    }

    /// The inputs, the program, and `value` and `four`, which read and compute.
    fn values(&self, constants: &[Constant], mut out: String) -> Result<String> {
        let constant = |name: &str| constant(constants, name);
        for (number, input) in self.inputs.iter().chain(self.beside.iter().map(|(_, reading)| reading)).enumerate() {
            out = input.wgsl(number, constant("RANK"), constants, out)?;
        }
        for (number, (name, reading)) in (self.inputs.len()..).zip(&self.beside) {
            let kind = Kind::from(reading.dtype).name();
            // Writing to a string does not fail.
            for (many, kind) in [("one", kind.to_owned()), ("four", format!("vec4<{kind}>"))] {
                let _ = writeln!(out, "fn {name}_{many}(c: array<u32, RANK>) -> {kind} {{ return {many}_{number}(at_{number}(c)); }}");
            }
        }
        out += &Language::Wgsl.body(&self.program, "");
        let result = self.program.result().name();
        let _ = writeln!(out, "alias Result = {result};\nfn value(c: array<u32, RANK>, index: u32) -> Result {{");
        let mut arguments = String::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let i = number;
            if input.is_bounded {
                let _ = writeln!(out, "let is_inside_{i} = is_inside_{i}_at(c);");
                let _ = writeln!(out, "let in_{i} = one_{i}(select(0u, at_{i}(c), is_inside_{i}));");
            } else {
                let _ = writeln!(out, "let in_{i} = one_{i}(at_{i}(c));");
            }
            let _ = write!(arguments, ", in_{i}{}", inside(&self.program, number, input.is_bounded));
        }
        let _ = writeln!(out, "return program(index{arguments});\n}}");
        let is_edged = constant("EDGES") > 0;
        if constant("QUAD") > 0 || is_edged {
            out += if is_edged { "fn all(index: u32" } else { "fn four(c: array<u32, RANK>, index: u32" };
            for number in 0..if is_edged { self.inputs.len() } else { 0 } {
                let _ = write!(out, ", in_{number}: vec4<Kind{number}>");
            }
            out += ") -> vec4<Result> {\n";
            for (i, input) in self.inputs.iter().enumerate().filter(|_| !is_edged) {
                if input.is_bounded {
                    let _ = writeln!(out, "let is_inside_{i} = is_inside_{i}_at(c);");
                    let _ = writeln!(out, "let in_{i} = four_{i}(select(0u, at_{i}(c), is_inside_{i}));");
                } else {
                    let _ = writeln!(out, "let in_{i} = four_{i}(at_{i}(c));");
                }
            }
            out += "return vec4<Result>(";
            let apart = if is_edged { apart(constants, "WHOLE") } else { 1 };
            for lane in 0..4 {
                let _ = write!(out, "{}program(index + {}u", if lane > 0 { ", " } else { "" }, lane * apart);
                for (number, input) in self.inputs.iter().enumerate() {
                    let _ = write!(out, ", in_{number}[{lane}]{}", inside(&self.program, number, input.is_bounded));
                }
                out += ")";
            }
            out += ");\n}\n";
        }
        Ok(out)
    }
}

#[cfg(all(test, any(feature = "vulkan", feature = "webgpu")))]
mod tests {
    use std::sync::Arc;

    use crate::dtype::DType;
    use crate::info::Caps;
    use crate::ops::elementwise::{Function, Program, Step};
    use crate::ops::map::{Problem, View};
    use crate::ops::reduce::{self, Fold};

    #[test]
    fn every_function_compiles_for_every_type_that_it_takes() {
        let caps =
            Caps { binding_alignment_bytes: 256, max_workgroup_invocations: 256, max_workgroups_per_dimension: 65535, ..Caps::UNLIMITED };
        for &function in Function::ALL {
            for &dtype in DType::COMPUTED {
                let Some((result, _)) = function.of(dtype.into()) else { continue };
                let inputs: Vec<_> = (0..function.arity()).map(|_| dtype.into()).collect();
                let mut steps: Vec<_> = (0..inputs.len()).map(|input| Step::Input(input as u8)).collect();
                steps.push(Step::Apply(function, [0, inputs.len() as u8 - 1]));
                let program = Arc::new(Program { inputs, steps });
                let gives = DType::COMPUTED.iter().copied().find(|dtype| result == (*dtype).into()).unwrap();
                for stride in [1, 2] {
                    let view = View { dtype, offset: 0, strides: vec![64, stride], bounds: Vec::new() };
                    let inputs = vec![view; function.arity()];
                    let problem = Problem { shape: vec![8, 32], inputs, program: Arc::clone(&program), scalars: Vec::new(), dtype: gives };
                    let wgsl = crate::plan::map::compute(&problem, &caps).unwrap().dispatches[0].kernel.wgsl().unwrap();
                    validate(&wgsl, &format!("{} of {dtype}", function.name()));
                }
            }
        }
    }

    #[test]
    fn every_fold_compiles_for_every_type_that_it_takes() {
        let caps =
            Caps { binding_alignment_bytes: 256, max_workgroup_invocations: 256, max_workgroups_per_dimension: 65535, ..Caps::UNLIMITED };
        for &fold in Fold::ALL {
            for &dtype in DType::COMPUTED.iter().filter(|dtype| fold.takes(**dtype)) {
                let program = Arc::new(Program { inputs: vec![dtype.into()], steps: vec![Step::Input(0)] });
                // Rows in fours, rows in parts, columns, and dimensions that are no one's neighbours.
                for (shape, strides) in [
                    (vec![9, 32], vec![32, 1]),
                    (vec![2, 1 << 20], vec![1 << 20, 1]),
                    (vec![33, 70], vec![1, 33]),
                    (vec![2, 3, 5], vec![1, 50, 5]),
                ] {
                    let view = View { dtype, offset: 0, strides, bounds: Vec::new() };
                    let values = Problem { shape, inputs: vec![view], program: Arc::clone(&program), scalars: Vec::new(), dtype };
                    let problem = reduce::Problem { values, kept: 1, fold, divisor: 1.0 };
                    for dispatch in crate::plan::reduce::compute(&problem, &caps).unwrap().dispatches {
                        validate(&dispatch.kernel.wgsl().unwrap(), &format!("{} of {dtype}", fold.name()));
                    }
                }
            }
        }
    }

    fn validate(wgsl: &str, name: &str) {
        let module = naga::front::wgsl::parse_str(wgsl).unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(wgsl)));
        let flags = naga::valid::ValidationFlags::all();
        let valid = naga::valid::Validator::new(flags, naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32).validate(&module);
        valid.unwrap_or_else(|error| panic!("{name}: {}", error.emit_to_string(wgsl)));
    }
}
