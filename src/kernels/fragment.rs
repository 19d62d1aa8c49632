//! The generated part of a kernel for WebGL2: as [`generated`](super::generated) has it in WGSL, from `shaders/map/*.frag`.

use std::fmt::Write;

use super::Source;
use super::template::{Constant, expand_with};
use crate::error::Result;
use crate::ops::elementwise::{Kind, Language, Step};
use crate::plan::map::Reading;

/// Four of a kind.
const fn four(kind: Kind) -> &'static str {
    match kind {
        Kind::F32 => "vec4",
        Kind::I32 => "ivec4",
        Kind::U32 => "uvec4",
        Kind::Bool => "bvec4",
    }
}

impl Reading {
    /// Its text as that of input `number`.
    pub(super) fn glsl(&self, number: usize, rank: u32, is_quad: u32, mut out: String) -> Result<String> {
        const INPUT: &str = include_str!(concat!(env!("OUT_DIR"), "/map-input.frag"));
        let kind = Kind::from(self.dtype);
        // Writing to a string does not fail.
        let _ = writeln!(out, "#define Kind{number} {}\n#define Four{number} {}", kind.name(), four(kind));
        let flags = [
            ("RANK", rank),
            ("QUAD", is_quad),
            ("INTEGER", u32::from(!self.dtype.is_float())),
            ("VEC4", u32::from(self.is_vec4)),
            ("SPLAT", u32::from(self.is_splat)),
            ("BOUNDED", u32::from(self.is_bounded)),
        ];
        let places = [("i", number as u32), ("at", self.at), ("last", self.at + rank), ("bounds", self.at + rank + 1), ("rank", rank)];
        expand_with(INPUT, &flags, &places, out)
    }
}

impl Source {
    /// The GLSL between the constants and a kernel's template, behind the prelude: the inputs, the program, and `value` and `four`, if there are
    /// any, and what is computed of the result.
    #[inline(never)]
    pub fn glsl(&self, constants: &[Constant], mut out: String) -> Result<String> {
        let programs = std::iter::once(&*self.program).chain(self.end.as_ref().map(|end| &*end.program));
        out += &Language::Glsl.functions(programs);
        if !self.program.steps.is_empty() {
            out = self.glsl_of_values(constants, out)?;
        }
        match &self.end {
            Some(end) => end.glsl(out),
            None => Ok(out),
        }
    }

    fn glsl_of_values(&self, constants: &[Constant], mut out: String) -> Result<String> {
        let constant = |name: &str| constants.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value);
        let (rank, is_quad) = (constant("RANK"), constant("QUAD"));
        let result = self.program.result();
        let (texel, results) = (if self.result.is_float() { "vec4" } else { "uvec4" }, four(result));
        // Writing to a string does not fail.
        let _ = writeln!(out, "#define Texel {texel}\n#define Results {results}");
        let (mut one_by_one, mut together, mut arguments) = (String::new(), String::new(), [String::new(), String::new()]);
        let readings = self.inputs.iter().chain(self.beside.iter().map(|(_, reading)| reading));
        for (i, input) in readings.enumerate() {
            out = input.glsl(i, rank, is_quad, out)?;
            if i >= self.inputs.len() {
                continue;
            }
            let is_asked = self.program.steps.contains(&Step::Inside(i as u8));
            let mut inside = "";
            if input.is_bounded {
                let _ = writeln!(one_by_one, "bool is_inside_{i} = is_inside_{i}_at(c);");
                let _ = writeln!(one_by_one, "Kind{i} in_{i} = one_{i}(is_inside_{i} ? at_{i}(c) : 0u);");
                let _ = write!(arguments[0], ", in_{i}{}", if is_asked { format!(", is_inside_{i}") } else { String::new() });
            } else {
                inside = if is_asked { ", true" } else { "" };
                let _ = writeln!(one_by_one, "Kind{i} in_{i} = one_{i}(at_{i}(c));");
                let _ = write!(arguments[0], ", in_{i}{inside}");
            }
            let _ = writeln!(together, "Four{i} in_{i} = four_{i}(at_{i}(c));");
            let _ = write!(arguments[1], ", in_{i}[LANE]{inside}");
        }
        for (number, (name, _)) in (self.inputs.len()..).zip(&self.beside) {
            let _ = writeln!(out, "Kind{number} {name}_one(uint c[RANK]) {{ return one_{number}(at_{number}(c)); }}");
            if is_quad > 0 {
                let _ = writeln!(out, "Four{number} {name}_four(uint c[RANK]) {{ return four_{number}(at_{number}(c)); }}");
            }
        }
        out += &Language::Glsl.body(&self.program, "");
        let _ =
            writeln!(out, "{} value(uint c[RANK], uint index) {{\n{one_by_one}return program(index{});\n}}", result.name(), arguments[0]);
        if is_quad > 0 {
            let lane = |lane: u32| format!("program(index + {lane}u{})", arguments[1].replace("LANE", &lane.to_string()));
            let lanes = [0, 1, 2, 3].map(lane).join(", ");
            let _ = writeln!(out, "{results} four(uint c[RANK], uint index) {{\n{together}return {results}({lanes});\n}}");
        }
        Ok(out)
    }
}
