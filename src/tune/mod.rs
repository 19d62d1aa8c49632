//! Autotuning: each shape of the tiled kernel measured on this device, once, and the fastest for each class of results kept in a file that later
//! processes read.
//!
//! ```text
//! Gpu::tune ─► times of tiles ─► decide ─► <cache folder>/tuned-<backend>-<device>.json ─┬─► Options ─► Caps::tuned ─► plan
//!                                     └──► in the browser its cache storage              └─► which backend `auto` tries first
//! ```
//!
//! The defaults that ship are good enough never to need it.

#[cfg(not(target_arch = "wasm32"))]
mod file;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(not(target_arch = "wasm32"))]
use std::fs;
#[cfg(not(target_arch = "wasm32"))]
use std::io;
#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use file::by_speed;
#[cfg(not(target_arch = "wasm32"))]
#[cfg(any(feature = "vulkan", feature = "webgpu", all(feature = "cuda", any(target_os = "linux", target_os = "windows"))))]
pub(crate) use file::load;
#[cfg(target_arch = "wasm32")]
pub(crate) use web::Kept;

#[cfg(not(target_arch = "wasm32"))]
use crate::backend::device::Buffer;
use crate::backend::device::Opened;
use crate::backend::{Backend, Bound, How};
use crate::benchmark::slopes;
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
#[cfg(not(target_arch = "wasm32"))]
use crate::host::HostSlice;
use crate::ops::Op;
use crate::ops::matmul::Matmul;
use crate::plan::Plan;
use crate::plan::tuned::Tuned;

/// Counts up when the form changes in which results are kept.
const SCHEMA: u64 = 2;

/// Milliseconds of the fastest kernel at each class; None where none was measured.
type Best = [Option<f64>; Tuned::CLASSES];

/// Samples of each tile at each class, and the least that the shorter run of one takes.
const SAMPLES: u32 = 5;
const MIN_MS: f64 = 4.0;

/// What a tile has to be faster by than the default to take its place: less is noise.
const GAIN: f64 = 1.03;

/// The largest class that is measured where a CPU emulates the GPU.
const SOFTWARE_CLASSES: usize = if cfg!(target_arch = "wasm32") { 1 } else { 2 };

/// Where a product takes longer than this, larger ones are not measured: each class takes eight times as long as the one before.
const LONGEST_MS: f64 = 20.0;

/// A tile's time at a class.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Trial {
    /// The class, by which [`Tuned::side`] tells the square that was multiplied.
    pub class: usize,
    /// The tile, by its place in the planner's list; None for what the planner chooses by itself.
    pub tile: Option<u8>,
    /// The kernel that ran.
    pub kernel: String,
    /// Milliseconds of a product, operands and result on the device.
    pub ms: f64,
}

impl Trial {
    /// Takes a second time of it: a tile has to win with both, over the better one of the default.
    fn confirm(&mut self, ms: f64) {
        self.ms = if self.tile.is_some() { self.ms.max(ms) } else { self.ms.min(ms) };
    }
}

/// What was measured and what follows from it.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tuning {
    /// All times.
    pub trials: Vec<Trial>,
    /// The tiles that are faster than the defaults.
    pub tuned: Tuned,
    /// Where it is kept; None if the options name no place, or it could not be written.
    pub file: Option<PathBuf>,
    /// Why it could not be.
    pub fault: Option<String>,
}

/// The tiles that win by enough over what the planner chooses: the fastest of each class, the first of equals.
fn decide(trials: &[Trial]) -> Tuned {
    // A slope of nothing is of runs that something else held up.
    let of = |class, tile: bool| trials.iter().filter(move |trial| trial.class == class && trial.tile.is_some() == tile && trial.ms > 0.0);
    (0..Tuned::CLASSES).fold(Tuned::NONE, |tuned, class| {
        let default_ms = of(class, false).map(|trial| trial.ms).fold(f64::INFINITY, f64::min);
        let best = of(class, true).min_by(|one, other| one.ms.total_cmp(&other.ms));
        tuned.with(class, best.filter(|best| best.ms * GAIN < default_ms && default_ms.is_finite()).and_then(|best| best.tile))
    })
}

#[cfg(not(target_arch = "wasm32"))]
impl Gpu {
    /// Measures the shapes of the tiled kernel on this device, which takes some seconds, and keeps what is faster than the defaults in the folder
    /// of [`pipeline_cache`](crate::Options::pipeline_cache), from where handles that are opened later take it, and none that is open. Where several backends were measured,
    /// [`Choice::Auto`](crate::Choice::Auto) tries them in the order of their speed. Given the times, the result is always the same.
    ///
    /// # Errors
    /// [`Error::Unavailable`] on the CPU, which has nothing to choose; those of products.
    pub async fn tune(&self) -> Result<Tuning> {
        let mut opened = self.current()?;
        if opened.device.lost().is_some() {
            opened = self.reopen(&opened).await?;
        }
        let (trials, best) = measure(self, &opened, async || Ok(())).await?;
        let (tuned, tiles) = (decide(&trials), opened.device.tiles());
        let (mut file, mut fault) = (file::path(self.options(), &opened.info), None);
        if let Some(path) = &file {
            let text = file::write(&tuned, &best, &tiles, &opened.info, self.options());
            let kept = crate::files::replace(path, text.as_bytes());
            fault = kept.err().map(|error| format!("{} could not be written ({error})", path.display()));
        }
        file = file.filter(|_| fault.is_none());
        Ok(Tuning { trials, tuned, file, fault })
    }

    /// [`tune`](Self::tune), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn tune_blocking(&self) -> Result<Tuning> {
        crate::blocking::block_on(self.tune())
    }

    /// Forgets what tuning has found for this device; gives the file that was removed, if there was one.
    ///
    /// # Errors
    /// [`Error::Disposed`] after [`close`](Self::close); [`Error::InvalidArgument`] if the file is there and cannot be removed.
    pub fn clear_tuning(&self) -> Result<Option<PathBuf>> {
        let Some(file) = file::path(self.options(), &self.current()?.info) else { return Ok(None) };
        match fs::remove_file(&file) {
            Ok(()) => Ok(Some(file)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Box::new(Error::InvalidArgument {
                what: "the file that tuning was kept in".to_owned(),
                found: file.display().to_string(),
                expected: format!("it cannot be removed ({error})"),
            })),
        }
    }
}

/// A square matrix on the device.
#[cfg(not(target_arch = "wasm32"))]
async fn matrix(_: &Gpu, opened: &Opened, side: u64, seed: u64) -> Result<Buffer> {
    opened.device.upload(&HostSlice::from(&crate::random::matrix((side * side) as usize, seed)))
}

/// The same, made there: this module's memory would stay as large as it once was.
#[cfg(target_arch = "wasm32")]
async fn matrix(gpu: &Gpu, opened: &Arc<Opened>, side: u64, seed: u64) -> Result<crate::tensor::Tensor> {
    let (lowered, tensors) = crate::expr::Lowered::of(crate::expr::Expr::random_uniform(&[side, side], seed).node()?, opened)?;
    gpu.run(&lowered, &tensors, opened).await
}

/// The times of all tiles, and the fastest of each class, a maker's library included; `between` is awaited before each run.
async fn measure(gpu: &Gpu, opened: &Arc<Opened>, between: impl AsyncFn() -> Result<()>) -> Result<(Vec<Trial>, Best)> {
    let (device, info) = (&opened.device, &opened.info);
    let tiles = device.tiles().len() as u8;
    if tiles == 0 {
        let reason = "it chooses no tiles, so there is nothing to tune".to_owned();
        return Err(Box::new(Error::Unavailable { backend: info.backend, reason, remedy: "tune a GPU's own kernels".to_owned() }));
    }
    let (mut trials, mut best): (Vec<Trial>, Best) = (Vec::new(), [None; Tuned::CLASSES]);
    let classes = if info.is_software() { SOFTWARE_CLASSES } else { Tuned::CLASSES - 1 };
    for (class, best_ms) in best.iter_mut().enumerate().take(classes) {
        let side = Tuned::side(class);
        let elements = u64::from(side) * u64::from(side);
        let op = Op::Matmul(Matmul::new(side.into(), side.into(), side.into()).check([DType::F32; 2], elements, elements)?);
        let (a, b) = (matrix(gpu, opened, side.into(), class as u64).await?, matrix(gpu, opened, side.into(), class as u64).await?);
        #[cfg(target_arch = "wasm32")]
        let (a, b) = (a.buffer_on(opened)?, b.buffer_on(opened)?);
        #[cfg(not(target_arch = "wasm32"))]
        let (a, b) = (&a, &b);
        let time_ms = async |plan: &Plan| {
            let out = device.allocate(plan, &op)?;
            let run = async |repeats| {
                let operands = [Some(Bound::Buffer(a)), Some(Bound::Buffer(b)), None];
                let running = device.submit(
                    plan,
                    &operands,
                    &out,
                    How { repeats, timed: true, download: Extent { elements: 0, dtype: DType::F32 } },
                )?;
                device.finish(running).await.map(drop)
            };
            let (mut samples_ms, _) = slopes(SAMPLES, MIN_MS, &between, run).await?;
            samples_ms.sort_by(f64::total_cmp);
            Ok::<_, Box<Error>>(samples_ms[samples_ms.len() / 2])
        };
        // The default, all tiles, and then again the default and who seems to win over it: what held up one run may have made another look quick.
        let (mut tile, mut next, mut winner, mut again) = (None, 0, None, 0u32);
        loop {
            let plan = device.plan_tuned(&op, Tuned::NONE.with(class, tile))?;
            let kernel = plan.kernel();
            let known = trials.iter_mut().find(|trial| trial.class == class && trial.kernel == kernel);
            // A tile that has no room on this device, or that the planner chooses anyway, is known before.
            if known.is_none() || again > 0 {
                let ms = time_ms(&plan).await?;
                match known {
                    Some(trial) => trial.confirm(ms),
                    None => trials.push(Trial { class, tile, kernel, ms }),
                }
            }
            if next < tiles {
                tile = Some(next);
                next += 1;
            } else if again > 0 && tile.is_none() {
                tile = winner;
            } else {
                winner = decide(&trials).tiles()[class].filter(|tile| again >> tile & 1 == 0);
                let Some(tile_again) = winner else { break };
                again |= 1 << tile_again;
                tile = None;
            }
        }
        let mut fastest_ms = trials.iter().filter(|trial| trial.class == class).map(|trial| trial.ms).fold(f64::INFINITY, f64::min);
        let usual = device.plan(&op)?;
        if trials.iter().all(|trial| trial.kernel != usual.kernel()) {
            fastest_ms = fastest_ms.min(time_ms(&usual).await?);
        }
        *best_ms = Some(fastest_ms).filter(|ms| ms.is_finite());
        if fastest_ms > LONGEST_MS {
            break;
        }
    }
    Ok((trials, best))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::info::BackendId;
    use crate::options::{Options, PipelineCache};

    fn trial(class: usize, tile: Option<u8>, ms: f64) -> Trial {
        Trial { class, tile, kernel: String::new(), ms }
    }

    #[test]
    fn a_tile_has_to_win_by_more_than_noise() {
        let trials = [
            trial(1, None, 1.0),
            trial(1, Some(0), 0.98),
            trial(1, Some(1), 1.5),
            trial(3, None, 1.0),
            trial(3, Some(0), 0.5),
            trial(3, Some(2), 0.4),
            trial(3, Some(4), 0.4),
            trial(4, Some(1), 0.1),
            trial(5, None, f64::NAN),
            trial(5, Some(1), 0.1),
            trial(6, None, 1.0),
            trial(6, Some(1), 0.0),
        ];
        assert_eq!(decide(&trials), Tuned::NONE.with(3, Some(2)));
    }

    #[test]
    fn a_tile_has_to_win_twice() {
        let mut trials = [trial(2, None, 1.0), trial(2, Some(0), 0.5), trial(2, Some(1), 0.8)];
        assert_eq!(decide(&trials), Tuned::NONE.with(2, Some(0)));
        trials[1].confirm(1.4);
        assert_eq!(decide(&trials), Tuned::NONE.with(2, Some(1)));
        trials[0].confirm(0.81);
        trials[1].confirm(0.5);
        assert_eq!(decide(&trials), Tuned::NONE);
    }

    /// On each GPU that is there: a file is written, later handles plan by it, and go on without it.
    #[test]
    fn what_was_tuned_is_used_until_it_is_cleared() {
        let folder = std::env::temp_dir().join(format!("lapidary-tuned-{}", std::process::id()));
        for &backend in BackendId::ALL.iter().filter(|backend| backend.is_gpu()) {
            let options =
                Options { pipeline_cache: PipelineCache::Folder(folder.clone()), vendor_libraries: false, ..Options::only(backend) };
            let gpu = match Gpu::open_blocking(options.clone()) {
                Ok(gpu) => gpu,
                Err(error) => {
                    assert!(!crate::environment::is_required(backend.name()), "required: {error}");
                    eprintln!("skipped {backend}: {error}");
                    continue;
                }
            };
            let kernel = |gpu: &Gpu, side: usize| {
                let values = vec![1.0; side * side];
                let op = Matmul::new(side as u64, side as u64, side as u64);
                let report = gpu.matmul_report_blocking(&values, &values, &op).unwrap();
                assert!(report.data.iter().all(|&x| x == side as f32), "{backend} {}", report.kernel);
                report.kernel
            };
            let info = gpu.info().unwrap();
            let path = file::path(&options, &info).unwrap();
            fs::create_dir_all(&folder).unwrap();
            let mut kernels = Vec::new();
            // Every tile in turn, one that is not there, and a file that is none.
            let tiles = gpu.current().unwrap().device.tiles();
            let write = |tuned: &Tuned, tiles: &[String]| file::write(tuned, &[None; Tuned::CLASSES], tiles, &info, &options);
            for tile in 0..tiles.len() as u8 {
                fs::write(&path, write(&Tuned::NONE.with(1, Some(tile)), &tiles)).unwrap();
                kernels.push(kernel(&Gpu::open_blocking(options.clone()).unwrap(), 128));
            }
            let all = kernels.clone();
            kernels.sort();
            kernels.dedup();
            assert!(kernels.len() > 1, "{backend}: {all:?}");
            for text in [write(&Tuned::NONE.with(1, Some(0)), &["1x1x1".to_owned()]), "{".to_owned()] {
                fs::write(&path, text).unwrap();
                assert_eq!(kernel(&Gpu::open_blocking(options.clone()).unwrap(), 128), kernel(&gpu, 128), "{backend}");
            }
            assert_eq!((gpu.clear_tuning().unwrap(), path.exists(), gpu.clear_tuning().unwrap()), (Some(path.clone()), false, None));
            fs::create_dir(&path).unwrap();
            let error = gpu.clear_tuning().unwrap_err();
            assert!(error.to_string().contains(path.to_str().unwrap()), "{backend}: {error}");
        }
        let _ = fs::remove_dir_all(folder);
    }
}
