//! How fast a kernel is by itself, operands and result staying on the device.

use crate::backend::{Backend, How};
use crate::call::{Call, Operand};
use crate::clock::Stopwatch;
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::info::BackendId;
use crate::ops::matmul::Matmul;

/// The most products in the shorter run.
const MOST: u32 = 4096;

/// The most samples that are taken again because no time was left in them.
const AGAIN: u32 = 10;

/// Times of a kernel alone.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Benchmark {
    /// What computed.
    pub backend: BackendId,
    /// The kernel.
    pub kernel: String,
    /// Milliseconds a product, one number a sample.
    pub samples_ms: Vec<f64>,
    /// Products in the shorter of the two runs that give a sample.
    pub dispatches: u32,
}

impl Benchmark {
    /// The middle sample, or the mean of the two in the middle.
    pub fn median_ms(&self) -> f64 {
        median(&self.samples_ms)
    }
}

/// The middle one, or the mean of the two in the middle; NaN of none. Without a sort, whose code every page that measures would download.
pub(crate) fn median(samples: &[f64]) -> f64 {
    // The element below which so many others are; ties go by place.
    let ranked = |rank: usize| {
        let below = |i: usize| (0..samples.len()).filter(|&j| (samples[j], j) < (samples[i], i)).count();
        (0..samples.len()).find(|&i| below(i) == rank).map_or(f64::NAN, |i| samples[i])
    };
    (ranked(samples.len().saturating_sub(1) / 2) + ranked(samples.len() / 2)) / 2.0
}

/// Which run comes next, by what the last one took. A sample is the slope between d and 3 d products in one submission, so that what a
/// submission costs drops out; d is such that the shorter run takes a given time.
struct Schedule {
    min_ms: f64,
    /// d.
    dispatches: u32,
    stage: Stage,
    samples_ms: Vec<f64>,
    /// Samples that were taken again.
    again: u32,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Compiles what is not compiled.
    WarmUp,
    /// Looks whether d is large enough: twice, because a run that something else held up would say so too early.
    Search(Option<f64>),
    Short,
    /// With what the short run took.
    Long(f64),
}

impl Schedule {
    fn new(min_ms: f64) -> Self {
        Self { min_ms, dispatches: 1, stage: Stage::WarmUp, samples_ms: Vec::new(), again: 0 }
    }

    /// Products in the next run.
    fn repeats(&self) -> u32 {
        if matches!(self.stage, Stage::Long(_)) { self.dispatches * 3 } else { self.dispatches }
    }

    /// Takes in that the run is done.
    fn took(&mut self, ms: f64) {
        self.stage = match self.stage {
            Stage::WarmUp => Stage::Search(None),
            Stage::Search(None) => Stage::Search(Some(ms)),
            Stage::Search(Some(first)) => {
                let ms = ms.min(first);
                if ms >= self.min_ms || self.dispatches >= MOST {
                    Stage::Short
                } else {
                    // At least twice as many, at most sixteen times: the cost of a submission is part of what was measured.
                    let wanted = f64::from(self.dispatches) * self.min_ms / ms.max(0.01);
                    self.dispatches = (wanted.ceil() as u32).clamp(self.dispatches * 2, self.dispatches * 16).min(MOST);
                    Stage::Search(None)
                }
            }
            Stage::Short => Stage::Long(ms),
            Stage::Long(short) => {
                // If the shorter run took as long, something held it up.
                if ms > short || self.again == AGAIN {
                    self.samples_ms.push(((ms - short) / f64::from(self.dispatches * 2)).max(0.0));
                } else {
                    self.again += 1;
                }
                Stage::Short
            }
        };
    }
}

/// So many samples of what one repetition of `run` takes, awaiting `between` before each run, and the repetitions of the shorter runs.
pub(crate) async fn slopes(
    samples: u32,
    min_ms: f64,
    between: impl AsyncFn() -> Result<()>,
    run: impl AsyncFn(u32) -> Result<()>,
) -> Result<(Vec<f64>, u32)> {
    let mut schedule = Schedule::new(min_ms);
    while schedule.samples_ms.len() < samples.max(1) as usize {
        between().await?;
        let clock = Stopwatch::start();
        run(schedule.repeats()).await?;
        schedule.took(clock.ms());
    }
    Ok((schedule.samples_ms, schedule.dispatches))
}

impl Gpu {
    /// Times the kernel alone, operands and result staying on the device. Each sample is the slope between d and 3 d products in one submission, so
    /// what a submission costs drops out; d is such that the shorter run takes `min_ms`.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul), and [`Error::InvalidOption`] for no samples, or a time that is none.
    pub async fn benchmark(
        &self,
        a: impl Into<Operand<'_>>,
        b: impl Into<Operand<'_>>,
        op: &Matmul<'_>,
        samples: u32,
        min_ms: f64,
    ) -> Result<Benchmark> {
        // The package has seen to what JavaScript asks for.
        #[cfg(not(target_arch = "wasm32"))]
        for (option, value, is_right, expected) in [
            ("samples", f64::from(samples), samples > 0, "at least one is taken"),
            ("min_ms", min_ms, min_ms >= 0.0 && min_ms.is_finite(), "it must be a time in milliseconds"),
        ] {
            if !is_right {
                let (option, value, expected) = (option.to_owned(), value.to_string(), expected.to_owned());
                return Err(Box::new(Error::InvalidOption { option, value, expected }));
            }
        }
        self.benchmark_between([a.into(), b.into()], op, samples, min_ms, async || Ok(())).await
    }

    /// The same, awaiting `between` before each run; its error ends the benchmark.
    pub(crate) async fn benchmark_between(
        &self,
        mut operands: [Operand<'_>; 2],
        op: &Matmul<'_>,
        samples: u32,
        min_ms: f64,
        between: impl AsyncFn() -> Result<()>,
    ) -> Result<Benchmark> {
        let mut opened = self.current()?;
        if opened.device.lost().is_some() {
            opened = self.reopen(&opened).await?;
        }
        // Refuses what is wrong before anything is sent.
        let [a, b] = operands.clone();
        let mut kernel = opened.device.plan(&Call::new(op, a, b)?.op)?.kernel();
        for operand in &mut operands {
            // Host operands go to the device once, as they are stored.
            if let Operand::Host(values) = operand
                && !opened.device.reads_host_memory()
            {
                let length = values.len();
                *operand = Operand::Tensor(self.begin_tensor(values.clone(), vec![length])?.finish().await?);
            }
        }
        let [a, b] = operands;
        let call = Call::new(op, a, b)?;
        let nothing = Extent { elements: 0, ..call.op.extent() };
        let run = async |repeats| {
            let started = call.start(&opened, How { repeats, timed: true, download: nothing })?;
            opened.device.finish(started.running).await.map(drop)
        };
        let mut measured = slopes(samples, min_ms, &between, &run).await;
        if matches!(&measured, Err(error) if matches!(**error, Error::OutOfMemory { .. })) {
            // As products do it: with what was kept for others, and without threads that failed. All is measured anew, by what computes now.
            opened.device.trim();
            kernel = opened.device.plan(&call.op)?.kernel();
            measured = slopes(samples, min_ms, &between, &run).await;
        }
        let (samples_ms, dispatches) = measured?;
        Ok(Benchmark { backend: opened.info.backend, kernel, samples_ms, dispatches })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that takes 3 ms for a submission and 0.5 ms for a product, and now and then is held up.
    #[test]
    fn the_cost_of_a_submission_drops_out() {
        let mut schedule = Schedule::new(20.0);
        let mut runs = 0;
        while schedule.samples_ms.len() < 4 {
            let held_up = if runs % 2 == 0 { 40.0 } else { 0.0 };
            let searching = matches!(schedule.stage, Stage::WarmUp | Stage::Search(_));
            schedule.took(3.0 + 0.5 * f64::from(schedule.repeats()) + if searching { held_up } else { 0.0 });
            runs += 1;
        }
        assert!(schedule.dispatches >= 34, "{}", schedule.dispatches);
        assert!(schedule.samples_ms.iter().all(|ms| (ms - 0.5).abs() < 1e-9), "{:?}", schedule.samples_ms);
    }

    #[test]
    fn a_sample_whose_shorter_run_was_held_up_is_taken_again() {
        let mut schedule = Schedule::new(1.0);
        for held_up in [0.0, 0.0, 0.0, 40.0, 0.0, 0.0, 0.0] {
            schedule.took(held_up + f64::from(schedule.repeats()));
        }
        assert_eq!(schedule.samples_ms, [1.0]);
        // Not for ever: a device's clock may not tell such short times.
        for _ in 0..2 * (AGAIN + 1) {
            schedule.took(0.0);
        }
        assert_eq!(schedule.samples_ms[1..], [0.0, 0.0]);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let of = |samples: &[f64]| {
            Benchmark { backend: BackendId::Simd, kernel: String::new(), samples_ms: samples.to_vec(), dispatches: 1 }.median_ms()
        };
        assert_eq!((of(&[3.0, 1.0, 2.0]), of(&[4.0, 1.0, 1.0, 2.0]), of(&[5.0, 5.0])), (2.0, 1.5, 5.0));
    }
}
