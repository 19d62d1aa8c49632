//! What a device can do at best, measured on the device itself: a rate means little without the one that nothing can exceed.

use std::sync::{Mutex, PoisonError};

use crate::backend::device::{Device, Opened};
use crate::backend::{Backend, Bound, How};
use crate::benchmark::{median, slopes};
use crate::dtype::Extent;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::host::HostSlice;
use crate::info::{BackendId, DeviceInfo};
use crate::plan::{Plan, ceiling};

/// What a device can do at best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ceilings {
    /// Thousand million bytes a second that copies of its memory read and write, each counted.
    pub copy_gbs: f64,
    /// Thousand million operations a second in f32, a fused multiply-add being two: no memory, no matrix units.
    pub fma_gflops: f64,
}

/// Samples of each, and the least that the shorter run of one takes.
const SAMPLES: u32 = 5;
const MIN_MS: f64 = 5.0;

/// What is copied: far more than caches hold, but on a CPU that emulates a GPU as much as takes a while.
const COPY_BYTES: u64 = 256 << 20;
const COPY_BYTES_OF_SOFTWARE: u64 = 16 << 20;

/// Workgroups and steps of the arithmetic.
const FMA: (u32, u32) = (4096, 128);
const FMA_OF_SOFTWARE: (u32, u32) = (32, 16);

/// Which device, by what wgpu reaches it, which its architecture tells, and how many threads the CPU's name tells.
type Key = (BackendId, String, String, String);

fn key(info: &DeviceInfo) -> Key {
    (info.backend, info.name.clone(), info.architecture.clone(), info.pci_address.clone())
}

static KNOWN: Mutex<Vec<(Key, Ceilings)>> = Mutex::new(Vec::new());

impl Gpu {
    /// What this device can do at best. Measured at the first call in a process, which takes some tenths of a second and up to half a
    /// gibibyte of the device's memory.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor) and [`matmul`](Self::matmul).
    pub async fn ceilings(&self) -> Result<Ceilings> {
        let mut opened = self.current()?;
        if opened.device.lost().is_some() {
            opened = self.reopen(&opened).await?;
        }
        let key = key(&opened.info);
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).iter().find(|(other, _)| *other == key).map(|(_, known)| *known);
        if let Some(known) = known {
            return Ok(known);
        }
        let measured = match &opened.device {
            Device::Cpu(cpu) => cpu.ceilings(),
            #[allow(unreachable_patterns, reason = "with no other backend there is no other")]
            _ => measure(&opened).await?,
        };
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).push((key, measured));
        Ok(measured)
    }

    /// [`ceilings`](Self::ceilings), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn ceilings_blocking(&self) -> Result<Ceilings> {
        crate::blocking::block_on(self.ceilings())
    }
}

async fn measure(opened: &Opened) -> Result<Ceilings> {
    let (device, info) = (&opened.device, &opened.info);
    let software = info.is_software();
    let bytes = if software { COPY_BYTES_OF_SOFTWARE } else { COPY_BYTES };
    let bytes = bytes.min(info.caps.max_binding_bytes).min(info.caps.max_buffer_bytes / 8) / 16 * 16;
    let zeros = vec![0.0f32; (bytes / 4) as usize];
    let (source, out) = (device.upload(&HostSlice::from(&zeros))?, device.upload(&HostSlice::from(&zeros))?);
    drop(zeros);
    let best_ms = async |plan: &Plan| {
        let run = async |repeats| {
            let running =
                device.submit(plan, &[Some(Bound::Buffer(&source))], &out, How { repeats, timed: true, download: Extent::f32(0) })?;
            device.finish(running).await.map(drop)
        };
        let (samples_ms, _) = slopes(SAMPLES, MIN_MS, async || Ok(()), run).await?;
        // A slope may be too small as well as too large.
        Ok::<_, Box<crate::error::Error>>(median(&samples_ms).max(1e-6))
    };
    let copy_ms = best_ms(&ceiling::copy(bytes, &info.caps)).await?;
    let (workgroups, steps) = if software { FMA_OF_SOFTWARE } else { FMA };
    // Each invocation writes a vec4.
    let workgroups = workgroups.min((bytes / 16 / 256) as u32).max(1);
    let (plan, operations) = ceiling::fma(workgroups, steps, &info.caps);
    let fma_ms = best_ms(&plan).await?;
    Ok(Ceilings { copy_gbs: 2.0 * bytes as f64 / copy_ms / 1e6, fma_gflops: operations as f64 / fma_ms / 1e6 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::options::Options;

    /// A handle of each GPU backend that is there; one that is not is said by name, and a failure if it is required.
    fn gpus() -> Vec<Gpu> {
        let open = |&backend: &BackendId| match Gpu::open_blocking(Options::only(backend)) {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                assert!(matches!(*error, Error::Unavailable { .. }), "{error}");
                assert!(!crate::environment::is_required(backend.name()), "required: {error}");
                eprintln!("skipped {backend}: {error}");
                None
            }
        };
        BackendId::ALL.iter().filter(|backend| backend.is_gpu()).filter_map(open).collect()
    }

    /// Rates are of work that was done.
    #[test]
    fn what_is_timed_computes_what_it_says() {
        for gpu in gpus() {
            let opened = gpu.current().unwrap();
            let (device, info) = (&opened.device, &opened.info);
            let values: Vec<f32> = (0..5000).map(|i| i as f32).collect();
            let (source, out) = (device.upload(&(&values).into()).unwrap(), device.upload(&(&vec![0.0; 5000]).into()).unwrap());
            let run = |plan: &Plan, elements| {
                let how = How { repeats: 2, timed: true, download: Extent::f32(elements) };
                let running = device.submit(plan, &[Some(Bound::Buffer(&source))], &out, how).unwrap();
                pollster::block_on(device.finish(running)).unwrap().data.unwrap().into_vec()
            };
            assert_eq!(run(&ceiling::copy(20_000, &info.caps), 5000), values, "{}", info.backend);
            let (plan, operations) = ceiling::fma(2, 3, &info.caps);
            let invocations = operations / (8 * 4 * 4 * 3 * 2);
            let sums = run(&plan, 4 * invocations);
            for (at, sum) in sums.iter().enumerate() {
                // 12 links of x ← 0.999 x + 0.001, each a sum of 8 chains that begin at the invocation's number and on.
                let chain = |start: f64| (0..12).fold(start, |x, _| 0.999 * x + 0.001);
                let first = (at / 4) as f64;
                // The kernel for CUDA has scalars, so that its neighbours begin one apart.
                let begin = |i: u32| {
                    if info.backend == BackendId::Cuda { first + f64::from(4 * i) + (at % 4) as f64 } else { first + f64::from(i) }
                };
                let exact: f64 = (0..8).map(|i| chain(begin(i))).sum();
                assert!((f64::from(*sum) - exact).abs() < 1e-3 * exact.abs().max(1.0), "{} at {at}: {sum}, {exact}", info.backend);
            }
        }
    }

    #[test]
    fn ceilings_are_measured_once() {
        let simd = || Gpu::open_blocking(Options { threads: Some(1), ..Options::only(BackendId::Scalar) }).unwrap();
        let first = simd().ceilings_blocking().unwrap();
        assert!(first.copy_gbs > 0.1 && first.fma_gflops > 0.1, "{first:?}");
        assert_eq!(simd().ceilings_blocking().unwrap(), first);
        for gpu in gpus() {
            let ceilings = gpu.ceilings_blocking().unwrap();
            println!("{}: {ceilings:?}", gpu.info().unwrap().name);
            assert!(ceilings.copy_gbs.is_finite() && ceilings.copy_gbs > 0.0, "{ceilings:?}");
            assert!(ceilings.fma_gflops.is_finite() && ceilings.fma_gflops > 0.0, "{ceilings:?}");
            assert_eq!(gpu.ceilings_blocking().unwrap(), ceilings);
        }
    }
}
