//! How an operation is computed, decided apart from where: shape and capabilities in, a [`Plan`] out. Plain data, and pure: the same
//! on a machine without a GPU, where the tests compare it with golden text.
//!
//! An operation has a file of plans here, a variant of [`Op`] and one of [`Params`]; the backends run whatever a plan says.

#[cfg(not(target_arch = "wasm32"))]
pub mod ceiling;
pub mod conv;
pub mod fft;
pub mod fused;
pub mod map;
pub mod matmul;
pub mod normalize;
pub(crate) mod operations;
pub mod pool;
pub mod reduce;
pub mod tuned;
mod words;

use std::fmt;

use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::Op;
use crate::ops::map::MOST_INPUTS;
pub use words::Words;

/// A plan for compute shaders.
pub fn compute(op: &Op, caps: &Caps) -> Result<Plan> {
    match op {
        Op::Matmul(problem) => matmul::compute(problem, caps),
        op => operations::compute(op, caps),
    }
}

/// So many workgroups along two dimensions, along none more than there may be, and hardly any more of them: those that have nothing to do take as
/// long as others.
fn spread(workgroups: u32, most: u32) -> [u32; 2] {
    let y = workgroups.div_ceil(most.max(1)).max(1);
    [workgroups.div_ceil(y).max(1), y]
}

/// Which buffer a kernel sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// An operand, counted from 0.
    Input(u8),
    /// The result.
    Out,
    /// Room of the plan's own.
    Scratch,
    /// Another form of an operand, counted from 0, which a launch of the plan makes of that operand alone: a device that has kept it from before
    /// leaves that launch out.
    Kept(u8),
}

impl Slot {
    /// The first operand.
    pub const A: Self = Self::Input(0);
    /// The second operand.
    pub const B: Self = Self::Input(1);
    /// The third: of a product the matrix that is added.
    pub const C: Self = Self::Input(2);
    /// The fourth: of a product what is added to each row.
    pub const BIAS: Self = Self::Input(3);

    /// The slot's place in a list of buffers: the result, the scratch, then the operands, and their other forms.
    pub const fn index(self) -> usize {
        match self {
            Self::Out => 0,
            Self::Scratch => 1,
            Self::Input(input) => 2 + input as usize,
            Self::Kept(operand) => 2 + MOST_INPUTS + operand as usize,
        }
    }
}

/// Operands by letter.
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out => f.write_str("Out"),
            Self::Scratch => f.write_str("Scratch"),
            Self::Input(input) => write!(f, "{}", char::from(b'A'.saturating_add(*input))),
            Self::Kept(operand) => write!(f, "Kept {}", char::from(b'A'.saturating_add(*operand))),
        }
    }
}

/// What a kernel is told at run time: its source says how the bytes are laid out, and each operation what they mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Params {
    /// Of the kernels in `shaders/matmul`.
    Matmul(matmul::Params),
    /// Of the same, and of what they compute of their results.
    MatmulEnded(matmul::Ended),
    /// Of kernels that are generated.
    Words(Words),
    /// Of the kernels in `shaders/ceiling`.
    #[cfg(not(target_arch = "wasm32"))]
    Ceiling(ceiling::Params),
}

impl Params {
    /// The binding at which every kernel of the crate has them, where kernels have numbered bindings.
    pub const BINDING: u32 = 3;

    /// Those of a product.
    ///
    /// # Errors
    /// An internal one if they are of something else.
    pub fn matmul(&self) -> Result<&matmul::Params> {
        match self {
            Self::Matmul(params) | Self::MatmulEnded(matmul::Ended { params, .. }) => Ok(params),
            _ => Err(crate::error::Error::internal("a plan for a product, of another operation's parameters")),
        }
    }

    /// The same, to be changed; None if they are of something else.
    pub(crate) fn matmul_mut(&mut self) -> Option<&mut matmul::Params> {
        match self {
            Self::Matmul(params) | Self::MatmulEnded(matmul::Ended { params, .. }) => Some(params),
            _ => None,
        }
    }

    /// As the kernel gets them.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Matmul(params) => bytemuck::bytes_of(params),
            Self::MatmulEnded(params) => bytemuck::bytes_of(params),
            Self::Words(words) => words.bytes(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Ceiling(params) => bytemuck::bytes_of(params),
        }
    }
}

impl From<matmul::Params> for Params {
    fn from(params: matmul::Params) -> Self {
        Self::Matmul(params)
    }
}

impl From<Words> for Params {
    fn from(words: Words) -> Self {
        Self::Words(words)
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matmul(params) => params.fmt(f),
            Self::MatmulEnded(matmul::Ended { params, more, .. }) => write!(f, "{params} end {}", Words::of(more)),
            Self::Words(words) => words.fmt(f),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Ceiling(params) => params.fmt(f),
        }
    }
}

/// A range of a buffer, in bytes. The planner guarantees that it lies in the buffer as it was planned for, that it starts at a multiple of
/// the alignment and is no longer than a binding may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    /// Which buffer.
    pub slot: Slot,
    /// Where the kernel's binding of that name is.
    pub index: u32,
    /// Where it starts.
    pub offset_bytes: u64,
    /// How long it is; a multiple of 16.
    pub size_bytes: u64,
}

/// One launch of a kernel. Launches of a plan run one after another, each seeing what those before it wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// What runs.
    pub kernel: Kernel,
    /// Its parameters.
    pub params: Params,
    /// What it sees.
    pub bindings: Vec<Binding>,
    /// Workgroups in x, y, z; for a fragment shader the texels of its target.
    pub grid: [u32; 3],
}

/// What a backend has to do, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The launches.
    pub dispatches: Vec<Dispatch>,
    /// The room that they need for what goes from one to the next; 0 for none.
    pub scratch_bytes: u64,
}

impl Plan {
    /// A plan of one launch.
    pub(crate) fn of(dispatch: Dispatch) -> Self {
        Self { dispatches: vec![dispatch], scratch_bytes: 0 }
    }

    /// The kernel that does the work, for reports.
    pub fn kernel(&self) -> String {
        // Other forms of operands are made before it.
        let makes_form = |id: KernelId| {
            use KernelId::{ConvWinogradFilters, ConvWinogradImages, MatmulCopy, MatmulSplit, MatmulStrips};
            matches!(id, MatmulStrips | MatmulSplit | MatmulCopy | ConvWinogradFilters | ConvWinogradImages)
        };
        let Some(Dispatch { kernel, params, grid: [_, _, layers], .. }) =
            self.dispatches.iter().find(|dispatch| !makes_form(dispatch.kernel.id))
        else {
            return "none".to_owned();
        };
        let mut text = kernel.to_string();
        let batch = params.matmul().map_or(1, |product| product.batch.max(1));
        if batch > 1 {
            text += &format!(", batch of {batch}");
        }
        if self.scratch_bytes > 0 && kernel.id != KernelId::MatmulPacked && *layers > batch {
            let what = if kernel.id == KernelId::Reduce { "each row" } else { "k" };
            text += &format!(", {what} in {} parts", layers / batch);
        }
        text
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for dispatch in &self.dispatches {
            let [x, y, z] = dispatch.grid;
            writeln!(f, "{} grid {x}x{y}x{z}", dispatch.kernel)?;
            for (name, value) in &dispatch.kernel.constants {
                write!(f, " {name}={value}")?;
            }
            writeln!(f, "\n  {}", dispatch.params)?;
            for Binding { slot, index, offset_bytes, size_bytes } in &dispatch.bindings {
                writeln!(f, "  {index}: {slot:?} {offset_bytes}+{size_bytes}")?;
            }
        }
        if self.scratch_bytes > 0 {
            writeln!(f, "scratch {}", self.scratch_bytes)?;
        }
        Ok(())
    }
}
