//! Work for a device, in order: copies, launches, and the places in between that can be waited for and timed.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;

use super::buffer::{Argument, Buffer, elsewhere, invalid};
use super::definition::Access;
use super::kernel::{Code, Kernel, Signature};
use super::twin::{Part, Run, Twin, Values};
use crate::backend::Backend;
use crate::backend::compute::{Bound, Compute, Fetch, Lane, Launch, Mark};
use crate::backend::device::{Device, Opened};
use crate::blocking::block_on;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::profile::{Done, Operation, Profiler};

/// A queue of work for a device: what is put into it runs in order, after what it depends on in other streams. Clones share it.
#[derive(Clone)]
pub struct Stream(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub lane: Lane,
    /// Where what it does is recorded, if it is of a handle.
    profiler: Option<Arc<Profiler>>,
    /// Dropped last.
    pub home: Arc<Opened>,
}

/// A place in a stream.
#[derive(Clone)]
pub struct Event(Arc<EventInner>);

struct EventInner {
    mark: Mark,
    home: Arc<Opened>,
}

/// Values on their way to the host. Dropping it gives them up.
pub struct Reading<T> {
    /// None for no values.
    fetch: Option<Fetch>,
    count: usize,
    home: Arc<Opened>,
    values: PhantomData<fn() -> T>,
}

impl Gpu {
    /// A stream of the device in use.
    ///
    /// # Errors
    /// [`Error::Disposed`] after [`close`](Self::close); what the driver says.
    pub fn stream(&self) -> Result<Stream> {
        let home = self.sound()?;
        Ok(Stream(Arc::new(Inner { lane: home.device.lane()?, profiler: Some(Arc::clone(self.profiler())), home })))
    }
}

impl Stream {
    /// The one that the device's own work is in.
    pub(super) fn shared(home: &Arc<Opened>) -> Result<Self> {
        Ok(Self(Arc::new(Inner { lane: home.device.shared_lane()?, profiler: None, home: Arc::clone(home) })))
    }

    /// Writes values into a buffer from that byte on. They are read before this returns.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a range outside of the buffer, one that does not start and end at a multiple of 4 bytes, or a buffer of
    /// another device; the device's loss.
    pub fn write<T: Pod>(&self, to: &Buffer, offset_bytes: u64, values: &[T]) -> Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        to.at_home(&self.0.home)?;
        to.within(offset_bytes, bytes.len() as u64)?;
        self.sound()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let store = || self.0.home.device.store(&self.0.lane, &to.0.storage, offset_bytes, bytes);
        self.watched(&Done::Write(bytes.len() as u64), store)
    }

    /// Sends so many values of a buffer on their way to the host, from that byte on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn read<T: Pod>(&self, from: &Buffer, offset_bytes: u64, count: usize) -> Result<Reading<T>> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        from.at_home(&self.0.home)?;
        from.within(offset_bytes, bytes)?;
        self.sound()?;
        let fetch = || self.0.home.device.fetch(&self.0.lane, &from.0.storage, offset_bytes, bytes);
        let fetch = if bytes > 0 { Some(self.watched(&Done::Read(bytes), fetch)?) } else { None };
        Ok(Reading { fetch, count, home: Arc::clone(&self.0.home), values: PhantomData })
    }

    /// Copies bytes from one buffer to another on the device.
    ///
    /// # Errors
    /// As [`write`](Self::write); and if both are one buffer.
    pub fn copy(&self, from: &Buffer, from_bytes: u64, to: &Buffer, to_bytes: u64, bytes: u64) -> Result<()> {
        from.at_home(&self.0.home)?;
        to.at_home(&self.0.home)?;
        from.within(from_bytes, bytes)?;
        to.within(to_bytes, bytes)?;
        if Arc::ptr_eq(&from.0, &to.0) {
            return Err(invalid("the target of a copy", "its source", "it has to be another buffer"));
        }
        self.sound()?;
        if bytes == 0 {
            return Ok(());
        }
        let copy = || self.0.home.device.copy(&self.0.lane, (&from.0.storage, from_bytes), (&to.0.storage, to_bytes), bytes);
        self.watched(&Done::Copy(bytes), copy)
    }

    /// Launches a kernel on so many workgroups in x, y and z, with its buffers in the order of their bindings and its parameters, `&()` for
    /// none. A grid of nothing does nothing. A tensor is written in place: its clones and reshaped ones see it, and products after this call
    /// read what it wrote.
    ///
    /// Where the kernel's twin runs in place of it although the device is no CPU, this waits for what the buffers hold.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a wrong number of buffers, one that is too small, of another device, pinned, not aligned to
    /// [`Caps::binding_alignment_bytes`](crate::Caps), or written to while it is bound twice, and for parameters of another size;
    /// [`Error::LimitExceeded`] for a grid or a range past the device's limits; the device's loss.
    pub fn launch<'a, A: Into<Argument<'a>>>(
        &self,
        kernel: &Kernel,
        grid: [u32; 3],
        arguments: impl IntoIterator<Item = A>,
        params: &impl Pod,
    ) -> Result<()> {
        let home = &self.0.home;
        if !Arc::ptr_eq(&kernel.0.home, home) {
            return Err(elsewhere(&format!("the kernel {}", kernel.name()), &kernel.0.home, home));
        }
        let arguments: Vec<Argument<'a>> = arguments.into_iter().map(Into::into).collect();
        let params = bytemuck::bytes_of(params);
        self.check(kernel, grid, &arguments, params)?;
        self.sound()?;
        if grid.contains(&0) {
            return Ok(());
        }
        let signature = &kernel.0.signature;
        let bytes = arguments.iter().map(Argument::bytes).sum();
        self.watched(&Done::Launch { kernel: kernel.name(), grid, bytes }, || match &kernel.0.code {
            Code::Twin(twin) => self.run(twin, signature, grid, &arguments, params),
            Code::Program(program) => {
                let lent = arguments.iter().map(|argument| argument.lend(home)).collect::<Result<Vec<_>>>()?;
                let mut buffers = Vec::with_capacity(arguments.len());
                for ((argument, storage), binding) in arguments.iter().zip(&lent).zip(&signature.bindings) {
                    buffers.push(Bound {
                        storage: &**storage,
                        index: binding.index,
                        offset_bytes: argument.range.start,
                        size_bytes: argument.bytes(),
                        is_written: binding.access == Access::ReadWrite,
                    });
                }
                home.device.launch(&self.0.lane, program, &Launch { buffers, params, grid })
            }
        })
    }

    /// Puts something into the stream; where its handle profiles, waits for it and records what it took.
    fn watched<R>(&self, what: &Done<'_>, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let Some(profiler) = self.0.profiler.as_ref().filter(|profiler| profiler.is_on()) else { return work() };
        let clock = Stopwatch::start();
        let begin = self.record()?;
        let done = work()?;
        let ms = self.record()?.elapsed_ms_since_blocking(&begin)?;
        profiler.add(Operation::of_stream(what, &self.0.home.info, ms, clock.ms()));
        Ok(done)
    }

    /// Marks a place: after all that is in the stream now.
    ///
    /// # Errors
    /// The device's loss.
    pub fn record(&self) -> Result<Event> {
        self.sound()?;
        Ok(Event(Arc::new(EventInner { mark: self.0.home.device.mark(&self.0.lane)?, home: Arc::clone(&self.0.home) })))
    }

    /// Has all that comes after wait for an event of another stream of the same device. What uses the same buffers waits in any case.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an event of another device; the device's loss.
    pub fn wait(&self, event: &Event) -> Result<()> {
        if !Arc::ptr_eq(&event.0.home, &self.0.home) {
            return Err(elsewhere("an event", &event.0.home, &self.0.home));
        }
        self.sound()?;
        self.0.home.device.wait(&self.0.lane, &event.0.mark)
    }

    /// Waits until all that is in the stream is done.
    ///
    /// # Errors
    /// What went wrong in it; the device's loss.
    pub async fn synchronize(&self) -> Result<()> {
        self.record()?.reached().await
    }

    /// [`synchronize`](Self::synchronize), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn synchronize_blocking(&self) -> Result<()> {
        block_on(self.synchronize())
    }

    fn sound(&self) -> Result<()> {
        self.0.home.device.lost().map_or(Ok(()), |reason| Err(Box::new(Error::DeviceLost { reason })))
    }

    fn check(&self, kernel: &Kernel, grid: [u32; 3], arguments: &[Argument<'_>], params: &[u8]) -> Result<()> {
        let (signature, info) = (&kernel.0.signature, &self.0.home.info);
        let name = kernel.name();
        if arguments.len() != signature.bindings.len() {
            let expected = format!("the kernel has {}", signature.bindings.len());
            return Err(invalid(&format!("the number of buffers for the kernel {name}"), arguments.len(), &expected));
        }
        let params_bytes = signature.params.map_or(0, |params| params.bytes);
        if params.len() != params_bytes as usize {
            let expected = format!("the kernel's take {params_bytes}");
            return Err(invalid(&format!("the size of the parameters for the kernel {name} in bytes"), params.len(), &expected));
        }
        for (place, (argument, binding)) in arguments.iter().zip(&signature.bindings).enumerate() {
            let what = if binding.name.is_empty() {
                format!("buffer {place} of the kernel {name}")
            } else {
                format!("{} of the kernel {name}", binding.name)
            };
            argument.check(&self.0.home)?;
            let (range, bytes) = (&argument.range, argument.bytes());
            let alignment = info.caps.binding_alignment_bytes;
            if argument.is_pinned() {
                return Err(invalid(&what, "in pinned memory", "kernels need device or host-visible memory: copy it there"));
            }
            if range.start > range.end {
                return Err(invalid(
                    &what,
                    format!("bound from byte {} to {}", range.start, range.end),
                    "its end has to be behind its start",
                ));
            }
            if !range.start.is_multiple_of(alignment) {
                return Err(invalid(
                    &what,
                    format!("bound from byte {} on", range.start),
                    &format!("that has to be a multiple of {alignment}"),
                ));
            }
            if bytes < binding.least_bytes.max(4) {
                return Err(invalid(
                    &what,
                    format!("bound to {bytes} bytes"),
                    &format!("it takes at least {}", binding.least_bytes.max(4)),
                ));
            }
            if bytes > info.caps.max_binding_bytes {
                let what = "the size in bytes of what a kernel sees of a buffer";
                return Err(Box::new(Error::LimitExceeded { what, requested: bytes, max: info.caps.max_binding_bytes }));
            }
            if binding.access == Access::ReadWrite && arguments.iter().filter(|other| argument.shares(other)).count() > 1 {
                return Err(invalid(&what, "bound twice", "a buffer that a kernel writes to has to be bound once"));
            }
        }
        let axes = ["the grid's workgroups in x", "the grid's workgroups in y", "the grid's workgroups in z"];
        for ((what, requested), max) in axes.into_iter().zip(grid).zip(info.capabilities.max_grid) {
            if requested > max {
                return Err(Box::new(Error::LimitExceeded { what, requested: requested.into(), max: max.into() }));
            }
        }
        Ok(())
    }

    /// Runs a kernel's twin: where the values lie if that is the host, else on copies.
    fn run(&self, twin: &Twin, signature: &Signature, grid: [u32; 3], arguments: &[Argument<'_>], params: &[u8]) -> Result<()> {
        let run = Run { grid, workgroup: signature.workgroup, params };
        let accesses = signature.bindings.iter().map(|binding| binding.access);
        let device = &self.0.home.device;
        let lent = arguments.iter().map(|argument| argument.lend(&self.0.home)).collect::<Result<Vec<_>>>()?;
        #[allow(irrefutable_let_patterns, reason = "with one backend there is no other")]
        if let Device::Cpu(cpu) = device {
            let mut parts = Vec::with_capacity(arguments.len());
            for ((argument, storage), access) in arguments.iter().zip(&lent).zip(accesses) {
                parts.push((storage.on_the_cpu()?, argument.range.clone(), access));
            }
            return cpu.with_values(&parts, |values| twin.run(&run, values));
        }
        super::twin::outside()?;
        // One after the other: between one's copies and its results another's would be lost.
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut copies = Vec::with_capacity(arguments.len());
        let shared = device.shared_lane()?;
        for (argument, storage) in arguments.iter().zip(&lent) {
            // From an address that suits every number.
            let mut copy = zeroed::<u128>(argument.bytes().div_ceil(16) as usize)?;
            let fetch = device.fetch(&shared, storage, argument.range.start, argument.bytes())?;
            block_on(device.fetched(fetch, &mut bytemuck::cast_slice_mut(&mut copy)[..argument.bytes() as usize]))?;
            copies.push(copy);
        }
        let mut values = Vec::with_capacity(copies.len());
        for ((copy, argument), access) in copies.iter_mut().zip(arguments).zip(accesses.clone()) {
            let bytes = &mut bytemuck::cast_slice_mut(copy)[..argument.bytes() as usize];
            values.push(Values(if access == Access::Read { Part::Read(bytes) } else { Part::ReadWrite(bytes) }));
        }
        twin.run(&run, values);
        for (((argument, storage), copy), access) in arguments.iter().zip(&lent).zip(&copies).zip(accesses) {
            if access == Access::ReadWrite {
                let bytes = &bytemuck::cast_slice(copy)[..argument.bytes() as usize];
                device.store(&self.0.lane, storage, argument.range.start, bytes)?;
            }
        }
        Ok(())
    }
}

impl Event {
    /// Waits until the stream has come here.
    ///
    /// # Errors
    /// What went wrong on the way; the device's loss.
    pub async fn reached(&self) -> Result<()> {
        self.0.home.device.reached(&self.0.mark).await
    }

    /// [`reached`](Self::reached), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn reached_blocking(&self) -> Result<()> {
        block_on(self.reached())
    }

    /// Milliseconds of the device's clock from an earlier event of the same device to this one, once both are reached; of the host's
    /// clock where the device has none ([`Capabilities::device_clock`](crate::compute::Capabilities::device_clock)).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an event of another device; the device's loss.
    pub async fn elapsed_ms_since(&self, earlier: &Self) -> Result<f64> {
        if !Arc::ptr_eq(&earlier.0.home, &self.0.home) {
            return Err(elsewhere("an event", &earlier.0.home, &self.0.home));
        }
        earlier.reached().await?;
        self.reached().await?;
        self.0.home.device.elapsed_ms(&earlier.0.mark, &self.0.mark)
    }

    /// [`elapsed_ms_since`](Self::elapsed_ms_since), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn elapsed_ms_since_blocking(&self, earlier: &Self) -> Result<f64> {
        block_on(self.elapsed_ms_since(earlier))
    }
}

impl<T: Pod> Reading<T> {
    /// Waits for the values.
    ///
    /// # Errors
    /// What went wrong on the way; the device's loss; the host's memory.
    pub async fn finish(self) -> Result<Vec<T>> {
        let mut out = zeroed(self.count)?;
        if let Some(fetch) = self.fetch {
            self.home.device.fetched(fetch, bytemuck::cast_slice_mut(&mut out)).await?;
        }
        Ok(out)
    }

    /// [`finish`](Self::finish), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn finish_blocking(self) -> Result<Vec<T>> {
        block_on(self.finish())
    }
}

/// So many zeros, or an error with the number.
pub(super) fn zeroed<T: Pod>(count: usize) -> Result<Vec<T>> {
    let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
    let mut out = Vec::new();
    out.try_reserve_exact(count).map_err(|_| Box::new(Error::OutOfMemory { bytes, place: "the host" }))?;
    out.resize_with(count, T::zeroed);
    Ok(out)
}
