//! Elementwise programs: chains of functions that one kernel computes for each element, so that nothing between them goes through memory.
//!
//! ```text
//! relu(a · 0.5 + b)      0: input 0        2: mul 0 1      4: add 2 3
//!                        1: scalar 0       3: input 1      5: relu 4
//! ```

mod function;
mod print;
pub(crate) mod twin;

pub use function::Function;
pub(crate) use print::Language;

use std::fmt;

use crate::dtype::DType;

/// What a value is while a program computes: f16 is widened when it is read, and rounded when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A floating-point number.
    F32,
    /// A signed integer.
    I32,
    /// An unsigned integer.
    U32,
    /// True or false.
    Bool,
}

impl From<DType> for Kind {
    fn from(dtype: DType) -> Self {
        match dtype {
            DType::F32 | DType::F16 => Self::F32,
            DType::I32 => Self::I32,
            DType::U32 => Self::U32,
            DType::Bool => Self::Bool,
        }
    }
}

/// A step of a program. Operands are the numbers of steps before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// An element of an input.
    Input(u8),
    /// A number that the kernel is told at run time, so that another number needs no other kernel.
    Scalar(u8, Kind),
    /// The element's number in the result, row by row.
    Index,
    /// Whether the element is within the bounds of an input, which is not read elsewhere.
    Inside(u8),
    /// A function of one or two operands.
    Apply(Function, [u8; 2]),
    /// One or the other, as the first operand is false or true.
    Select([u8; 3]),
    /// The value as another kind.
    Cast(u8, Kind),
}

/// What a kernel computes for each element; the last step is the result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Program {
    /// What the inputs' elements are while it computes.
    pub inputs: Vec<Kind>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Program {
    /// The most steps.
    pub const MOST_STEPS: usize = 96;

    /// What a step gives.
    pub fn kind(&self, step: u8) -> Kind {
        match self.steps[usize::from(step)] {
            Step::Input(input) => self.inputs[usize::from(input)],
            Step::Scalar(_, kind) | Step::Cast(_, kind) => kind,
            Step::Index => Kind::U32,
            Step::Inside(_) => Kind::Bool,
            Step::Apply(function, [first, _]) => {
                let kind = self.kind(first);
                function.of(kind).map_or(kind, |(result, _)| result)
            }
            Step::Select([.., yes]) => self.kind(yes),
        }
    }

    /// The last step.
    pub fn last(&self) -> u8 {
        self.steps.len().saturating_sub(1) as u8
    }

    /// What it gives.
    pub fn result(&self) -> Kind {
        self.kind(self.last())
    }

    /// Adds a step, or finds the same one; gives its number.
    pub fn add(&mut self, step: Step) -> u8 {
        let known = self.steps.iter().position(|known| *known == step);
        known.unwrap_or_else(|| {
            self.steps.push(step);
            self.steps.len() - 1
        }) as u8
    }

    /// How many scalars it is told.
    pub fn scalars(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Scalar(..))).count()
    }

    /// Whether it asks for the element's number.
    pub fn reads_index(&self) -> bool {
        self.steps.contains(&Step::Index)
    }
}

/// As a formula.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn write(program: &Program, step: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let list = |f: &mut fmt::Formatter<'_>, name: &str, operands: &[u8]| {
                write!(f, "{name}(")?;
                for (place, &operand) in operands.iter().enumerate() {
                    if place > 0 {
                        f.write_str(", ")?;
                    }
                    write(program, operand, f)?;
                }
                f.write_str(")")
            };
            match program.steps[usize::from(step)] {
                Step::Input(input) => write!(f, "{}", char::from(b'a' + input)),
                Step::Scalar(scalar, _) => write!(f, "s{scalar}"),
                Step::Index => f.write_str("index"),
                Step::Inside(input) => write!(f, "inside({})", char::from(b'a' + input)),
                Step::Apply(function, operands) => list(f, function.name(), &operands[..function.arity()]),
                Step::Select([condition, no, yes]) => list(f, "where", &[condition, yes, no]),
                Step::Cast(operand, kind) => list(f, kind.name(), &[operand]),
            }
        }
        if self.steps.is_empty() { Ok(()) } else { write(self, self.last(), f) }
    }
}

impl Kind {
    /// The name in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
        }
    }
}

impl Function {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        self.arguments().matches(',').count() + 1
    }
}
