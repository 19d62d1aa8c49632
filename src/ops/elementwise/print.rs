//! Programs as the text of a function, in the language of a shader.
//!
//! ```text
//! WGSL   fn program(index: u32, in_0: f32, in_1: f32) -> f32 { let v0 = in_0; … return v5; }
//! C-like f32 program(u32 index, f32 in_0, f32 in_1) { f32 v0 = in_0; … return v5; }      GLSL and CUDA; f32 and the like are macros
//! ```

use std::collections::BTreeSet;

use super::{Function, Kind, Program, Step};

/// The name of the function that a program is.
const PROGRAM: &str = "program";

/// What the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Wgsl,
    Glsl,
    #[cfg(not(target_arch = "wasm32"))]
    Cuda,
}

impl Language {
    /// A named value.
    fn bind(self, name: &str, kind: Kind, value: &str) -> String {
        match self {
            Self::Wgsl => format!("let {name} = {value};\n"),
            _ => format!("{} {name} = {};\n", kind.name(), self.numbers(value)),
        }
    }

    /// The head of a function, which in CUDA is a type's member if it is that of a program.
    fn head(self, name: &str, arguments: &[(String, Kind)], result: Kind) -> String {
        let mut text = match self {
            Self::Wgsl => format!("fn {name}("),
            Self::Glsl => format!("{} {name}(", result.name()),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cuda => {
                format!("{}__device__ __forceinline__ {} {name}(", if name.ends_with(PROGRAM) { "" } else { "static " }, result.name())
            }
        };
        for (place, (argument, kind)) in arguments.iter().enumerate() {
            if place > 0 {
                text += ", ";
            }
            text += &match self {
                Self::Wgsl => format!("{argument}: {}", kind.name()),
                _ => format!("{} {argument}", kind.name()),
            };
        }
        text += &match self {
            Self::Wgsl => format!(") -> {} {{\n", result.name()),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cuda if name.ends_with(PROGRAM) => ") const {\n".to_owned(),
            _ => ") {\n".to_owned(),
        };
        text
    }

    /// An expression whose numbers are of single precision and whose unsigned ones fit.
    fn numbers(self, value: &str) -> String {
        #[cfg(not(target_arch = "wasm32"))]
        if self == Self::Cuda {
            return single(value);
        }
        value.to_owned()
    }

    /// A function of the table for operands of a kind.
    pub(crate) fn function(self, function: Function, kind: Kind) -> String {
        let Some((result, text)) = function.of(kind) else { return String::new() };
        let arguments: Vec<_> =
            function.arguments().trim_matches(['(', ')']).split(',').map(|argument| (argument.trim().to_owned(), kind)).collect();
        let mut out = self.head(&name(function, kind), &arguments, result);
        for (bound, value) in text.names {
            #[cfg(not(target_arch = "wasm32"))]
            let value = &self.quick(function, value);
            out += &self.bind(bound, kind, value);
        }
        let value = text.value;
        #[cfg(not(target_arch = "wasm32"))]
        let value = &self.quick(function, value);
        out + &format!("return {};\n}}\n", self.numbers(value))
    }

    /// An expression that in CUDA takes powers, logarithms and quotients as the hardware has them, and as other languages always do, if it is
    /// of a function that adds them to 1, where what they lack is not seen.
    #[cfg(not(target_arch = "wasm32"))]
    fn quick(self, function: Function, value: &str) -> String {
        use Function::{Erf, GeluTanh, Sigmoid, Silu, Softplus, Tanh};
        if self != Self::Cuda || !matches!(function, Erf | GeluTanh | Sigmoid | Silu | Softplus | Tanh) {
            return value.to_owned();
        }
        value.replace("exponential(", "quick_exp(").replace("logarithm(", "quick_log(").replace(" / (", " * quick_reciprocal(")
    }

    /// The functions that programs call.
    pub(crate) fn functions<'a>(self, programs: impl IntoIterator<Item = &'a Program>) -> String {
        let mut known = BTreeSet::new();
        let mut out = String::new();
        for program in programs {
            for step in &program.steps {
                if let Step::Apply(function, [a, _]) = *step {
                    let kind = program.kind(a);
                    if known.insert((function as u8, kind as u8)) {
                        out += &self.function(function, kind);
                    }
                }
            }
        }
        out
    }

    /// The program alone, a function whose name begins so, as do those that it reads scalars by.
    pub(crate) fn body(self, program: &Program, prefix: &str) -> String {
        let mut arguments = vec![("index".to_owned(), Kind::U32)];
        for (input, &kind) in program.inputs.iter().enumerate() {
            arguments.push((format!("in_{input}"), kind));
            if program.steps.contains(&Step::Inside(input as u8)) {
                arguments.push((format!("inside_{input}"), Kind::Bool));
            }
        }
        let mut out = self.head(&format!("{prefix}{PROGRAM}"), &arguments, program.result());
        for (number, &step) in program.steps.iter().enumerate() {
            let value = match step {
                Step::Input(input) => format!("in_{input}"),
                Step::Scalar(scalar, kind) => format!("{prefix}scalar_{}({scalar}u)", kind.name()),
                Step::Index => "index".to_owned(),
                Step::Inside(input) => format!("inside_{input}"),
                Step::Apply(function, [a, b]) => {
                    let text = name(function, program.kind(a));
                    if function.arity() == 1 { format!("{text}(v{a})") } else { format!("{text}(v{a}, v{b})") }
                }
                Step::Select([condition, no, yes]) => format!("select(v{no}, v{yes}, v{condition})"),
                Step::Cast(operand, kind) => format!("{}_of_{}(v{operand})", kind.name(), program.kind(operand).name()),
            };
            out += &self.bind(&format!("v{number}"), program.kind(number as u8), &value);
        }
        out + &format!("return v{};\n}}\n", program.last())
    }
}

fn name(function: Function, kind: Kind) -> String {
    format!("{}_{}", function.name(), kind.name())
}

/// The text with each number that has a fraction marked as one of single precision, which in C++ is of double.
#[cfg(not(target_arch = "wasm32"))]
fn single(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        // A digit in a name is none of a number's.
        let in_name = rest[..start].ends_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let mut before = ' ';
        let is_behind = |c: char| {
            let is_sign = c == '-' && before == 'e';
            before = c;
            !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || is_sign)
        };
        let length = rest[start..].find(is_behind).unwrap_or(rest.len() - start);
        let number = &rest[start..start + length];
        out += &rest[..start + length];
        if !in_name {
            if number.contains('.') {
                out.push('f');
            } else if number.len() > 9 {
                out.push('u');
            }
        }
        rest = &rest[start + length..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_single_precision_are_marked_behind_their_exponents() {
        let marked = "a * (1.5e-5f + e) - log_1p(2.0e8f) - u32(4294967295u)";
        assert_eq!(single("a * (1.5e-5 + e) - log_1p(2.0e8) - u32(4294967295)"), marked);
    }

    #[test]
    fn numbers_of_cuda_are_of_single_precision() {
        assert_eq!(single("v0 * 0.5 + f32(a1) - 1.0e8 * u32(4294967295) - 31"), "v0 * 0.5f + f32(a1) - 1.0e8f * u32(4294967295u) - 31");
    }

    #[test]
    fn functions_have_no_branches() {
        for &function in Function::ALL {
            for kind in [Kind::F32, Kind::I32, Kind::U32, Kind::Bool] {
                let text = Language::Wgsl.function(function, kind);
                assert!(!text.contains("&&") && !text.contains("||"), "{text}");
            }
        }
    }

    #[test]
    fn a_program_is_a_function() {
        let steps =
            vec![Step::Input(0), Step::Scalar(0, Kind::F32), Step::Apply(Function::Mul, [0, 1]), Step::Apply(Function::Relu, [2, 2])];
        let program = Program { inputs: vec![Kind::F32], steps };
        let whole = |language: Language| language.functions([&program]) + &language.body(&program, "");
        let text = whole(Language::Wgsl);
        assert!(text.contains("fn mul_f32(a: f32, b: f32) -> f32 {\nreturn a * b;\n}\n"), "{text}");
        assert!(text.ends_with("let v2 = mul_f32(v0, v1);\nlet v3 = relu_f32(v2);\nreturn v3;\n}\n"), "{text}");
        assert!(whole(Language::Glsl).contains("f32 relu_f32(f32 a) {\nreturn select(select(a, 0.0, a < 0.0), a, is_nan(a));\n}\n"));
        assert_eq!(program.to_string(), "relu(mul(a, s0))");
    }
}
