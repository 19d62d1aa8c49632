//! Chooses a device. What is not chosen leaves its reason behind.

use crate::backend::device::{Device, Opened};
use crate::backend::{Backend, BoxFuture, How};
use crate::call::Call;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::host::HostSlice;
use crate::info::{BackendId, BackendState, OtherBackend};
use crate::ops::matmul::Matmul;
use crate::options::{Choice, Options};

/// Edge of the product by which a software GPU and the CPU are compared.
const RACE: u64 = 128;

/// How long a backend may take to open: several times what the slowest does, a shader compiler on a busy CPU included.
#[cfg(target_arch = "wasm32")]
const PATIENCE_MS: u32 = 20_000;

/// The device that the options ask for.
pub(crate) fn open(options: &Options) -> BoxFuture<'_, Result<Opened>> {
    Box::pin(choose(options))
}

async fn choose(options: &Options) -> Result<Opened> {
    #[cfg(not(target_arch = "wasm32"))]
    options.check()?;
    let candidates: &[BackendId] = match &options.backend {
        Choice::Auto => BackendId::ALL,
        Choice::Cpu => &[BackendId::Simd, BackendId::Scalar],
        Choice::Only(id) => std::slice::from_ref(id),
    };
    let auto = options.backend == Choice::Auto;
    #[cfg(not(target_arch = "wasm32"))]
    let by_speed = if auto { crate::tune::by_speed(options, candidates) } else { None };
    #[cfg(not(target_arch = "wasm32"))]
    let (candidates, measured) = (by_speed.as_deref().unwrap_or(candidates), by_speed.is_some());
    #[cfg(target_arch = "wasm32")]
    let measured = false;
    let mut others: Vec<OtherBackend> = Vec::new();
    let mut cpu: Option<(Opened, f64)> = None;
    for &id in candidates {
        // What was to race with a software GPU, and could not.
        if others.iter().any(|other| other.backend == id) {
            continue;
        }
        let opened = match try_open(id, options).await {
            Ok(opened) => opened,
            Err(other) => {
                others.push(other);
                continue;
            }
        };
        let reason = if auto && opened.info.is_software() {
            // A CPU that emulates a GPU may be slower than the CPU used plainly.
            if cpu.is_none() {
                cpu = fastest_cpu(options, &mut others).await;
            }
            let gflops = match race(&opened).await {
                Ok(gflops) => gflops,
                Err(error) => {
                    others.push(failed_race(id, &error));
                    continue;
                }
            };
            match &cpu {
                None => "the CPU could not be used plainly".to_owned(),
                Some((rival, plain)) => {
                    // In whole MFLOP/s: printing fractions would bring kilobytes of code along.
                    let (own, others_own) = ((gflops * 1e3) as u64, (plain * 1e3) as u64);
                    let figures = format!("software GPU: {own} MFLOP/s against {others_own} of {} at {RACE}³", rival.info.backend);
                    if gflops <= *plain {
                        others.push(OtherBackend::new(id, BackendState::Available, &figures, ""));
                        continue;
                    }
                    figures
                }
            }
        } else if others.iter().any(|other| other.state == BackendState::Available) {
            "faster here than a GPU emulated by the CPU".to_owned()
        } else if measured {
            "the first that works, in the order that tuning found".to_owned()
        } else if auto {
            "the first that works, of those that are preferred".to_owned()
        } else {
            "asked for".to_owned()
        };
        return Ok(settle(opened, reason, others, auto));
    }
    Err(others.pop().map_or_else(|| Error::internal("no backend to choose from"), Into::into))
}

fn settle(mut opened: Opened, reason: String, mut others: Vec<OtherBackend>, auto: bool) -> Opened {
    for &id in BackendId::ALL {
        if id != opened.info.backend && others.iter().all(|other| other.backend != id) {
            let why = if auto { "is preferred" } else { "was asked for" };
            others.push(OtherBackend::new(id, BackendState::Untried, &format!("{} {why}", opened.info.backend), ""));
        }
    }
    (opened.info.reason, opened.info.others) = (reason, others);
    opened
}

/// The faster of the CPU's backends that works, and how fast it is; what does not work is one of the others.
async fn fastest_cpu(options: &Options, others: &mut Vec<OtherBackend>) -> Option<(Opened, f64)> {
    for id in [BackendId::Simd, BackendId::Scalar] {
        // It was to race before.
        if others.iter().any(|other| other.backend == id) {
            continue;
        }
        match try_open(id, options).await {
            Ok(opened) => match race(&opened).await {
                Ok(gflops) => return Some((opened, gflops)),
                Err(error) => others.push(failed_race(id, &error)),
            },
            Err(other) => others.push(other),
        }
    }
    None
}

/// What did not come to the end of a race.
fn failed_race(id: BackendId, error: &Error) -> OtherBackend {
    OtherBackend::off(id, &format!("it failed at a small product ({error})"), "")
}

/// Opens a backend and has it compute a small product: a driver that cannot do that right, or never answers, is not used.
#[cfg(not(target_arch = "wasm32"))]
fn try_open(id: BackendId, options: &Options) -> BoxFuture<'_, Result<Opened, OtherBackend>> {
    Box::pin(open_and_test(id, options))
}

/// The same. A browser whose GPU process is ailing may leave a request without an answer.
#[cfg(target_arch = "wasm32")]
fn try_open(id: BackendId, options: &Options) -> BoxFuture<'_, Result<Opened, OtherBackend>> {
    Box::pin(async move {
        let opened = crate::clock::within(PATIENCE_MS, open_and_test(id, options)).await;
        opened.unwrap_or_else(|| {
            let reason = format!("it did not answer within {} s", PATIENCE_MS / 1000);
            Err(OtherBackend::off(id, &reason, "restart the browser, or update the graphics driver"))
        })
    })
}

/// What may help where a driver is at fault.
pub(crate) const UPDATE: &str =
    if cfg!(target_arch = "wasm32") { "update the browser or the graphics driver" } else { "update the graphics driver" };

async fn open_and_test(id: BackendId, options: &Options) -> Result<Opened, OtherBackend> {
    let opened = Device::open(id, options).await?;
    let fault = match self_test(&opened).await {
        Ok(true) => return Ok(opened),
        Ok(false) => "its driver computes a small product wrongly".to_owned(),
        Err(error) => format!("its driver fails at a small product ({error})"),
    };
    Err(OtherBackend::off(id, &fault, UPDATE))
}

/// A product of small whole numbers, which has one right result in every order of summation, with edges in all directions. Its sides are
/// multiples of four, as most are: what it compiles serves again.
async fn self_test(opened: &Opened) -> Result<bool> {
    let (m, k, n) = (36, 20, 44);
    let value = |i: usize| (i * 7 % 11) as f32 - 5.0;
    let a: Vec<f32> = (0..m * k).map(value).collect();
    let b: Vec<f32> = (0..k * n).map(value).collect();
    let c = compute(opened, &a, &b, &Matmul::new(m as u64, k as u64, n as u64)).await?;
    Ok((0..m * n).all(|i| c[i] == (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum::<f32>()))
}

/// GFLOP/s end to end at a small size, the first run left out.
async fn race(opened: &Opened) -> Result<f64> {
    let elements = vec![1.0f32; (RACE * RACE) as usize];
    let op = Matmul::new(RACE, RACE, RACE);
    compute(opened, &elements, &elements, &op).await?;
    let stopwatch = Stopwatch::start();
    compute(opened, &elements, &elements, &op).await?;
    Ok(2.0 * (RACE * RACE * RACE) as f64 / stopwatch.ms().max(1e-3) / 1e6)
}

async fn compute(opened: &Opened, a: &[f32], b: &[f32], op: &Matmul<'_>) -> Result<Vec<f32>> {
    let call = Call::new(op, HostSlice::from(a).into(), HostSlice::from(b).into())?;
    let started = call.start(opened, How { repeats: 1, timed: false, download: call.op.extent() })?;
    let finished = opened.device.finish(started.running).await?;
    finished.data.and_then(<f32 as crate::host::Element>::vec).ok_or_else(|| Error::internal("no result"))
}
