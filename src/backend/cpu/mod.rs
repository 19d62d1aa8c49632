//! The CPU: operands are read where they lie, and the work is done when [`submit`](Backend::submit) returns.

#[cfg(not(target_arch = "wasm32"))]
mod ceiling;
#[cfg(not(target_arch = "wasm32"))]
mod compute;
mod conv;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod cores;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod crew;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod few;
mod fft;
mod fold;
#[cfg(not(target_arch = "wasm32"))]
mod int8;
#[cfg(not(target_arch = "wasm32"))]
mod kept;
mod lanes;
mod map;
#[cfg(not(target_arch = "wasm32"))]
mod native;
mod normalize;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod number;
mod pool;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod product;
mod reduce;
#[cfg(not(target_arch = "wasm32"))]
mod scalar;
#[cfg(not(target_arch = "wasm32"))]
mod simd;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod small;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod transform;
mod turned;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod unpacked;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod vector;
#[cfg(target_arch = "wasm32")]
pub(crate) mod wasm;

#[cfg(not(target_arch = "wasm32"))]
use native as engine;
#[cfg(target_arch = "wasm32")]
use wasm as engine;

use std::sync::Arc;
#[cfg(target_arch = "wasm32")]
use std::sync::OnceLock;

#[cfg(not(target_arch = "wasm32"))]
use kept::Kept;

use super::pool::{Pool, Pooled};
use super::{Backend, Bound, BoxFuture, Finished, How, MemoryStats};
use crate::clock::Stopwatch;
#[cfg(not(target_arch = "wasm32"))]
use crate::devices::AdapterInfo;
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::info::{BackendId, Caps, DeviceInfo, DeviceKind, OtherBackend};
use crate::kernels::{Kernel, KernelId};
use crate::ops::Op;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::map::MOST_INPUTS;
use crate::options::Options;
use crate::plan::{self, Params, Plan, Slot};
#[cfg(target_arch = "wasm32")]
use crate::web::parts::{self, Part};

/// The most that is kept of what tensors held. New memory is slow to write at first, the system clearing it page by page.
const POOL_BYTES: u64 = if cfg!(target_arch = "wasm32") { 64 << 20 } else { 256 << 20 };

/// A path on the CPU.
pub(crate) struct Cpu {
    engine: engine::Engine,
    pool: Pool<engine::Memory>,
    #[cfg(not(target_arch = "wasm32"))]
    turn: compute::Turn,
}

/// A tensor's values: written by the upload or by what it is the result of, and natively by kernels of the caller's.
pub(crate) struct Buffer {
    extent: Extent,
    /// Shared with who is still at work on them.
    values: Arc<Kept>,
}

#[cfg(target_arch = "wasm32")]
type Kept = OnceLock<Pooled<engine::Memory>>;

/// A tensor's values while somebody reads them.
#[cfg(not(target_arch = "wasm32"))]
type Held<'a> = Arc<Pooled<engine::Memory>>;
#[cfg(target_arch = "wasm32")]
type Held<'a> = &'a Pooled<engine::Memory>;

/// Work that is done already, unless other threads are at it.
pub(crate) enum Running {
    Done(Finished),
    #[cfg(target_arch = "wasm32")]
    Underway(wasm::threads::Underway),
}

/// Opens the path, or says why it is not there.
pub(crate) async fn open(id: BackendId, options: &Options) -> Result<(Cpu, DeviceInfo), OtherBackend> {
    #[cfg(target_arch = "wasm32")]
    parts::load_backend(Part::Cpu, id).await?;
    open_engine(id, options).await
}

/// Leads into the part of the package.
#[inline(never)]
fn open_engine(id: BackendId, options: &Options) -> BoxFuture<'_, Result<(Cpu, DeviceInfo), OtherBackend>> {
    Box::pin(try_open(id, options))
}

async fn try_open(id: BackendId, options: &Options) -> Result<(Cpu, DeviceInfo), OtherBackend> {
    if id == BackendId::Simd && cfg!(not(feature = "simd")) {
        return Err(OtherBackend::off(id, "this build leaves it out", "build with the feature simd"));
    }
    let engine =
        engine::Engine::open(id == BackendId::Simd, options).await.map_err(|reason| OtherBackend::off(id, &reason, engine::REMEDY))?;
    let info = DeviceInfo {
        backend: id,
        name: engine.name(),
        vendor: String::new(),
        architecture: std::env::consts::ARCH.to_owned(),
        kind: DeviceKind::Cpu,
        #[cfg(not(target_arch = "wasm32"))]
        driver: String::new(),
        #[cfg(not(target_arch = "wasm32"))]
        uuid: None,
        #[cfg(not(target_arch = "wasm32"))]
        pci_address: String::new(),
        caps: Caps::UNLIMITED,
        #[cfg(not(target_arch = "wasm32"))]
        capabilities: compute::capabilities(),
        features: engine.features(),
        #[cfg(not(target_arch = "wasm32"))]
        notes: Vec::new(),
        reason: String::new(),
        others: Vec::new(),
        generation: 1,
    };
    let pool = Pool::new(options.pool_bytes.min(POOL_BYTES));
    #[cfg(not(target_arch = "wasm32"))]
    let cpu = Cpu { engine, pool, turn: compute::Turn::default() };
    #[cfg(target_arch = "wasm32")]
    let cpu = Cpu { engine, pool };
    Ok((cpu, info))
}

/// The CPU, which is one.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn list(id: BackendId) -> Result<Vec<AdapterInfo>, OtherBackend> {
    // There is nothing to open that would cost anything.
    let (_, info) = pollster::block_on(open(id, &Options::default()))?;
    Ok(vec![AdapterInfo::new(info, 0, None)])
}

impl Cpu {
    /// Memory of exactly so much, whatever the values are.
    fn take(&self, extent: Extent) -> Result<Pooled<engine::Memory>> {
        #[cfg_attr(not(target_arch = "wasm32"), expect(unused_mut, reason = "natively values are in one place"))]
        let mut taken = self.pool.take(kind(extent), extent.bytes(), || self.engine.kept(extent))?;
        #[cfg(target_arch = "wasm32")]
        taken.forget_copy();
        Ok(taken)
    }

    /// The same where threads can write to it while other calls are made.
    #[cfg(target_arch = "wasm32")]
    fn take_lasting(&self, extent: Extent) -> Result<Pooled<engine::Memory>> {
        // No size is that far from another and yet about as large.
        let mut taken = self.pool.take(kind(extent) ^ 1 << 28, extent.bytes(), || self.engine.lasting(extent))?;
        taken.forget_copy();
        Ok(taken)
    }

    /// Computes into an array for the host, or into what stays here.
    fn run(
        &self,
        out: &Buffer,
        how: How,
        stopwatch: Option<Stopwatch>,
        mut compute: impl FnMut(&mut engine::Memory) -> Result<()>,
    ) -> Result<Running> {
        let mut compute = |out: &mut engine::Memory| (0..how.repeats).try_for_each(|_| compute(out));
        let data = if !how.download.is_empty() {
            let mut given = engine::array(how.download)?;
            compute(&mut given)?;
            engine::into_array(given)
        } else {
            let mut kept = self.take(out.extent)?;
            compute(&mut kept)?;
            // A second run of a benchmark gives the same values again.
            let _ = out.values.set(kept);
            None
        };
        let kernel_ms = stopwatch.as_ref().map_or(0.0, Stopwatch::ms);
        Ok(Running::Done(Finished {
            data,
            kernel_ms,
            device_clock: false,
            #[cfg(not(target_arch = "wasm32"))]
            download_ms: None,
        }))
    }

    /// What an operation makes of tensors: it is there when this returns.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn make(&self, plan: &Plan, extent: Extent, inputs: &[Option<&Buffer>]) -> Result<Buffer> {
        if extent.is_empty() {
            return Ok(Buffer { extent, values: Arc::default() });
        }
        let [dispatch] = &plan.dispatches[..] else { return Err(Error::internal("a plan for the CPU in parts")) };
        let mut held = [const { None }; MOST_INPUTS];
        for (held, input) in held.iter_mut().zip(inputs) {
            *held = input.map(Buffer::values).transpose()?;
        }
        let inputs = held.each_ref().map(|held| held.as_ref().map(view));
        let mut kept = self.take(extent)?;
        match &dispatch.params {
            Params::Words(words) => self.operate(&dispatch.kernel, words.get(), &inputs, &mut kept)?,
            params => self.engine.matmul(params.matmul()?, &dispatch.kernel, &of_product(&inputs)?, &mut kept)?,
        }
        Ok(Buffer { extent, values: Arc::new(kept.into()) })
    }

    /// What is no product. On the web it is a part of the package that this leads into.
    #[inline(never)]
    fn operate(&self, kernel: &Kernel, words: &[u32], inputs: &[Option<engine::Operand<'_>>], out: &mut engine::Memory) -> Result<()> {
        match kernel.id {
            KernelId::NormalizeCpu => self.engine.normalize(kernel, words, inputs, out),
            KernelId::ConvCpu => self.engine.conv(words, inputs, out),
            KernelId::FftCpu => self.engine.fft(words, inputs, out),
            KernelId::PoolCpu => self.engine.pool(kernel, words, inputs, out),
            KernelId::ReduceCpu => self.engine.reduce(kernel, words, inputs, out),
            _ => self.engine.map(kernel, words, inputs, out),
        }
    }

    /// What the path is called now: threads may have failed since it was opened.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn name(&self) -> String {
        self.engine.name()
    }

    /// Whether whoever waits for a product that is done should let the page hear of threads.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn is_short(&self) -> bool {
        self.engine.is_short()
    }

    /// How fast it copies and computes at best.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn ceilings(&self) -> crate::ceilings::Ceilings {
        let (simd, threads) = self.engine.resources();
        crate::ceilings::Ceilings { copy_gbs: ceiling::copy_gbs(threads), fma_gflops: ceiling::fma_gflops(simd, threads) }
    }

    /// |op(A)|·|op(B)| and op(A)·op(B) in double precision, for the judging of results.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn engine(&self) -> &engine::Engine {
        &self.engine
    }
}

impl Buffer {
    fn values(&self) -> Result<Held<'_>> {
        self.values.get().ok_or_else(|| Error::internal("a tensor without values"))
    }
}

// What is not inlined leads into the part of the package that this backend is in.
impl Backend for Cpu {
    type Buffer = Buffer;
    type Running = Running;

    #[inline(never)]
    fn plan(&self, op: &Op) -> Result<Plan> {
        match op {
            Op::Matmul(problem) => {
                problem.check_plain()?;
                Ok(plan::matmul::cpu(problem, self.engine.variant(), |problem| self.engine.threads(problem)))
            }
            op => plan::operations::cpu(op, self.engine.variant()),
        }
    }

    #[inline(never)]
    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        let values = engine::readable(&engine::given(values))?;
        let extent = Extent { elements: values.len(), dtype: values.dtype() };
        let mut copy = self.take(extent)?;
        engine::copy(&values, &mut copy);
        Ok(Buffer { extent, values: Arc::new(copy.into()) })
    }

    #[inline(never)]
    fn allocate(&self, _plan: &Plan, op: &Op) -> Result<Buffer> {
        Ok(Buffer { extent: op.extent(), values: Arc::default() })
    }

    #[inline(never)]
    fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        let stopwatch = how.timed.then(Stopwatch::start);
        let held = operands.iter().map(held).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<_> = operands.iter().zip(&held).map(|(operand, held)| host(operand.as_ref(), held.as_ref())).collect();
        let [dispatch] = &plan.dispatches[..] else { return Err(Error::internal("a plan for the CPU in parts")) };
        if let Params::Words(words) = &dispatch.params {
            return self.run(out, how, stopwatch, |out| self.operate(&dispatch.kernel, words.get(), &inputs, out));
        }
        let params = dispatch.params.matmul()?;
        let inputs = of_product(&inputs)?;
        #[cfg(target_arch = "wasm32")]
        if dispatch.grid[0] > 1 {
            let mut held = [const { None }; 3];
            for (held, operand) in held.iter_mut().zip(operands) {
                if let Some(Bound::Buffer(buffer)) = operand {
                    *held = Some(Arc::clone(&buffer.values));
                }
            }
            let mut target = if how.download.is_empty() {
                wasm::threads::Target::Kept(Arc::clone(&out.values), self.take_lasting(out.extent)?)
            } else {
                wasm::threads::Target::Host(engine::array(how.download)?)
            };
            let after = engine::After::new(params, inputs[3].as_ref())?;
            let inputs = self.engine.lasting_all(inputs, how.repeats > 1)?;
            let job = self.engine.shared_job(params, &dispatch.kernel, &inputs, target.memory());
            return Ok(Running::Underway(self.engine.share(&job, dispatch.grid[0], how.repeats, (target, held), after, stopwatch)));
        }
        self.run(out, how, stopwatch, |out| self.engine.matmul(params, &dispatch.kernel, &inputs, out))
    }

    async fn finish(&self, running: Running) -> Result<Finished> {
        match running {
            Running::Done(finished) => {
                #[cfg(target_arch = "wasm32")]
                self.engine.hear().await;
                Ok(finished)
            }
            #[cfg(target_arch = "wasm32")]
            Running::Underway(underway) => underway.finish().await,
        }
    }

    async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        if extent.is_empty() {
            return Ok(HostVec::empty(extent.dtype));
        }
        let mut copy = engine::array(extent)?;
        let values = buffer.values()?;
        engine::copy(&view(&values), &mut copy);
        engine::into_array(copy).ok_or_else(|| Error::internal("a copy that stays here"))
    }

    async fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    fn trim(&self) {
        self.pool.trim();
    }
}

/// What is kept for reuse serves those of the same number and type: almost as many would not do.
fn kind(extent: Extent) -> u32 {
    extent.elements as u32 ^ (extent.dtype as u32) << 29
}

/// A tensor's values, for as long as they are read.
fn held<'a>(operand: &'a Option<Bound<'_, Buffer>>) -> Result<Option<Held<'a>>> {
    match operand {
        Some(Bound::Buffer(buffer)) => buffer.values().map(Some),
        _ => Ok(None),
    }
}

/// An operand's values where they lie.
fn host<'a>(operand: Option<&'a Bound<'_, Buffer>>, held: Option<&'a Held<'_>>) -> Option<engine::Operand<'a>> {
    match operand {
        Some(Bound::Host(values)) => Some(engine::given(values)),
        _ => held.map(view),
    }
}

/// Those of a product: A, B, C and the bias.
fn of_product<'a>(inputs: &'a [Option<engine::Operand<'_>>]) -> Result<[Option<engine::Operand<'a>>; 4]> {
    let input = |slot: Slot| inputs.get(slot.index() - Slot::A.index()).and_then(Option::as_ref).map(engine::readable).transpose();
    Ok([input(Slot::A)?, input(Slot::B)?, input(Slot::C)?, input(Slot::BIAS)?])
}

/// Values where they lie.
fn view<'a>(values: &'a Held<'_>) -> engine::Operand<'a> {
    engine::borrow(values)
}
