//! The same for CUDA: what WGSL declares for a whole module, C++ has as members of a type, `Source` of `shaders/map/source.cuh`.

use std::fmt::Write;

use super::{Source, apart, constant, inside};
use crate::error::Result;
use crate::kernels::template::{Constant, expand_with};
use crate::ops::elementwise::{Kind, Language};
use crate::plan::map::Reading;

const PRELUDE: &str = include_str!(concat!(env!("OUT_DIR"), "/map-prelude.cuh"));
const SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/map-source.cuh"));
const INPUT: &str = include_str!(concat!(env!("OUT_DIR"), "/map-input.cuh"));

/// How members of the type begin.
pub(super) const MEMBER: &str = "__device__ __forceinline__";

impl Source {
    /// The same of a kernel that is only told something.
    pub(crate) fn cuda_of_none() -> String {
        format!("{PRELUDE}{SOURCE}}};\n")
    }

    /// The CUDA C++ before `map.cu`, as [`wgsl`](Self::wgsl) before `map.wgsl`.
    pub fn cuda(&self, constants: &[Constant]) -> Result<String> {
        let programs = std::iter::once(&*self.program).chain(self.end.as_ref().map(|end| &*end.program));
        let mut out = PRELUDE.to_owned() + &Language::Cuda.functions(programs);
        if self.program.steps.is_empty() {
            out += SOURCE;
        } else {
            // Writing to a string does not fail.
            let _ = writeln!(out, "typedef {} Result;\n{SOURCE}", self.program.result().name());
            out = self.cuda_values(constants, out)?;
        }
        if let Some(end) = &self.end {
            out = end.cuda(out)?;
        }
        Ok(out + "};\n")
    }

    /// The inputs, the program, and `value` and `four`, which read and compute.
    fn cuda_values(&self, constants: &[Constant], mut out: String) -> Result<String> {
        let (rank, is_set) = (constant(constants, "RANK"), |name: &str| constant(constants, name) > 0);
        for (number, input) in self.inputs.iter().chain(self.beside.iter().map(|(_, reading)| reading)).enumerate() {
            out = input.cuda(number, rank, constants, out)?;
        }
        for (number, (name, _)) in (self.inputs.len()..).zip(&self.beside) {
            for (many, kind) in [("one", format!("Kind{number}")), ("four", format!("Four<Kind{number}>"))] {
                let _ = writeln!(
                    out,
                    "{MEMBER} {kind} {name}_{many}(const u32 (&c)[RANK]) const {{ return {many}_{number}(at_{number}(c)); }}"
                );
            }
        }
        out += &Language::Cuda.body(&self.program, "");
        let _ = writeln!(out, "{MEMBER} Result value(const u32 (&c)[RANK], u32 index) const {{");
        let mut arguments = String::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let i = number;
            if input.is_bounded {
                let _ = writeln!(out, "const bool is_inside_{i} = is_inside_{i}_at(c);");
                let _ = writeln!(out, "const Kind{i} in_{i} = is_inside_{i} ? one_{i}(at_{i}(c)) : of_word<Kind{i}>(0);");
            } else {
                let _ = writeln!(out, "const Kind{i} in_{i} = one_{i}(at_{i}(c));");
            }
            let _ = write!(arguments, ", in_{i}{}", inside(&self.program, number, input.is_bounded));
        }
        let _ = writeln!(out, "return program(index{arguments});\n}}");
        let is_edged = is_set("EDGES");
        if is_set("QUAD") || is_edged {
            // Either told the inputs' fours, or reading them.
            let (name, first) = if is_edged { ("all", "u32 index") } else { ("four", "const u32 (&c)[RANK], u32 index") };
            let _ = write!(out, "{MEMBER} Four<Result> {name}({first}");
            for i in 0..if is_edged { self.inputs.len() } else { 0 } {
                let _ = write!(out, ", const Four<Kind{i}> &in_{i}");
            }
            out += ") const {\n";
            for (i, input) in self.inputs.iter().enumerate().filter(|_| !is_edged) {
                if input.is_bounded {
                    let _ = writeln!(out, "const bool is_inside_{i} = is_inside_{i}_at(c);");
                    let _ = writeln!(out, "const Four<Kind{i}> in_{i} = four_{i}(is_inside_{i} ? at_{i}(c) : 0);");
                } else {
                    let _ = writeln!(out, "const Four<Kind{i}> in_{i} = four_{i}(at_{i}(c));");
                }
            }
            out += "return {";
            let apart = if is_edged { apart(constants, "WHOLE") } else { 1 };
            for lane in 0..4 {
                let _ = write!(out, "{}program(index + {}", if lane > 0 { ", " } else { "" }, lane * apart);
                for (number, input) in self.inputs.iter().enumerate() {
                    let _ = write!(out, ", in_{number}.x[{lane}]{}", inside(&self.program, number, input.is_bounded));
                }
                out += ")";
            }
            out += "};\n}\n";
        }
        Ok(out)
    }
}

impl Reading {
    /// Its text as that of input `number`.
    pub(super) fn cuda(&self, number: usize, rank: u32, constants: &[Constant], mut out: String) -> Result<String> {
        // Writing to a string does not fail.
        let _ = writeln!(out, "typedef {} Kind{number};", Kind::from(self.dtype).name());
        let (all, variables) = self.told(number, rank, constants);
        expand_with(INPUT, &all, &variables, out)
    }
}
