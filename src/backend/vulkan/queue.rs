//! A handle's place in one of the device's queues: submissions in order, what each of them holds until the GPU is done with it, and who waits for
//! them.
//!
//! Each submission makes the timeline semaphore reach a number one higher than the last. A thread of its own waits for such numbers and
//! wakes the futures that want them, so that no executor is blocked. Copies of operands are not submitted by themselves: they go along
//! with the submission that reads them, which starts behind a barrier against all before it.
//!
//! Handles share the queues, so that each one's work also waits for what others submitted before it, and each waits only for its own timeline.
//!
//! One queue does everything but large copies that a stream was told to make, which [`transfer`](super::transfer) has on another where there is
//! one. Operands of products stay here: their copies on a queue of their own were 0 to 10 % faster from host to host on an NVIDIA H200 (4096³ in
//! three threads).

use std::collections::VecDeque;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ash::vk;
use futures_channel::oneshot;

use super::buffer::Buffer;
use super::context::Context;
use super::recorder::{self, Recorder};
use crate::error::{Error, Result};

/// Something that has to live until the GPU is done.
type Hold = Arc<dyn Send + Sync>;

/// The queue as one handle sees it: its own timeline, on which the submissions of others do not show.
pub(super) struct Queue {
    context: Arc<Context>,
    family: u32,
    timeline: vk::Semaphore,
    state: Mutex<State>,
    /// None only while the queue goes.
    requests: Option<mpsc::Sender<Request>>,
    attendant: Option<JoinHandle<()>>,
}

struct State {
    /// What the last submission makes the timeline reach.
    submitted: u64,
    /// Copies that go along with the next submission.
    copies: Vec<Copy>,
    /// Oldest first.
    in_flight: VecDeque<InFlight>,
    /// Free to be recorded into.
    idle: Vec<Recorder>,
}

struct Copy {
    from: Buffer,
    to: Buffer,
    region: vk::BufferCopy,
}

struct InFlight {
    value: u64,
    recorder: Recorder,
    holds: Vec<Hold>,
}

/// Somebody waits for the timeline to reach a value.
struct Request {
    value: u64,
    reached: oneshot::Sender<Result<(), vk::Result>>,
}

/// A command buffer being recorded. The queue is locked meanwhile: submissions are short and keep their order.
pub(super) struct Recording<'q> {
    queue: &'q Queue,
    state: MutexGuard<'q, State>,
    /// None once it is submitted.
    recorder: Option<Recorder>,
    holds: Vec<Hold>,
    /// Another queue's timeline, and what it has to reach before this begins.
    wait: Option<(vk::Semaphore, u64)>,
}

/// As many recorders are kept as calls are usually under way at once.
const MAX_IDLE: usize = 16;

impl Queue {
    /// A place in the queue of a family of the device's.
    pub(super) fn new(context: &Arc<Context>, family: u32) -> Result<Self> {
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device was made with timeline semaphores.
        let timeline = context.check("vkCreateSemaphore", unsafe { context.device.create_semaphore(&info, None) })?;
        let state = State { submitted: 0, copies: Vec::new(), in_flight: VecDeque::new(), idle: Vec::new() };
        let (requests, inbox) = mpsc::channel();
        let mut made =
            Self { context: Arc::clone(context), family, timeline, state: Mutex::new(state), requests: Some(requests), attendant: None };
        let device = context.device.clone();
        let attendant = std::thread::Builder::new().name("lapidary vulkan".to_owned()).spawn(move || attend(&device, timeline, &inbox));
        made.attendant = Some(attendant.map_err(|error| Error::internal(format!("no thread could be started ({error})")))?);
        Ok(made)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies to the start of what the next submission does.
    pub(super) fn copy_soon(&self, from: &Buffer, to: &Buffer, at_bytes: u64, bytes: u64) {
        let region = vk::BufferCopy { src_offset: 0, dst_offset: at_bytes, size: bytes };
        self.state().copies.push(Copy { from: from.clone(), to: to.clone(), region });
    }

    /// Submits the copies that wait for a submission; gives what the timeline reaches with the last there is.
    pub(super) fn flush(&self) -> Result<u64> {
        if self.state().copies.is_empty() {
            return Ok(self.state().submitted);
        }
        self.record(0)?.submit()
    }

    /// Starts recording, with room for so many sets of bindings. What is recorded runs after all that was submitted before, and sees
    /// what that wrote.
    pub(super) fn record(&self, sets: u32) -> Result<Recording<'_>> {
        self.reap();
        let mut state = self.state();
        let recorder = match state.idle.iter().position(|idle| idle.sets >= sets) {
            Some(at) => state.idle.swap_remove(at),
            None => Recorder::new(&self.context, self.family, sets)?,
        };
        let recording = Recording { queue: self, state, recorder: Some(recorder), holds: Vec::new(), wait: None };
        recording.begin()?;
        Ok(recording)
    }

    /// Waits until the timeline has reached a value, or the device is lost.
    pub(super) async fn reached(&self, value: u64) -> Result<()> {
        if self.counter()? < value {
            let (sender, receiver) = oneshot::channel();
            if let Some(requests) = &self.requests {
                // If nobody takes it, the receiver hears so.
                let _ = requests.send(Request { value, reached: sender });
            }
            let waited = receiver.await.map_err(|_| Error::internal("the thread that waits for the GPU is gone"))?;
            self.context.check("vkWaitSemaphores", waited)?;
        }
        self.reap();
        self.context.settled()
    }

    /// What the timeline has reached.
    fn counter(&self) -> Result<u64> {
        // SAFETY: the semaphore is of this device, and a timeline.
        let counter = unsafe { self.context.device.get_semaphore_counter_value(self.timeline) };
        self.context.check("vkGetSemaphoreCounterValue", counter)
    }

    /// Waits until the GPU is done with all that was submitted.
    pub(super) fn wait(&self) {
        let submitted = self.state().submitted;
        self.context.wait(self.timeline, submitted);
    }

    /// Gives back what the GPU is done with.
    pub(super) fn reap(&self) {
        // A counter that cannot be had tells of a loss, which those who wait hear of.
        let Ok(counter) = self.counter() else { return };
        let mut state = self.state();
        let mut holds = Vec::new();
        // After a loss some drivers let the counter jump to the end; nothing here is freed on that word before the device goes.
        if counter > state.submitted {
            self.context.lose("the driver's counter ran ahead".to_owned());
            return;
        }
        while state.in_flight.front().is_some_and(|oldest| oldest.value <= counter) {
            if let Some(InFlight { recorder, holds: held, .. }) = state.in_flight.pop_front() {
                holds.push(held);
                if state.idle.len() < MAX_IDLE {
                    state.idle.push(recorder);
                }
            }
        }
        // A copy to a buffer that nobody else has any more is of no use: its call failed, or was given up.
        let (needed, useless): (Vec<_>, Vec<_>) = state.copies.drain(..).partition(|copy| Arc::strong_count(&copy.to.0) > 1);
        state.copies = needed;
        drop(state);
        drop((holds, useless));
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.wait();
        self.requests = None;
        // The thread itself drops the queue if a waker that it called did.
        if let Some(attendant) = self.attendant.take().filter(|attendant| attendant.thread().id() != std::thread::current().id()) {
            let _ = attendant.join();
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.in_flight.clear();
        state.copies.clear();
        state.idle.clear();
        // SAFETY: neither the GPU nor the thread uses it any more.
        unsafe { self.context.device.destroy_semaphore(self.timeline, None) };
    }
}

/// Waits for the next value, tells who asked for it or a lower one, and so on until the queue goes: who asks meanwhile is heard after each.
fn attend(device: &ash::Device, timeline: vk::Semaphore, inbox: &mpsc::Receiver<Request>) {
    let mut requests: Vec<Request> = Vec::new();
    loop {
        if requests.is_empty() {
            match inbox.recv() {
                Ok(request) => requests.push(request),
                Err(mpsc::RecvError) => return,
            }
        }
        requests.extend(inbox.try_iter());
        // Their calls were dropped, and with the last of them maybe the timeline.
        requests.retain(|request| !request.reached.is_canceled());
        if requests.is_empty() {
            continue;
        }
        // SAFETY: somebody waits, so there is a queue, which destroys the semaphore after this thread has ended.
        let counter = unsafe { device.get_semaphore_counter_value(timeline) };
        let is_over = |request: &mut Request| counter.is_err() || counter.is_ok_and(|counter| request.value <= counter);
        let mut told = false;
        for Request { reached, .. } in requests.extract_if(.., is_over) {
            told = true;
            // The receiver is gone if the call was dropped meanwhile.
            let _ = reached.send(counter.map(|_| ()));
        }
        let Ok(counter) = counter else { continue };
        // Whoever was told may have dropped the queue, in this thread too.
        if told {
            continue;
        }
        let (semaphores, values) = ([timeline], [counter + 1]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: as above.
        if let Err(fault) = unsafe { device.wait_semaphores(&info, u64::MAX) } {
            for Request { reached, .. } in requests.drain(..) {
                let _ = reached.send(Err(fault));
            }
        }
    }
}

impl Recording<'_> {
    fn recorder(&self) -> Result<&Recorder> {
        self.recorder.as_ref().ok_or_else(|| Error::internal("a recording that was submitted"))
    }

    /// The command buffer.
    pub(super) fn commands(&self) -> Result<vk::CommandBuffer> {
        Ok(self.recorder()?.commands)
    }

    /// What the timeline will reach when this is done.
    pub(super) fn value(&self) -> u64 {
        self.state.submitted + 1
    }

    fn begin(&self) -> Result<()> {
        let device = &self.queue.context.device;
        let recorder = self.recorder()?;
        recorder.begin()?;
        let all = (vk::PipelineStageFlags::ALL_COMMANDS, vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE);
        self.barrier(all, all)?;
        for Copy { from, to, region } in &self.state.copies {
            // SAFETY: the region lies in both buffers, which the submission holds; copies in one go do not overlap.
            unsafe { device.cmd_copy_buffer(recorder.commands, from.0.handle, to.0.handle, &[*region]) };
        }
        if !self.state.copies.is_empty() {
            self.barrier(recorder::COPY_WRITES, all)?;
        }
        Ok(())
    }

    /// All after it waits for and sees what was done before it, as far as stages and kinds of access say.
    pub(super) fn barrier(&self, before: recorder::Scope, after: recorder::Scope) -> Result<()> {
        let barrier = vk::MemoryBarrier::default().src_access_mask(before.1).dst_access_mask(after.1);
        let (commands, none) = (self.commands()?, vk::DependencyFlags::empty());
        // SAFETY: the command buffer is being recorded, outside a render pass.
        unsafe { self.queue.context.device.cmd_pipeline_barrier(commands, before.0, after.0, none, &[barrier], &[], &[]) };
        Ok(())
    }

    /// A set of bindings of that layout.
    pub(super) fn bindings(&self, layout: vk::DescriptorSetLayout) -> Result<vk::DescriptorSet> {
        self.recorder()?.bindings(layout)
    }

    /// Has this begin only when another queue's timeline has reached a value.
    pub(super) fn wait_for(&mut self, other: &Queue, value: u64) -> Result<()> {
        if value > 0 && other.counter()? < value {
            let before = self.wait.map_or(0, |(_, value)| value);
            self.wait = Some((other.timeline, value.max(before)));
        }
        Ok(())
    }

    /// Keeps something until the GPU is done with this.
    pub(super) fn hold(&mut self, hold: Hold) {
        self.holds.push(hold);
    }

    /// Hands what was recorded to the GPU; gives what the timeline reaches when it is done.
    pub(super) fn submit(mut self) -> Result<u64> {
        let context = &self.queue.context;
        let value = self.value();
        let commands = [self.recorder()?.end()?];
        let (timelines, values) = ([self.queue.timeline], [value]);
        let (waits, reached): (Vec<_>, Vec<_>) = self.wait.into_iter().unzip();
        let stages = vec![vk::PipelineStageFlags::ALL_COMMANDS; waits.len()];
        let mut signal = vk::TimelineSemaphoreSubmitInfo::default().wait_semaphore_values(&reached).signal_semaphore_values(&values);
        let info = vk::SubmitInfo::default().wait_semaphores(&waits).wait_dst_stage_mask(&stages);
        let info = info.command_buffers(&commands).signal_semaphores(&timelines).push_next(&mut signal);
        // SAFETY: what the commands use is held until the timeline has reached the value; the timeline waited for is the same device's.
        let submitted = unsafe { context.submit(self.queue.family, &info) };
        if let Err(fault) = submitted {
            if fault == vk::Result::ERROR_DEVICE_LOST {
                // It may have begun: what it uses has to stay, until the device goes.
                self.retire(value);
            }
            return context.check("vkQueueSubmit", Err(fault));
        }
        self.state.submitted = value;
        self.retire(value);
        Ok(value)
    }

    /// Moves all that the commands use to where it is kept until the timeline has reached the value.
    fn retire(&mut self, value: u64) {
        let mut holds = std::mem::take(&mut self.holds);
        for Copy { from, to, .. } in self.state.copies.drain(..) {
            holds.extend([from.0 as Hold, to.0 as Hold]);
        }
        if let Some(recorder) = self.recorder.take() {
            self.state.in_flight.push_back(InFlight { value, recorder, holds });
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        // Not submitted, because something failed.
        if let Some(recorder) = self.recorder.take() {
            self.state.idle.push(recorder);
        }
    }
}
