//! `lapidary bench`: how fast products are, device by device and shape by shape.

use std::io::Write;

use lapidary::{BackendId, Ceilings, Choice, DType, Gpu, Matmul, Options, Profile};
use serde_json::{Value, json};

use crate::arguments::{Bench, Common};
use crate::destination::Destination;
use crate::export;
use crate::failure::Failure;
use crate::judge::Extent;
use crate::measure::{Inputs, Measured, gflops, measure};
use crate::output::{self, Progress, counted};
use crate::status::{describe, standing};
use crate::table::{Align, Table, WIDTH, wrap};

/// A device to be measured.
struct Target {
    gpu: Gpu,
    backend: BackendId,
    adapter: Option<u32>,
    device: String,
    standing: &'static str,
    about: String,
    ceilings: Option<Ceilings>,
}

/// One shape on one device.
pub struct Row {
    pub backend: BackendId,
    /// Which of the backend's devices, if one was asked for.
    pub adapter: Option<u32>,
    pub device: String,
    /// Native or fallback.
    pub standing: &'static str,
    /// What the device can do at best.
    pub ceilings: Option<Ceilings>,
    pub shape: [u64; 3],
    /// Of the operands; the result is f32.
    pub dtype: DType,
    pub measured: Result<Measured, String>,
}

impl Row {
    /// What the resident product takes of the device's best: of its arithmetic, and of its memory, each element moved once.
    pub fn shares(&self) -> [Option<f64>; 2] {
        let (Ok(measured), Some(ceilings)) = (&self.measured, self.ceilings) else { return [None; 2] };
        let ms = measured.resident.median_ms();
        let [m, k, n] = self.shape.map(|side| side as f64);
        let gbs = (ms > 0.0).then(|| (self.dtype.bytes() as f64 * (m * k + k * n) + 4.0 * m * n) / ms / 1e6);
        // Matrix units are past what f32 can do.
        let gflops = gflops(self.shape, ms).filter(|_| self.dtype == DType::F32);
        [gflops.map(|gflops| gflops / ceilings.fma_gflops), gbs.map(|gbs| gbs / ceilings.copy_gbs)]
    }
}

pub fn run(common: &Common, settings: &Bench) -> Result<(), Failure> {
    let export = settings.export.as_ref().map(|(path, format)| Destination::new(path).map(|file| (file, *format))).transpose()?;
    let trace = settings.trace.as_deref().map(Destination::new).transpose()?;
    let mut targets = targets(common, settings)?;
    let progress = Progress::new();
    for target in &mut targets {
        progress.show(&format!("what {} can do at best", target.label()));
        // Without them rates stand alone: too little memory must not end a bench.
        target.ceilings = target.gpu.ceilings_blocking().inspect_err(|error| output::note(&format!("{}: {error}", target.label()))).ok();
    }
    let mut rows = Vec::new();
    let count = settings.shapes.len() * targets.len();
    for &shape in &settings.shapes {
        let [m, k, n] = shape;
        progress.bar(rows.len(), count, &format!("the matrices of {m}x{k}x{n}"));
        let inputs = match Inputs::new(shape, settings) {
            Ok(inputs) => inputs,
            // Others have been measured, or will be.
            Err(Failure::Failed(error)) => {
                rows.extend(targets.iter().map(|target| target.row(shape, settings.dtype, Err(error.clone()))));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        for target in &targets {
            progress.bar(rows.len(), count, &format!("{m}x{k}x{n} on {}", target.label()));
            rows.push(target.row(shape, settings.dtype, measure(&target.gpu, &inputs, settings).map_err(|error| error.to_string())));
            if trace.is_some() {
                target.profile(&inputs, settings.runs);
            }
        }
    }
    drop(progress);
    let about = settings_json(settings);
    // Each whatever becomes of the others: a file that cannot be written must not lose what is printed, nor a reader that goes away a file.
    let printed =
        if common.json { output::print_json("bench", export::fields(&rows, &about)) } else { output::print(&text(&targets, &rows)) };
    let exported = export.as_ref().map_or(Ok(()), |(file, format)| export::write(file, *format, &rows, &about));
    let traced = trace.as_ref().map_or(Ok(()), |file| write_trace(file, &targets));
    let wrong = rows.iter().filter(|row| row.measured.as_ref().is_ok_and(|measured| !measured.judgement.is_right())).count();
    let failed = rows.iter().filter(|row| row.measured.is_err()).count();
    let mut faults = Vec::new();
    if wrong > 0 {
        faults.push(format!("{} {} wrong", counted(wrong, "result"), if wrong == 1 { "is" } else { "are" }));
    }
    if failed > 0 {
        faults.push(format!("{} failed", counted(failed, "product")));
    }
    let judged = if faults.is_empty() { Ok(()) } else { Err(Failure::Failed(faults.join(", "))) };
    // That nobody reads what is printed is no fault, and hides none.
    exported.and(traced).and(judged).and(printed)
}

/// Writes what the products took, of all devices.
fn write_trace(file: &Destination, targets: &[Target]) -> Result<(), Failure> {
    let mut profile = Profile::default();
    for target in targets {
        let Profile { operations, left_out, .. } = target.gpu.profile();
        profile.operations.extend(operations);
        profile.left_out += left_out;
    }
    file.write(|out| out.write_all(profile.to_trace().as_bytes()))?;
    output::note(&format!("written to {}", file.path.display()));
    Ok(())
}

/// Opens what is to be measured.
fn targets(common: &Common, settings: &Bench) -> Result<Vec<Target>, Failure> {
    let options = &common.options;
    if !settings.all {
        let choices = if settings.backends.is_empty() { vec![options.backend] } else { settings.backends.clone() };
        return choices.into_iter().map(|backend| Target::open(Options { backend, ..options.clone() })).collect();
    }
    let mut targets = Vec::new();
    for device in lapidary::devices().found {
        if let Some(fault) = &device.fault {
            output::note(&format!("skipped {} {} ({}): {fault}", device.backend, device.index, device.name));
            continue;
        }
        let one = Options { backend: Choice::Only(device.backend), adapter: Some(device.index), ..options.clone() };
        match Target::open(one) {
            Ok(target) => targets.push(target),
            Err(Failure::NoDevice(text)) => output::note(&format!("skipped {} {}: {text}", device.backend, device.index)),
            Err(failure) => return Err(failure),
        }
    }
    Ok(targets)
}

impl Target {
    fn open(options: Options) -> Result<Self, Failure> {
        let adapter = options.adapter;
        let gpu = Gpu::open_blocking(options)?;
        let info = gpu.info()?;
        let (backend, standing, about) = (info.backend, standing(info.kind), describe(&info));
        Ok(Self { gpu, backend, adapter, device: info.name, standing, about, ceilings: None })
    }

    /// Products for a trace, apart from those that are measured: to time the parts costs something.
    fn profile(&self, inputs: &Inputs, runs: u32) {
        let [m, k, n] = inputs.shape;
        self.gpu.set_profiling(true);
        for _ in 0..runs {
            // What fails is a row of its own already.
            let _ = self.gpu.matmul_blocking(&inputs.a, &inputs.b, &Matmul::new(m, k, n));
        }
        self.gpu.set_profiling(false);
    }

    fn label(&self) -> String {
        self.adapter.map_or_else(|| self.backend.to_string(), |adapter| format!("{} {adapter}", self.backend))
    }

    fn row(&self, shape: [u64; 3], dtype: DType, measured: Result<Measured, String>) -> Row {
        let Self { backend, adapter, standing, ceilings, .. } = *self;
        Row { backend, adapter, device: self.device.clone(), standing, ceilings, shape, dtype, measured }
    }
}

fn settings_json(settings: &Bench) -> Value {
    let verify = match settings.verify {
        Extent::Auto => "auto",
        Extent::All => "all",
        Extent::None => "none",
    };
    let Bench { warmup, runs, min_ms, seed, dtype, .. } = settings;
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "dtype": dtype.name(),
        "warmup": warmup,
        "runs": runs,
        "min_time_ms": min_ms,
        "seed": seed,
        "verify": verify,
    })
}

fn text(targets: &[Target], rows: &[Row]) -> String {
    let mut text = String::new();
    for target in targets {
        let label = if target.adapter.is_some() { format!("{}: ", target.label()) } else { String::new() };
        for line in wrap(&format!("{label}{}", target.about), WIDTH) {
            text += &format!("{line}\n");
        }
        if let Some(Ceilings { copy_gbs, fma_gflops }) = target.ceilings {
            text += &format!("  at best {fma_gflops:.1} GFLOP/s of f32 multiply-adds, {copy_gbs:.1} GB/s of copies\n");
        }
    }
    let mut table = Table::new(&[
        ("m x k x n", Align::Right),
        ("device", Align::Left),
        ("ms", Align::Right),
        ("GFLOP/s", Align::Right),
        ("FMA/copy", Align::Right),
        ("to host", Align::Right),
        ("result", Align::Left),
    ]);
    for row in rows {
        let [m, k, n] = row.shape;
        let device = row.adapter.map_or_else(|| row.backend.to_string(), |adapter| format!("{} {adapter}", row.backend));
        let rate = |ms| gflops(row.shape, ms).map_or_else(|| "?".to_owned(), |gflops| format!("{gflops:.1}"));
        let [ms, resident, end_to_end, result] = match &row.measured {
            Err(error) => [String::new(), String::new(), String::new(), error.clone()],
            Ok(measured) => {
                let (resident, end_to_end) = (measured.resident.median_ms(), measured.end_to_end.median_ms());
                [format!("{resident:.3}"), rate(resident), rate(end_to_end), measured.judgement.to_string()]
            }
        };
        let shares = match row.shares() {
            [Some(fma), Some(copy)] => format!("{:.0}/{:.0} %", 100.0 * fma, 100.0 * copy),
            _ => String::new(),
        };
        table.row([format!("{m}x{k}x{n}"), device, ms, resident, shares, end_to_end, result]);
    }
    let legend =
        "ms and GFLOP/s: operands and result on the device; FMA/copy: what that is of its best; to host: GFLOP/s from host to host.";
    text + "\n" + &table.text() + "\n" + &wrap(legend, WIDTH).join("\n") + "\n"
}
