//! The queue: operations are drawn one after another, and nothing is waited for.
//!
//! ```text
//! record ─► drawn ──(so many, or so much work)──► fence ──(too many fences)──► the next is waited for
//!             └──(end of the task)──► flush
//! ```
//!
//! The GPU does what it is asked in order, so memory that is let go of serves again at once, and what reads the last result waits for all. What went
//! wrong is told by what it befell: see `faults`.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::WebGl2;
use super::buffer::Buffer;
use super::commands::Fence;
use crate::backend::Backend;
use crate::clock;
use crate::error::Result;
use crate::ops::Op;
use crate::plan::Plan;

/// The most operations before a fence.
const OPERATIONS: u32 = 64;
/// The most multiplications: slow GPUs do them in some 20 ms.
const MULTIPLICATIONS: u64 = 1 << 32;
/// The most fences that have not passed. A loop that never lets the browser say that one has is made to wait then.
const FENCES: usize = 32;
/// Operations after which the GPU gets what there is.
const FLUSHED: u32 = 16;
/// Operations that are known by their description; the oldest is forgotten first.
const PLANS: usize = 32;

/// What was queued.
#[derive(Default)]
pub(super) struct Queue {
    /// Since the last fence.
    operations: u32,
    multiplications: u64,
    /// The oldest first.
    fences: VecDeque<Fence>,
    plans: Vec<(Op, Rc<Plan>)>,
    /// Whether the end of the task is waited for.
    is_timed: Rc<Cell<bool>>,
}

impl WebGl2 {
    /// Draws an operation, if its kernels are compiled and its operands drawn; see [`Backend::queue`].
    pub(super) fn record(&self, op: &Op, operands: &[Option<&Buffer>]) -> Result<Option<Buffer>> {
        if !self.has_room() {
            return Ok(None);
        }
        let plan = self.planned(op)?;
        if !self.can_draw(&plan, operands)? {
            return Ok(None);
        }
        let out = self.as_one(|| {
            let out = self.room(&plan, op)?;
            self.run(&plan, operands, &out.matrix())?;
            Ok(out)
        })?;
        self.drawn(op.multiplications());
        Ok(Some(out))
    }

    /// Whether the GPU is not too far behind.
    fn has_room(&self) -> bool {
        let fences = &mut self.queue.borrow_mut().fences;
        if fences.len() >= FENCES {
            while fences.front().is_some_and(Fence::is_passed) {
                fences.pop_front();
            }
        }
        fences.len() < FENCES
    }

    /// An operation's plan, made at its first use.
    fn planned(&self, op: &Op) -> Result<Rc<Plan>> {
        let plans = &mut self.queue.borrow_mut().plans;
        if let Some((_, plan)) = plans.iter().rev().find(|(known, _)| known == op) {
            return Ok(Rc::clone(plan));
        }
        let plan = Rc::new(self.plan(op)?);
        if plans.len() >= PLANS {
            plans.remove(0);
        }
        plans.push((op.clone(), Rc::clone(&plan)));
        Ok(plan)
    }

    /// Takes note of an operation that was drawn.
    fn drawn(&self, multiplications: u64) {
        let queue = &mut *self.queue.borrow_mut();
        queue.operations += 1;
        queue.multiplications = queue.multiplications.saturating_add(multiplications);
        if queue.operations >= OPERATIONS || queue.multiplications >= MULTIPLICATIONS {
            (queue.operations, queue.multiplications) = (0, 0);
            queue.fences.push_back(self.commands.fence());
        } else if queue.operations.is_multiple_of(FLUSHED) {
            self.commands.flush();
        } else if !queue.is_timed.replace(true) {
            // A context that was closed meanwhile has nobody who could read a result.
            let (commands, is_timed) = (Rc::downgrade(&self.commands), Rc::clone(&queue.is_timed));
            clock::later(move || {
                is_timed.set(false);
                if let Some(commands) = commands.upgrade() {
                    commands.flush();
                }
            });
        }
    }
}
