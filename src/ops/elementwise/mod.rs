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
            DType::I32 | DType::I8 => Self::I32,
            DType::U32 | DType::U8 => Self::U32,
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

/// As a formula; as a list of steps where that is long, since a formula repeats what is used more than once.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST_TERMS: u32 = 64;
        let mut terms: Vec<u32> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let of_operands = step.operands().iter().map(|&operand| terms[usize::from(operand)]);
            terms.push(of_operands.fold(1, u32::saturating_add));
        }
        if terms.last().is_none_or(|&terms| terms <= MOST_TERMS) {
            return if self.steps.is_empty() { Ok(()) } else { self.write_formula(self.last(), f) };
        }
        for step in 0..=self.last() {
            write!(f, "{}{step}=", if step > 0 { " " } else { "" })?;
            self.write(step, &|_, operand, f| write!(f, "{operand}"), f)?;
        }
        Ok(())
    }
}

type WriteOperand<'a> = &'a dyn Fn(&Program, u8, &mut fmt::Formatter<'_>) -> fmt::Result;

impl Program {
    fn write_formula(&self, step: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(step, &|this, operand, f| this.write_formula(operand, f), f)
    }

    /// A step, and its operands in some way.
    fn write(&self, step: u8, operand: WriteOperand<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = self.steps[usize::from(step)];
        let name = match step {
            Step::Input(input) => return write!(f, "{}", char::from(b'a' + input)),
            Step::Scalar(scalar, _) => return write!(f, "s{scalar}"),
            Step::Index => return f.write_str("index"),
            Step::Inside(input) => return write!(f, "inside({})", char::from(b'a' + input)),
            Step::Apply(function, _) => function.name(),
            Step::Select(_) => "where",
            Step::Cast(_, kind) => kind.name(),
        };
        write!(f, "{name}(")?;
        let mut operands = step.operands().to_vec();
        if let Step::Select(_) = step {
            // As it reads: what is taken where it is true comes first.
            operands.swap(1, 2);
        }
        for (place, &of) in operands.iter().enumerate() {
            if place > 0 {
                f.write_str(", ")?;
            }
            operand(self, of, f)?;
        }
        f.write_str(")")
    }
}

impl Step {
    /// The steps that it is made of.
    pub(crate) fn operands(&self) -> &[u8] {
        match self {
            Self::Input(_) | Self::Scalar(..) | Self::Index | Self::Inside(_) => &[],
            Self::Apply(function, operands) => &operands[..function.arity()],
            Self::Select(operands) => operands,
            Self::Cast(operand, _) => std::slice::from_ref(operand),
        }
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
