//! WebGL2: matrices are float textures, and a product is a drawing into float textures.
//!
//! Beside the rooms that every backend has, `commands` holds WebGL's commands, through `glow`, and all that is unsafe about them.

mod adapter;
mod buffer;
mod commands;
mod pipeline;
mod submit;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use web_sys::WebGl2RenderingContext;

pub(crate) use adapter::open;
pub(crate) use buffer::Buffer;
pub(crate) use submit::Running;

use super::pool::Pool;
use super::{Backend, Bound, Finished, How, MemoryStats};
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::info::Caps;
use crate::ops::Op;
use crate::ops::matmul::Integers;
use crate::plan::matmul::FragmentCaps;
use crate::plan::{self, Plan};

/// An open device: a context and what was made in it.
pub(crate) struct WebGl2 {
    commands: Rc<commands::Commands>,
    caps: Caps,
    fragment: FragmentCaps,
    programs: pipeline::Programs,
    pool: Pool<buffer::Raw>,
    faults: Faults,
}

/// Keeps a call from taking for its own success what an error of another befell: WebGL tells of an error once, and not whose it is. So all that
/// was under way then has failed by it.
#[derive(Default)]
struct Faults {
    /// How many submissions there were.
    submissions: Cell<u32>,
    /// An error, and the last submission before it.
    last: RefCell<Option<(Box<Error>, u32)>>,
}

// What is not inlined leads into the part of the package that this backend is in.
impl Backend for WebGl2 {
    type Buffer = Buffer;
    type Running = Running;

    #[inline(never)]
    fn plan(&self, op: &Op) -> Result<Plan> {
        match op {
            Op::Matmul(problem) => {
                problem.check_plain()?;
                Integers::refuse_in(problem)?;
                plan::matmul::fragment(problem, &self.caps, &self.fragment)
            }
            op => plan::operations::fragment(op, &self.caps),
        }
    }

    #[inline(never)]
    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        self.store(values)
    }

    #[inline(never)]
    fn allocate(&self, plan: &Plan, op: &Op) -> Result<Buffer> {
        self.room(plan, op)
    }

    #[inline(never)]
    fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        self.start(plan, operands, out, how)
    }

    fn finish(&self, running: Running) -> impl Future<Output = Result<Finished>> {
        self.complete(running)
    }

    async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        self.read_back(buffer, extent).await
    }

    async fn synchronize(&self) -> Result<()> {
        // A command that reads the host's memory has done so when it returns, and `check` waits for its errors.
        self.check(self.pool.stats().used_bytes)
    }

    fn lost(&self) -> Option<String> {
        // The event of a loss says nothing more than this, and says it later. A context that nobody asks to have back stays lost.
        self.commands.is_lost().then(|| "the browser took the WebGL context away".to_owned())
    }

    fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    fn trim(&self) {
        self.pool.trim();
    }
}

impl WebGl2 {
    /// Counts a submission; the number is its own.
    fn number(&self) -> u32 {
        let number = self.faults.submissions.get() + 1;
        self.faults.submissions.set(number);
        number
    }

    /// An error if WebGL has one to tell, of this command or one before it. `bytes` is what was asked for.
    fn check(&self, bytes: u64) -> Result<()> {
        let error = match self.commands.fault() {
            0 => return Ok(()),
            glow::OUT_OF_MEMORY => Box::new(Error::OutOfMemory { bytes, place: "the GPU" }),
            WebGl2RenderingContext::CONTEXT_LOST_WEBGL => Box::new(Error::DeviceLost { reason: self.lost().unwrap_or_default() }),
            code => Error::internal(format!("WebGL error {code}")),
        };
        *self.faults.last.borrow_mut() = Some((error.clone(), self.faults.submissions.get()));
        Err(error)
    }

    /// Whether a submission went well, once it is done.
    fn judge(&self, number: u32) -> Result<()> {
        self.check(self.pool.stats().used_bytes)?;
        match &*self.faults.last.borrow() {
            Some((error, last)) if number <= *last => Err(error.clone()),
            _ => Ok(()),
        }
    }
}
