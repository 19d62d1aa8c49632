//! WebGL2: matrices are float textures, and a product is a drawing into float textures.
//!
//! Beside the rooms that every backend has, `commands` holds WebGL's commands, through `glow`, and all that is unsafe about them.

mod adapter;
mod buffer;
#[allow(unsafe_code, reason = "glow's interface")]
mod commands;
mod faults;
mod pipeline;
mod queue;
mod submit;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub(crate) use adapter::open;
pub(crate) use buffer::Buffer;
pub(crate) use submit::Running;

use super::pool::Pool;
use super::{Backend, Bound, Finished, How, MemoryStats};
use crate::dtype::Extent;
use crate::error::Result;
use crate::host::{HostSlice, HostVec};
use crate::info::Caps;
use crate::ops::Op;
use crate::plan::matmul::FragmentCaps;
use crate::plan::{self, Plan};

/// An open device: a context and what was made in it.
pub(crate) struct WebGl2 {
    commands: Rc<commands::Commands>,
    caps: Caps,
    fragment: FragmentCaps,
    programs: pipeline::Programs,
    pool: Pool<buffer::Raw>,
    /// Whether the pool has no memory that was not to be had.
    is_pool_sound: Cell<bool>,
    /// That of what was asked for last.
    verdict: RefCell<Rc<faults::Verdict>>,
    found: faults::Found,
    queue: RefCell<queue::Queue>,
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
                plan::matmul::fragment(problem, &self.caps, &self.fragment)
            }
            op => plan::operations::fragment(op, &self.caps, &self.fragment),
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

    #[inline(never)]
    fn queue(&self, op: &Op, operands: &[Option<&Buffer>]) -> Result<Option<Buffer>> {
        self.record(op, operands)
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
