//! What is computed of a kernel's result before it is written: a program whose first input is that result.

use std::fmt::Write;
use std::sync::Arc;

use super::scalars;
use crate::error::Result;
use crate::kernels::template::expand_with;
use crate::ops::elementwise::{Language, Program};
use crate::plan::map::Reading;

/// The numbers of its inputs begin behind those of a kernel's own.
const FIRST_INPUT: usize = 8;

/// A program at the end of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// What is computed: of the result, and of the inputs.
    pub program: Arc<Program>,
    /// The inputs behind the first.
    pub inputs: Vec<Reading>,
    /// Where in the words it is told of, and how many dimensions it has.
    pub at: u32,
    /// How many dimensions the result has for it.
    pub rank: u32,
    /// Where its scalars are.
    pub scalars: u32,
    /// Four neighbours from a multiple of four on are in one row.
    pub is_quad: bool,
}

impl End {
    /// Its WGSL behind what there is: `ended` and `ended_four` of an element's place and value.
    pub(super) fn wgsl(&self, mut out: String) -> Result<String> {
        const END: &str = include_str!(concat!(env!("OUT_DIR"), "/map-end.wgsl"));
        out += &scalars("end_", &format!("{}u", self.scalars));
        for (number, input) in (FIRST_INPUT..).zip(&self.inputs) {
            out = input.wgsl(number, self.rank, &[], out)?;
        }
        out += &Language::Wgsl.body(&self.program, "end_");
        out = expand_with(END, &[("INNER", self.rank - 1)], &[("at", self.at), ("rank", self.rank)], out)?;
        let arguments = |of: &dyn Fn(usize) -> String| (FIRST_INPUT..).zip(&self.inputs).map(|(number, _)| of(number)).collect::<String>();
        let one = arguments(&|number| format!(", one_{number}(at_{number}(c))"));
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "fn ended(o: u32, v: f32) -> f32 {{\nlet i = end_index(o);\nlet c = end_coordinates(i);\nreturn end_program(i, v{one});\n}}"
        );
        out += "fn ended_four(o: u32, v: vec4<f32>) -> vec4<f32> {\n";
        if self.is_quad {
            out += "let i = end_index(o);\nlet c = end_coordinates(i);\n";
            out += &arguments(&|number| format!("let in_{number} = four_{number}(at_{number}(c));\n"));
        }
        let lanes = (0..4).map(|lane| match self.is_quad {
            true => format!("end_program(i + {lane}u, v[{lane}]{})", arguments(&|number| format!(", in_{number}[{lane}]"))),
            false => format!("ended(o + {lane}u, v[{lane}])"),
        });
        let _ = writeln!(out, "return vec4<f32>({});\n}}", lanes.collect::<Vec<_>>().join(", "));
        Ok(out)
    }

    /// The same in CUDA C++, members of the type that has what a kernel is told.
    #[cfg(all(feature = "cuda", not(target_arch = "wasm32")))]
    pub(super) fn cuda(&self, mut out: String) -> Result<String> {
        use super::cuda::MEMBER;
        const END: &str = include_str!(concat!(env!("OUT_DIR"), "/map-end.cuh"));
        let Self { rank, at, scalars, is_quad, .. } = *self;
        for (number, input) in (FIRST_INPUT..).zip(&self.inputs) {
            out = input.cuda(number, rank, &[], out)?;
        }
        out = expand_with(END, &[("INNER", rank - 1)], &[("at", at), ("rank", rank), ("scalars", scalars)], out)?;
        out += &Language::Cuda.body(&self.program, "end_");
        let arguments = |of: &dyn Fn(usize) -> String| (FIRST_INPUT..).zip(&self.inputs).map(|(number, _)| of(number)).collect::<String>();
        let one = arguments(&|number| format!(", one_{number}(at_{number}(c.c))"));
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "{MEMBER} f32 ended(u32 o, f32 v) const {{\nconst u32 i = end_index(o);\nconst EndCoordinates c = end_coordinates(i);\nreturn end_program(i, v{one});\n}}"
        );
        let _ = writeln!(out, "{MEMBER} Four<f32> ended_four(u32 o, const Four<f32> &v) const {{");
        if is_quad {
            out += "const u32 i = end_index(o);\nconst EndCoordinates c = end_coordinates(i);\n";
            out += &arguments(&|number| format!("const Four<Kind{number}> in_{number} = four_{number}(at_{number}(c.c));\n"));
        }
        let lanes = (0..4).map(|lane| match is_quad {
            true => format!("end_program(i + {lane}, v.x[{lane}]{})", arguments(&|number| format!(", in_{number}.x[{lane}]"))),
            false => format!("ended(o + {lane}, v.x[{lane}])"),
        });
        let _ = writeln!(out, "return {{{}}};\n}}", lanes.collect::<Vec<_>>().join(", "));
        Ok(out)
    }

    /// The same in GLSL.
    pub(in crate::kernels) fn glsl(&self, mut out: String) -> Result<String> {
        const END: &str = include_str!(concat!(env!("OUT_DIR"), "/map-end.frag"));
        let Self { rank, at, scalars, is_quad, .. } = *self;
        for (number, input) in (FIRST_INPUT..).zip(&self.inputs) {
            out = input.glsl(number, rank, is_quad.into(), out)?;
        }
        out = expand_with(END, &[("RANK", rank)], &[("at", at), ("rank", rank), ("scalars", scalars)], out)?;
        out += &Language::Glsl.body(&self.program, "end_");
        let arguments = |of: &dyn Fn(usize) -> String| (FIRST_INPUT..).zip(&self.inputs).map(|(number, _)| of(number)).collect::<String>();
        let one = arguments(&|number| format!(", one_{number}(at_{number}(c))"));
        // Writing to a string does not fail. What lies behind the last element is nobody's.
        let _ = writeln!(out, "f32 ended(uint o, f32 v) {{\nuint i = min(o, params[{at} + 1] - 1u);\nuint c[{rank}] = end_coordinates(i);");
        let _ = writeln!(out, "return end_program(i, v{one});\n}}\nvec4 ended_four(uint o, vec4 v) {{");
        if is_quad {
            let _ = writeln!(out, "uint c[{rank}] = end_coordinates(o);");
            out += &arguments(&|number| format!("Four{number} in_{number} = four_{number}(at_{number}(c));\n"));
        }
        let lanes = (0..4).map(|lane| match is_quad {
            true => format!("end_program(o + {lane}u, v[{lane}]{})", arguments(&|number| format!(", in_{number}[{lane}]"))),
            false => format!("ended(o + {lane}u, v[{lane}])"),
        });
        let _ = writeln!(out, "return vec4({});\n}}", lanes.collect::<Vec<_>>().join(", "));
        Ok(out)
    }
}
