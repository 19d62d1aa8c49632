//! Memory and streams on the CPU natively: everything is done when a call returns. Kernels are twins, which `compute` runs.

use std::future::ready;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError, TryLockResult};
use std::time::Instant;

use super::{Buffer, Cpu, Kept};
use crate::backend::BoxFuture;
use crate::backend::compute::{Compute, Launch};
use crate::clock::signed_ms;
use crate::compute::{Access, KernelDefinition, Part, Signature, Values, outside};
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::host::HostSlice;
use crate::info::{Capabilities, Memory};

/// What a lock guards, unless a kernel that writes to it has it. A twin that panicked left numbers behind, as any other.
fn alone<T>(locked: TryLockResult<T>) -> Result<T> {
    match locked {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => Err(Error::internal("a buffer that a kernel writes to is bound twice")),
    }
}

/// One call at a time: what a kernel sees does not change under it, and no two wait for each other's buffers.
#[derive(Default)]
pub(super) struct Turn(Mutex<()>);

impl Turn {
    /// Waits for it; an error where a twin on this thread has it.
    fn take(&self) -> Result<MutexGuard<'_, ()>> {
        outside()?;
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Memory. Locked for a moment only, by who has the turn.
pub(crate) enum Storage {
    /// From an address that suits every number.
    Words(RwLock<Vec<u128>>),
    /// A tensor's, lent to a twin as a copy.
    Tensor(Extent, Arc<Kept>),
}

/// There are none: the CPU runs twins.
pub(crate) enum Program {}

/// All that is known of the CPU.
pub(super) fn capabilities() -> Capabilities {
    Capabilities {
        memories: &[Memory::Device, Memory::HostVisible, Memory::Pinned],
        max_workgroup_size: [u32::MAX; 3],
        max_workgroup_bytes: u32::MAX,
        max_grid: [u32::MAX; 3],
        max_storage_bindings: u32::MAX,
        max_params_bytes: u32::MAX,
        f16: false,
        f64: true,
        int8: true,
        atomics: &["i32", "u32", "i64", "u64"],
        ..Capabilities::LEAST
    }
}

impl Cpu {
    /// Calls a twin with parts of buffers, those that are read shared and those that are written alone.
    pub(crate) fn with_values(&self, parts: &[(&Storage, Range<u64>, Access)], run: impl FnOnce(Vec<Values<'_>>)) -> Result<()> {
        let _turn = self.turn.take()?;
        let mut copies = Vec::new();
        for (storage, ..) in parts {
            copies.push(match storage {
                Storage::Words(_) => None,
                Storage::Tensor(extent, kept) => Some(RwLock::new(words_of(*extent, kept)?)),
            });
        }
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for (at, ((storage, range, access), copy)) in parts.iter().zip(&copies).enumerate() {
            let words = match (storage, copy) {
                (_, Some(copy)) => copy,
                (Storage::Words(words), None) => words,
                (Storage::Tensor(..), None) => return Err(Error::internal("a tensor without its copy")),
            };
            match access {
                Access::Read => read.push((at, range, alone(words.try_read())?)),
                Access::ReadWrite => written.push((at, range, alone(words.try_write())?)),
            }
        }
        let part = |range: &Range<u64>| range.start as usize..range.end as usize;
        let views = read.iter().map(|(at, range, words)| (*at, Part::Read(&bytemuck::cast_slice(words)[part(range)])));
        let mut values: Vec<_> = views.collect();
        for (at, range, words) in &mut written {
            values.push((*at, Part::ReadWrite(&mut bytemuck::cast_slice_mut(words)[part(range)])));
        }
        values.sort_by_key(|(at, _)| *at);
        run(values.into_iter().map(|(_, part)| Values(part)).collect());
        for (at, _, words) in &written {
            if let Storage::Tensor(extent, kept) = parts[*at].0 {
                let mut values = self.take(*extent)?;
                let words = &bytemuck::cast_slice(words)[..extent.bytes() as usize];
                if extent.dtype == DType::Bool {
                    values
                        .bytes_mut()
                        .iter_mut()
                        .zip(bytemuck::cast_slice::<u8, u32>(words))
                        .for_each(|(truth, &word)| *truth = (word != 0).into());
                } else {
                    values.bytes_mut().copy_from_slice(words);
                }
                drop(kept.set(values));
            }
        }
        Ok(())
    }
}

/// A tensor's values, from an address that suits every number.
fn words_of(extent: Extent, kept: &Kept) -> Result<Vec<u128>> {
    let values = kept.get().ok_or_else(|| Error::internal("a tensor without values"))?;
    let (mut words, values) = (zeroed_words(extent.bytes())?, HostSlice::from(&**values));
    let all: &mut [u8] = &mut bytemuck::cast_slice_mut(&mut words)[..extent.bytes() as usize];
    if extent.dtype == DType::Bool && values.element_bytes() == 1 {
        bytemuck::cast_slice_mut::<u8, u32>(all).iter_mut().zip(values.bytes()).for_each(|(word, &truth)| *word = truth.into());
    } else {
        all.copy_from_slice(values.bytes());
    }
    Ok(words)
}

/// Zeros, so many bytes rounded up to whole words.
fn zeroed_words(bytes: u64) -> Result<Vec<u128>> {
    let count = bytes.div_ceil(16) as usize;
    let mut words = Vec::new();
    words.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes, place: "the host" })?;
    words.resize(count, 0);
    Ok(words)
}

impl Storage {
    fn words(&self) -> Result<&RwLock<Vec<u128>>> {
        match self {
            Self::Words(words) => Ok(words),
            Self::Tensor(..) => Err(Error::internal("a tensor is read and written by twins alone")),
        }
    }

    fn read(&self, at_bytes: u64, out: &mut [u8]) -> Result<()> {
        let words = self.words()?.read().unwrap_or_else(PoisonError::into_inner);
        out.copy_from_slice(&bytemuck::cast_slice(&words)[at_bytes as usize..][..out.len()]);
        Ok(())
    }

    fn write(&self, at_bytes: u64, bytes: &[u8]) -> Result<()> {
        let mut words = self.words()?.write().unwrap_or_else(PoisonError::into_inner);
        bytemuck::cast_slice_mut(&mut words)[at_bytes as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

fn bytes_of(count: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(count as usize).map_err(|_| Error::OutOfMemory { bytes: count, place: "the host" })?;
    bytes.resize(count as usize, 0);
    Ok(bytes)
}

impl Compute for Cpu {
    type Storage = Storage;
    type Program = Program;
    type Lane = ();
    type Mark = Instant;
    type Fetch = Vec<u8>;

    fn reserve(&self, _memory: Memory, bytes: u64) -> Result<Storage> {
        zeroed_words(bytes).map(|words| Storage::Words(RwLock::new(words)))
    }

    fn adopt(&self, tensor: &Buffer) -> Result<Storage> {
        Ok(Storage::Tensor(tensor.extent, Arc::clone(&tensor.values)))
    }

    fn compile(&self, definition: &KernelDefinition, _signature: &Signature) -> Result<Program> {
        Err(Error::internal(format!("the kernel {} reached the CPU without its twin", definition.name())))
    }

    fn lane(&self) -> Result<()> {
        Ok(())
    }

    fn shared_lane(&self) -> Result<()> {
        Ok(())
    }

    fn store(&self, _lane: &(), to: &Storage, at_bytes: u64, bytes: &[u8]) -> Result<()> {
        let _turn = self.turn.take()?;
        to.write(at_bytes, bytes)
    }

    fn fetch(&self, _lane: &(), from: &Storage, at_bytes: u64, bytes: u64) -> Result<Vec<u8>> {
        let mut out = bytes_of(bytes)?;
        let _turn = self.turn.take()?;
        from.read(at_bytes, &mut out)?;
        Ok(out)
    }

    fn fetched<'a>(&'a self, fetch: Vec<u8>, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        out.copy_from_slice(&fetch);
        Box::pin(ready(Ok(())))
    }

    fn copy(&self, _lane: &(), (from, from_bytes): (&Storage, u64), (to, to_bytes): (&Storage, u64), bytes: u64) -> Result<()> {
        let mut copy = bytes_of(bytes)?;
        let _turn = self.turn.take()?;
        from.read(from_bytes, &mut copy)?;
        to.write(to_bytes, &copy)
    }

    fn launch(&self, _lane: &(), program: &Program, _launch: &Launch<'_, Storage>) -> Result<()> {
        match *program {}
    }

    fn mark(&self, _lane: &()) -> Result<Instant> {
        Ok(Instant::now())
    }

    fn wait(&self, _lane: &(), _mark: &Instant) -> Result<()> {
        Ok(())
    }

    fn reached<'a>(&'a self, _mark: &'a Instant) -> BoxFuture<'a, Result<()>> {
        Box::pin(ready(Ok(())))
    }

    fn elapsed_ms(&self, from: &Instant, to: &Instant) -> Result<f64> {
        Ok(signed_ms(*from, *to))
    }
}
