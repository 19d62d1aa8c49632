//! The queue: operations are recorded one after another and submitted together.
//!
//! ```text
//! record ─► open batch ──(full, read, written to, end of the task)──► submitted ─► verdict
//! ```
//!
//! Small products that are alike share launches: `group.rs`.
//!
//! A batch has one encoder, one write of parameters, one pair of error scopes and one submission, however many operations it holds. What its
//! scopes find is known only later. By then others may have computed from its results, so a fault condemns every batch up to the one
//! that is open when it becomes known. Reading a condemned result, or computing from it, is an error.
//!
//! What somebody waits for is submitted by itself, after what is open: so a fault here is never a fault of those calls.

mod group;
mod params;
mod recipe;

use std::future::poll_fn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::WebGpu;
use super::buffer::{Buffer, Raw};
use super::launch::{PARAMS_STRIDE_BYTES, ScopeFuture, Scopes, add_params, launch};
use super::slab::Slabs;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::map::MOST_INPUTS;
use crate::plan::Slot;
use group::Group;
use params::Params;
use recipe::Recipe;

/// The most launches in a batch: what a submission costs is little beside so many, and the device waits for no more than so many at the end.
const LAUNCHES: u64 = 128;
/// Multiplications after which a batch is submitted, as many as one product of 2600³ has: slow GPUs do them in tens of milliseconds. With a quarter
/// of them products of 1024³ took an NVIDIA H200 5 % longer, since a submission takes the browser some 200 µs.
const MULTIPLICATIONS: u64 = 1 << 34;
/// The same where a CPU emulates the GPU.
const SOFTWARE_MULTIPLICATIONS: u64 = 1 << 32;
/// What those launches and multiplications are divided by when the device may be idle: it is to begin soon.
const FIRST: [u64; 2] = [8, 4];
/// As many are one on matrix units, which do them the faster: a submission costs the browser more than a few products of 1024³ there.
const ON_UNITS: u64 = 8;
/// The most batches without a verdict. A loop that never lets the browser answer is made to wait then.
const BATCHES: usize = 256;

/// What there is to know of a batch.
pub(super) struct Verdict {
    number: u32,
    fault: OnceLock<Error>,
}

impl Verdict {
    fn condemn(&self, error: &Error) {
        // The first fault is the cause.
        let _ = self.fault.set(error.clone());
    }

    pub(super) fn get(&self) -> Result<()> {
        self.fault.get().map_or(Ok(()), |fault| Err(Box::new(fault.clone())))
    }
}

/// What tells the bind groups of an operation's launches from others: the recipe, and the scratch, the operands, what is kept of them, and where
/// they start.
type Key = [u64; BUFFERS];

/// The result, the scratch, the operands, and what is kept of two of them.
const BUFFERS: usize = 2 + MOST_INPUTS + 2;

/// The bind groups of an operation's launches, what tells them from others, and the buffer of parameters and the place in it.
pub(super) struct Groups {
    key: Key,
    params: (u32, usize),
    groups: Arc<Vec<wgpu::BindGroup>>,
}

/// The queue of a device.
pub(super) struct Batches {
    device: wgpu::Device,
    queue: wgpu::Queue,
    pub(super) slabs: Slabs,
    most_multiplications: u64,
    state: Mutex<State>,
    readers: Arc<Readers>,
}

#[derive(Default)]
struct State {
    /// The last batch's number.
    number: u32,
    open: Option<Open>,
    /// Submitted and not yet judged, the oldest first.
    under_way: Vec<UnderWay>,
    recipes: Vec<Arc<Recipe>>,
    /// The last recipe's.
    recipe: u32,
    params: Params,
    /// Whether the end of the task is waited for.
    is_timed: bool,
    /// The last thread that did.
    #[cfg(not(target_arch = "wasm32"))]
    timer: Option<std::thread::JoinHandle<()>>,
}

/// A batch that launches are recorded into.
struct Open {
    // Ends before the encoder does.
    pass: wgpu::ComputePass<'static>,
    encoder: wgpu::CommandEncoder,
    verdict: Arc<Verdict>,
    /// What comes after all that is recorded in the pass.
    group: Option<Group>,
    /// The recipe whose pipelines are set.
    recipe: u32,
    launches: usize,
    multiplications: u64,
    /// Kept from being destroyed.
    buffers: Vec<Arc<Raw>>,
}

struct UnderWay {
    verdict: Arc<Verdict>,
    scopes: Vec<ScopeFuture>,
}

/// Who waits for verdicts. All are woken, since a future wakes only who polled it last, and that one may be gone.
#[derive(Default)]
struct Readers(Mutex<Vec<Waker>>);

impl Wake for Readers {
    fn wake(self: Arc<Self>) {
        // A waker may poll at once, which asks for the lock.
        let wakers = std::mem::take(&mut *lock(&self.0));
        wakers.into_iter().for_each(Waker::wake);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is locked here is left half done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Batches {
    pub(super) fn new(device: &wgpu::Device, queue: &wgpu::Queue, slabs: Slabs, is_software: bool) -> Arc<Self> {
        let (device, queue) = (device.clone(), queue.clone());
        let most_multiplications = if is_software { SOFTWARE_MULTIPLICATIONS } else { MULTIPLICATIONS };
        Arc::new(Self { device, queue, slabs, most_multiplications, state: Mutex::default(), readers: Arc::default() })
    }

    /// Submits what is recorded.
    pub(super) fn submit(&self) {
        self.submit_open(&mut lock(&self.state));
    }

    /// Has operations planned anew.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn forget_recipes(&self) {
        lock(&self.state).recipes.clear();
    }

    /// Whether anything is recorded and not submitted.
    #[cfg(all(test, not(target_arch = "wasm32")))]
    pub(super) fn is_recording(&self) -> bool {
        lock(&self.state).open.is_some()
    }

    /// Submits what is recorded if it uses that buffer, which is about to be written from outside.
    pub(super) fn submit_users(&self, buffer: &Buffer) {
        let mut state = lock(&self.state);
        if state.open.as_ref().is_some_and(|open| open.verdict.number == buffer.used_in().load(Ordering::Relaxed)) {
            self.submit_open(&mut state);
        }
    }

    fn submit_open(&self, state: &mut State) {
        state.close_group();
        let Some(Open { pass, encoder, verdict, buffers, .. }) = state.open.take() else { return };
        let scopes = Scopes::open(&self.device);
        state.params.write(&self.queue);
        drop(pass);
        self.queue.submit([encoder.finish()]);
        self.slabs.end_batch(verdict.number);
        state.under_way.push(UnderWay { verdict, scopes: scopes.close() });
        // From here on they may be destroyed.
        drop(buffers);
    }

    /// Submits what is recorded once the caller is done.
    fn submit_later(self: &Arc<Self>, state: &mut State) {
        if std::mem::replace(&mut state.is_timed, true) {
            return;
        }
        // A device that was dropped meanwhile has nobody who could read a result.
        let batches = Arc::downgrade(self);
        let submit = move || {
            if let Some(batches) = batches.upgrade() {
                let mut state = lock(&batches.state);
                state.is_timed = false;
                batches.submit_open(&mut state);
            }
        };
        #[cfg(target_arch = "wasm32")]
        crate::clock::later(submit);
        #[cfg(not(target_arch = "wasm32"))]
        match crate::clock::later(submit) {
            None => {
                state.is_timed = false;
                self.submit_open(state);
            }
            timer => state.timer = timer,
        }
    }

    /// The thread that submits what is recorded, if there was one.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn take_timer(&self) -> Option<std::thread::JoinHandle<()>> {
        lock(&self.state).timer.take()
    }
}

impl State {
    /// Where the recipe's parameters are on the device, or will be when the batch is submitted. Those of a group are somewhere else each time,
    /// for which there is room afterwards.
    fn place(&mut self, recipe: &Recipe, batches: &Batches) -> usize {
        let mut known = lock(&recipe.params);
        if let Some((filling, at)) = *known
            && filling == self.params.filling
        {
            return at;
        }
        let count = if recipe.joins { group::PARAMS_SLOTS } else { recipe.plan.dispatches.len() };
        if self.params.buffer.is_none() || self.params.bytes.len() / PARAMS_STRIDE_BYTES + count > self.params.slots {
            // What is recorded still needs what is there.
            batches.submit_open(self);
            self.params.clear(count, &batches.device);
        }
        if recipe.joins {
            return 0;
        }
        let params = &mut self.params;
        let at = params.bytes.len();
        add_params(&mut params.bytes, &recipe.plan);
        *known = Some((params.filling, at));
        at
    }
}

impl Open {
    fn new(device: &wgpu::Device, number: u32) -> Self {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()).forget_lifetime();
        let verdict = Arc::new(Verdict { number, fault: OnceLock::new() });
        Self { pass, encoder, verdict, group: None, recipe: 0, launches: 0, multiplications: 0, buffers: Vec::new() }
    }

    fn keep(&mut self, buffer: &Buffer) {
        let raw = buffer.raw();
        if raw.used_in.swap(self.verdict.number, Ordering::Relaxed) != self.verdict.number {
            self.buffers.push(Arc::clone(raw));
        }
        buffer.used_in().store(self.verdict.number, Ordering::Relaxed);
    }

    fn is_full(&self, [launches, multiplications]: [u64; 2]) -> bool {
        self.launches as u64 >= launches || self.multiplications >= multiplications
    }
}

impl UnderWay {
    /// What the scopes caught, once both have said so.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<wgpu::Error>> {
        while let Some(scope) = self.scopes.last_mut() {
            match scope.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => drop(self.scopes.pop()),
                fault => return fault,
            }
        }
        Poll::Ready(None)
    }
}

impl WebGpu {
    /// Records an operation; see [`Backend::queue`].
    pub(super) fn record(&self, op: &Op, operands: &[Option<&Buffer>]) -> Result<Option<Buffer>> {
        // What is bound without being read would be bound in the result's place, where nothing else is there.
        if !op.reads_operands() {
            return Ok(None);
        }
        let mut locked = lock(&self.batches.state);
        let state = &mut *locked;
        if state.under_way.len() >= BATCHES {
            self.judge_batches(state);
            if state.under_way.len() >= BATCHES {
                return Ok(None);
            }
        }
        // What is known by now of what they were computed in.
        for verdict in operands.iter().flatten().filter_map(|buffer| buffer.verdict.get()) {
            verdict.get()?;
        }
        let mut keeps = self.keeps(op, operands);
        let mut recipe = self.recipe(state, op, [false; 2])?;
        #[cfg(target_arch = "wasm32")]
        if [op.extent().bytes(), recipe.plan.scratch_bytes].iter().any(|&bytes| self.may_lack(bytes)) {
            return Ok(None);
        }
        let (mut found, mut done) = Default::default();
        while keeps != [false; 2] && !recipe.joins {
            let keeping = self.recipe(state, op, keeps)?;
            // Until it is compiled the other serves.
            if keeping.makers == [None; 2] || !self.is_ready(&keeping)? {
                break;
            }
            match self.forms(operands, &keeping.plan, keeping.makers) {
                Ok(forms) => {
                    ((found, done), recipe) = (forms, keeping);
                    break;
                }
                Err(at) => keeps[at] = false,
            }
        }
        let mut ids = [u32::MAX; 4];
        for (id, operand) in ids.iter_mut().zip(operands) {
            *id = operand.map_or(*id, |operand| operand.raw().id);
        }
        let bytes = op.extent().bytes();
        let out = if recipe.joins { self.storage_of_result(bytes, &ids)? } else { self.storage(bytes)? };
        // Launches that follow may use it too, since they run in order.
        let scratch_bytes = recipe.plan.scratch_bytes;
        let scratch = if scratch_bytes > 0 { Some(self.storage(scratch_bytes)?) } else { None };
        // In the place of what the plan does not bind.
        let other = scratch.as_ref().unwrap_or(&out);
        let mut buffers = [other; BUFFERS];
        buffers[0] = &out;
        for (buffer, operand) in buffers[2..].iter_mut().zip(operands) {
            *buffer = operand.unwrap_or(other);
        }
        for (at, form) in found.iter().enumerate() {
            if let Some(form) = form {
                buffers[Slot::Kept(at as u8).index()] = &form.buffer;
            }
        }
        let mut key = [u64::from(recipe.id); BUFFERS];
        for (at, buffer) in (1..).zip(&buffers[1..]) {
            // A group is told where its matrices are, but for a bias, which all of it share.
            let is_bound_there = !recipe.joins || at == Slot::BIAS.index() && operands[3].is_some();
            key[at] = u64::from(buffer.raw().id) << 32 | if is_bound_there { buffer.at_bytes() } else { 0 };
        }

        if !(recipe.joins && state.may_join(&key)) {
            state.close_group();
            let at = state.place(&recipe, &self.batches);
            let Some(params) = &state.params.buffer else { return Err(Error::internal("parameters without a buffer")) };
            // The result's buffer is that whose groups these are.
            let place = (params.id, at);
            let known = lock(&out.raw().groups).take().filter(|known| known.key == key && known.params == place);
            let known = known.unwrap_or_else(|| Groups {
                key,
                params: place,
                groups: Arc::new(self.groups(&recipe.plan, recipe.pipelines(), &buffers, params, at)),
            });
            let open = self.opened(state);
            if recipe.joins {
                open.group = Some(Group { key, recipe: Arc::clone(&recipe), groups: Arc::clone(&known.groups), places: Vec::new() });
            } else {
                launch(&mut open.pass, &recipe.plan, recipe.pipelines(), &known.groups, open.recipe == recipe.id, &done, None);
                open.recipe = recipe.id;
            }
            *lock(&out.raw().groups) = Some(known);
        }

        let mut most = [LAUNCHES, self.batches.most_multiplications];
        if state.under_way.is_empty() {
            most = [most[0] / FIRST[0], most[1] / FIRST[1]];
        }
        let open = self.opened(state);
        if let Some(group) = &mut open.group {
            group.places.push(group::places(op, &recipe.plan, &buffers));
        }
        for buffer in buffers {
            open.keep(buffer);
        }
        open.launches += recipe.plan.dispatches.len();
        open.multiplications += recipe.multiplications;
        for ((form, done), operand) in found.iter().zip(done).zip(operands) {
            if let (Some(form), None, Some(operand)) = (form, done, operand) {
                let _ = form.buffer.verdict.set(Arc::clone(&open.verdict));
                operand.keep(form);
            }
        }
        let _ = out.verdict.set(Arc::clone(&open.verdict));
        if open.is_full(most) {
            self.batches.submit_open(state);
            self.judge_batches(state);
        } else {
            self.batches.submit_later(state);
        }
        Ok(Some(out))
    }

    /// The open batch, begun if there is none.
    fn opened<'a>(&self, state: &'a mut State) -> &'a mut Open {
        if state.open.is_none() {
            state.number += 1;
        }
        state.open.get_or_insert_with(|| Open::new(&self.device, state.number))
    }

    /// Takes in what is known by now of the batches under way.
    fn judge_batches(&self, state: &mut State) {
        let waker = Waker::from(Arc::clone(&self.batches.readers));
        let mut context = Context::from_waker(&waker);
        while let Some(Poll::Ready(fault)) = state.under_way.first_mut().map(|first| first.poll(&mut context)) {
            let judged = state.under_way.remove(0).verdict;
            let Err(error) = self.judge(fault) else { continue };
            judged.condemn(&error);
            for later in &state.under_way {
                later.verdict.condemn(&error);
            }
            if let Some(open) = &state.open {
                open.verdict.condemn(&error);
            }
            // Nobody will get what it would compute, and what failed may have been the buffer of parameters.
            state.open = None;
            self.batches.slabs.end_batch(state.number);
            state.params.renew();
            // Memory that was not to be had may lie in the pool as a buffer.
            self.trim();
        }
    }

    /// Waits until it is known whether a batch went well, and says so.
    pub(super) async fn settle(&self, verdict: &Verdict) -> Result<()> {
        poll_fn(|context| {
            let mut state = lock(&self.batches.state);
            if state.open.as_ref().is_some_and(|open| open.verdict.number <= verdict.number) {
                self.batches.submit_open(&mut state);
            }
            let is_pending = |state: &mut State| {
                self.judge_batches(state);
                state.under_way.first().is_some_and(|first| first.verdict.number <= verdict.number)
            };
            if is_pending(&mut state) {
                lock(&self.batches.readers.0).push(context.waker().clone());
                // Its wake may have come before there was somebody to wake.
                if is_pending(&mut state) {
                    return Poll::Pending;
                }
            }
            Poll::Ready(())
        })
        .await;
        verdict.get()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // It may be a buffer that was not to be had.
        if self.verdict.get().is_some_and(|verdict| verdict.get().is_err()) {
            self.discard();
        }
    }
}
