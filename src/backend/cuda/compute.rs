//! Memory, kernels and streams of the caller's. Streams are the driver's own and overlap.
//!
//! Every use of memory is put into some stream. Memory knows the streams of its last write and of the reads since; before another stream
//! uses it, that one is made to wait for them. So what shares memory keeps the order of the calls, and nobody has to say so.
//!
//! ```text
//! a ── write x ──●──────────── more of a
//!                ╰─► b waits ── read x
//! ```
//!
//! Memory comes from the pool of the device's own stream, and goes back to it in that stream's order: a fresh block counts as written
//! there, and before one is given back that stream waits for all who use it. A tensor, whose uses are all in that stream, is lent to a launch
//! in the same way.

use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr, CUfunction_attribute};

use super::buffer::{Buffer, PIECE_BYTES, PIECES, Raw};
use super::driver::{Event, Fault, Stream, check, text};
use super::nvrtc::Compiled;
use super::pipeline::{Module, Refused};
use super::{Cuda, arguments, nvrtc};
use crate::backend::BoxFuture;
use crate::backend::compute::{Compute, Launch};
use crate::backend::pool::Pooled;
use crate::compute::{KernelDefinition, Language, Signature};
use crate::error::{Error, Result};
use crate::info::{BackendId, Memory};

/// Shared memory of a block that a kernel has without asking.
const USUAL_SHARED_BYTES: u32 = 48 << 10;

/// Held while a call looks at who uses memory and puts its own use into a stream.
#[derive(Default)]
pub(super) struct Order(Mutex<()>);

impl Order {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory and the streams that use it.
pub(crate) struct Storage {
    raw: Arc<Pooled<Raw>>,
    memory: Memory,
    users: Mutex<Users>,
    /// The stream whose pool it is of.
    home: Arc<Stream>,
    /// A tensor's, of which others know nothing but that the home stream uses it.
    is_lent: bool,
}

struct Users {
    /// Whose work writes last; None if nothing is under way.
    writer: Option<Arc<Stream>>,
    /// Who reads what that wrote, each after having waited for it.
    readers: Vec<Arc<Stream>>,
}

/// A kernel, unloaded when the streams that it ran in are past it.
pub(crate) struct Program {
    name: String,
    module: Module,
    block: [u32; 3],
    shared_bytes: u32,
    streams: Mutex<Vec<Arc<Stream>>>,
}

/// A copy under way, into pinned memory.
pub(crate) struct Fetch {
    staging: Storage,
    done: Arc<Event>,
}

impl Storage {
    fn users(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams that have to be past what they do with it before another use.
    fn rivals(&self, writes: bool) -> Vec<Arc<Stream>> {
        let users = self.users();
        users.writer.iter().chain(users.readers.iter().filter(|_| writes)).cloned().collect()
    }

    /// Has a stream wait for all that its use of the memory comes after.
    fn before(&self, stream: &Arc<Stream>, writes: bool) -> Result<(), Fault> {
        let has_waited = self.users().readers.iter().any(|reader| Arc::ptr_eq(reader, stream));
        if has_waited && !writes {
            return Ok(());
        }
        for rival in self.rivals(writes) {
            if !Arc::ptr_eq(&rival, stream) {
                stream.wait(&Event::record(&rival, false)?)?;
            }
        }
        Ok(())
    }

    /// Notes that a stream uses it.
    fn after(&self, stream: &Arc<Stream>, writes: bool) {
        let mut users = self.users();
        let is = |other: &Arc<Stream>| Arc::ptr_eq(other, stream);
        if writes {
            users.readers.clear();
            users.writer = Some(Arc::clone(stream));
        } else if !users.writer.as_ref().is_some_and(is) && !users.readers.iter().any(is) {
            // Those that are done with it need not be waited for, and may go.
            users.readers.retain(|reader| !reader.is_idle());
            users.readers.push(Arc::clone(stream));
        }
    }

    /// Has the home stream go on with it after all who use it.
    fn take_home(&self) -> Result<(), Fault> {
        self.before(&self.home, true)?;
        self.after(&self.home, true);
        Ok(())
    }

    /// What is lent goes home after each use: another thread may lend the same tensor to another stream next.
    fn end_loan(&self) -> Result<(), Fault> {
        if self.is_lent { self.take_home() } else { Ok(()) }
    }

    /// Blocks until those who use it now are done.
    fn wait_for_users(&self) -> Result<(), Fault> {
        self.rivals(true).iter().try_for_each(|rival| Event::record(rival, false)?.wait())
    }

    /// Blocks until nobody uses it any more.
    fn settle(&self) -> Result<(), Fault> {
        self.wait_for_users()?;
        self.forget_users();
        Ok(())
    }

    fn forget_users(&self) {
        let mut users = self.users();
        users.readers.clear();
        users.writer = None;
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // The pool may give it to whoever comes next in the home stream.
        if self.take_home().is_err() {
            // After a fault of the device nothing is under way; where there only was no room for an event, something may be.
            for rival in self.rivals(true) {
                let _ = rival.synchronize();
            }
        }
    }
}

impl Program {
    /// A launch that the driver does not take.
    fn refused(&self, grid: [u32; 3], fault: &Fault) -> Box<Error> {
        let Self { name, block, shared_bytes, .. } = self;
        Box::new(Error::InvalidArgument {
            what: format!("the launch of the kernel {name}"),
            found: format!("of {grid:?} blocks of {block:?} threads with {shared_bytes} bytes of dynamic shared memory"),
            expected: format!("the driver refuses that for what the kernel was compiled for ({fault})"),
        })
    }

    fn runs_in(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if !streams.iter().any(|known| Arc::ptr_eq(known, stream)) {
            streams.retain(|known| !known.is_idle());
            streams.push(Arc::clone(stream));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        for stream in self.streams.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // After a fault there is nothing to wait for.
            let _ = stream.synchronize();
        }
    }
}

impl Cuda {
    /// Memory of the pool, which counts as written in its stream.
    fn hold(&self, memory: Memory, bytes: u64) -> Result<Storage> {
        let raw = if memory == Memory::Device { self.storage(bytes)?.0 } else { Arc::new(self.pinned(bytes)?) };
        Ok(self.of_own_stream(raw, memory, false))
    }

    /// Memory that the device's own stream used last, and uses next once it is dropped.
    fn of_own_stream(&self, raw: Arc<Pooled<Raw>>, memory: Memory, is_lent: bool) -> Storage {
        let users = Users { writer: Some(Arc::clone(&self.stream)), readers: Vec::new() };
        Storage { raw, memory, users: Mutex::new(users), home: Arc::clone(&self.stream), is_lent }
    }

    /// Held while a stream has a tensor that is lent to it: calls put nothing into the tensor's own stream between what the other one waits for there
    /// and what waits for the other. Taken before the order.
    fn turn_of(&self, lent: bool) -> Option<MutexGuard<'_, ()>> {
        lent.then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a copy into a stream.
    fn copy_async(stream: &Stream, from: CUdeviceptr, to: CUdeviceptr, bytes: u64) -> Result<(), Fault> {
        let _current = stream.context.enter()?;
        // SAFETY: both are addresses of the driver's, of the device or of pinned memory, and at least so long; both live until the copy is
        // done, since memory is given back only after those who use it.
        check("cuMemcpyAsync", unsafe { sys::cuMemcpyAsync(to, from, bytes as usize, stream.raw()) })
    }

    /// The kernel's source, compiled for this GPU and loaded. Its launches give what it takes.
    fn module_of(&self, definition: &KernelDefinition, signature: &Signature) -> Result<Module> {
        let fault =
            |language: Language, log: String| Box::new(Error::Compile { kernel: definition.name.clone(), language: language.name(), log });
        let entry = arguments::entry_of(definition);
        let (compiled, language) = match (&definition.cuda, &definition.ptx) {
            (Some(source), _) => {
                let compiler = nvrtc::get().map_err(|missing| Error::Unavailable {
                    backend: BackendId::Cuda,
                    reason: format!("the kernel {} is in CUDA C++, and NVRTC is missing: {}", definition.name, missing.reason),
                    remedy: missing.remedy.to_owned(),
                })?;
                let compiled = compiler.compile(&definition.name, source, self.compute_capability);
                let compiled = compiled.map_err(|log| fault(Language::Cuda, log))?;
                (compiled, Language::Cuda)
            }
            (None, Some(ptx)) => {
                let ptx = CString::new(ptx.as_str()).map_err(|_| fault(Language::Ptx, "there is a zero in it".to_owned()))?;
                (Compiled { cubin: None, ptx: ptx.into_bytes_with_nul() }, Language::Ptx)
            }
            (None, None) => return Err(Error::internal("a kernel without a source reached CUDA")),
        };
        let name = CString::new(entry.as_str()).map_err(|_| fault(language, "the entry point's name has a zero in it".to_owned()))?;
        let module = self.load_image(compiled.image(), &name).map_err(|refused| match refused {
            Refused::Image(said, log) => fault(language, format!("{said}: {log}")),
            Refused::Entry => fault(language, format!("there is no entry point {entry}: declare it extern \"C\" __global__")),
            Refused::Other(fault) => self.judge(&fault),
        })?;
        arguments::check(definition, language, signature, &module, &text(&compiled.ptx))?;
        Ok(module)
    }
}

impl Compute for Cuda {
    type Storage = Storage;
    type Program = Program;
    type Lane = Arc<Stream>;
    type Mark = Arc<Event>;
    type Fetch = Fetch;

    fn reserve(&self, memory: Memory, bytes: u64) -> Result<Storage> {
        self.hold(memory, bytes)
    }

    fn adopt(&self, tensor: &Buffer) -> Result<Storage> {
        Ok(self.of_own_stream(Arc::clone(&tensor.0), Memory::Device, true))
    }

    fn compile(&self, definition: &KernelDefinition, signature: &Signature) -> Result<Program> {
        let module = self.with_room(|| self.module_of(definition, signature))?;
        let judge = |fault: Fault| self.judge(&fault);
        let threads = signature.workgroup.iter().product::<u32>();
        let most = module.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).map_err(judge)?;
        if threads > most {
            // Fewer than the device's, where each takes many registers.
            let what = "the number of threads in a block of this kernel";
            return Err(Box::new(Error::LimitExceeded { what, requested: threads.into(), max: most.into() }));
        }
        // What the source declares comes beside it.
        let declared = module.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES).map_err(judge)?;
        let shared_bytes = declared.saturating_add(definition.shared_bytes);
        if shared_bytes > self.max_shared_bytes {
            let what = "the shared memory of a block of this kernel in bytes";
            return Err(Box::new(Error::LimitExceeded { what, requested: shared_bytes.into(), max: self.max_shared_bytes.into() }));
        }
        if shared_bytes > USUAL_SHARED_BYTES {
            module.allow_shared(definition.shared_bytes).map_err(judge)?;
        }
        Ok(Program {
            name: definition.name.clone(),
            module,
            block: signature.workgroup,
            shared_bytes: definition.shared_bytes,
            streams: Mutex::default(),
        })
    }

    fn lane(&self) -> Result<Arc<Stream>> {
        self.with_room(|| Stream::new(Arc::clone(&self.stream.context)).map(Arc::new).map_err(|fault| self.judge(&fault)))
    }

    fn shared_lane(&self) -> Result<Arc<Stream>> {
        Ok(Arc::clone(&self.stream))
    }

    fn store(&self, lane: &Arc<Stream>, to: &Storage, at_bytes: u64, bytes: &[u8]) -> Result<()> {
        let judge = |fault: Fault| self.judge(&fault);
        // Whoever waits for the device has first done so while others may go on; what they ask of it meanwhile is seldom much.
        if to.memory != Memory::Device || bytes.len() > PIECES * PIECE_BYTES {
            to.wait_for_users().and_then(|()| Event::record(lane, false)?.wait()).map_err(judge)?;
        }
        let _turn = self.turn_of(to.is_lent);
        let _order = self.order.lock();
        if to.memory != Memory::Device {
            // It is written where it lies.
            to.settle().map_err(judge)?;
            to.raw.fill(at_bytes as usize, bytes);
            return Ok(());
        }
        to.before(lane, true).map_err(judge)?;
        to.after(lane, true);
        let sent = self.send_all(lane, to.raw.kernel_address() + at_bytes, bytes);
        to.end_loan().map_err(judge)?;
        sent
    }

    fn fetch(&self, lane: &Arc<Stream>, from: &Storage, at_bytes: u64, bytes: u64) -> Result<Fetch> {
        let staging = self.hold(Memory::Pinned, bytes)?;
        let done = {
            let _turn = self.turn_of(from.is_lent);
            let _order = self.order.lock();
            let copied = from.before(lane, false).and_then(|()| staging.before(lane, true)).and_then(|()| {
                from.after(lane, false);
                staging.after(lane, true);
                Self::copy_async(lane, from.raw.kernel_address() + at_bytes, staging.raw.kernel_address(), bytes)
            });
            let copied = copied.and_then(|()| Event::record(lane, false));
            from.end_loan().and(copied).map_err(|fault| self.judge(&fault))?
        };
        Ok(Fetch { staging, done: Arc::new(done) })
    }

    fn fetched<'a>(&'a self, fetch: Fetch, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.wait_for(Arc::clone(&fetch.done)).await?;
            // Nothing comes after that copy.
            fetch.staging.forget_users();
            fetch.staging.raw.empty_into(out);
            Ok(())
        })
    }

    fn copy(&self, lane: &Arc<Stream>, (from, from_bytes): (&Storage, u64), (to, to_bytes): (&Storage, u64), bytes: u64) -> Result<()> {
        let _order = self.order.lock();
        let copied = from.before(lane, false).and_then(|()| to.before(lane, true)).and_then(|()| {
            from.after(lane, false);
            to.after(lane, true);
            Self::copy_async(lane, from.raw.kernel_address() + from_bytes, to.raw.kernel_address() + to_bytes, bytes)
        });
        copied.map_err(|fault| self.judge(&fault))
    }

    fn launch(&self, lane: &Arc<Stream>, program: &Program, launch: &Launch<'_, Storage>) -> Result<()> {
        let judge = |fault: Fault| self.judge(&fault);
        let mut pointers: Vec<CUdeviceptr> =
            launch.buffers.iter().map(|bound| bound.storage.raw.kernel_address() + bound.offset_bytes).collect();
        let mut arguments: Vec<*mut c_void> = pointers.iter_mut().map(|pointer| std::ptr::from_mut(pointer).cast()).collect();
        if !launch.params.is_empty() {
            arguments.push(launch.params.as_ptr().cast_mut().cast());
        }
        let ([x, y, z], [block_x, block_y, block_z]) = (launch.grid, program.block);
        let _turn = self.turn_of(launch.buffers.iter().any(|bound| bound.storage.is_lent));
        let _order = self.order.lock();
        for bound in &launch.buffers {
            bound.storage.before(lane, bound.is_written).map_err(judge)?;
        }
        for bound in &launch.buffers {
            bound.storage.after(lane, bound.is_written);
        }
        program.runs_in(lane);
        let _current = lane.context.enter().map_err(judge)?;
        let launched = self.with_room(|| {
            // SAFETY: the arguments are as many as the kernel takes and at least as large, by what `arguments::check` has seen, and are read
            // before the call returns. What the kernel does with them is its author's word: CUDA checks no bounds, and a fault ends the
            // context in an error.
            let launched = check("cuLaunchKernel", unsafe {
                sys::cuLaunchKernel(
                    program.module.function(),
                    x,
                    y,
                    z,
                    block_x,
                    block_y,
                    block_z,
                    program.shared_bytes,
                    lane.raw(),
                    arguments.as_ptr().cast_mut(),
                    std::ptr::null_mut(),
                )
            });
            launched.map_err(|fault| if fault.is_of_a_launch() { program.refused(launch.grid, &fault) } else { judge(fault) })
        });
        for bound in &launch.buffers {
            bound.storage.end_loan().map_err(judge)?;
        }
        launched
    }

    fn mark(&self, lane: &Arc<Stream>) -> Result<Arc<Event>> {
        Event::record(lane, true).map(Arc::new).map_err(|fault| self.judge(&fault))
    }

    fn wait(&self, lane: &Arc<Stream>, mark: &Arc<Event>) -> Result<()> {
        lane.wait(mark).map_err(|fault| self.judge(&fault))
    }

    fn reached<'a>(&'a self, mark: &'a Arc<Event>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.wait_for(Arc::clone(mark)))
    }

    fn elapsed_ms(&self, from: &Arc<Event>, to: &Arc<Event>) -> Result<f64> {
        to.since_ms(from).map_err(|fault| self.judge(&fault))
    }
}
