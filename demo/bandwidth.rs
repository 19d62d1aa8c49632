//! How fast expressions move memory beside a copy of it, which nothing can exceed.
//!
//! `cargo run --profile native --example bandwidth -- [--backend NAME] [--own] [--mib N] [--only NAME[,NAME ...]]`; `--own` leaves makers' libraries
//! out, `--only` all expressions that have none of these in their names.

use std::time::Instant;

use lapidary::{BackendId, Choice, DType, Expr, Gpu, Options, Padding};

type Failure = Box<dyn std::error::Error>;

/// Runs of each, of which the fastest counts, and how long they take at least: GPUs that have little to do lower their clocks.
const RUNS: usize = 12;
const RUNS_MS: u128 = 40;

fn main() -> Result<(), Failure> {
    let (mut backend, mut own, mut mib, mut only) = (Choice::Auto, false, 256u64, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--own" => own = true,
            "--mib" => mib = arguments.next().unwrap_or_default().parse()?,
            "--only" => only = arguments.next().unwrap_or_default(),
            "--backend" => {
                let name = arguments.next().unwrap_or_default();
                backend = Choice::Only(BackendId::from_name(&name).ok_or_else(|| format!("there is no backend {name}"))?);
            }
            other => return Err(format!("{other} is none of --backend, --own, --mib and --only").into()),
        }
    }
    let gpu = Gpu::open_blocking(Options { backend, vendor_libraries: !own, profile: true, ..Options::default() })?;
    let info = gpu.info()?;
    let copy_gbs = gpu.ceilings_blocking()?.copy_gbs;
    println!("{} {}: a copy moves {copy_gbs:.0} GB/s", info.backend, info.name);
    println!("{:>22} {:>9} {:>8} {:>9} {:>6} {:>9}  kernel", "", "MiB", "ms", "GB/s", "%", "first ms");
    let columns = 4096u64;
    let rows = mib * (1 << 20) / 4 / columns;
    // One matrix is on its way to the device; the others are computed there.
    let noise = Expr::index(&[rows, columns]).mul(2_654_435_769u32).cast(DType::F32).mul(1.0 / 2_147_483_648.0).sub(1.0);
    let a = Expr::from(gpu.evaluate_blocking(&noise)?);
    let b = Expr::from(gpu.evaluate_blocking(&a.flip(None))?);
    let half = Expr::from(gpu.evaluate_blocking(&a.cast(DType::F16))?);
    let odd = Expr::from(gpu.evaluate_blocking(&a.slice(1, 0, columns as i64 - 1, 1))?);
    // Rows and columns both of which are no multiple of anything.
    let side = (rows * columns).isqrt() as i64 - 1;
    let uneven = Expr::from(gpu.evaluate_blocking(&a.reshape(&[-1]).slice(0, 0, side * side, 1).reshape(&[side, side]))?);
    let uneven_half = Expr::from(gpu.evaluate_blocking(&uneven.cast(DType::F16))?);
    // As many rows, or columns, of so many as there are.
    let many = |values: &Expr, shape: [i64; 2]| {
        let size = shape[0].max(shape[1]);
        let some = values.reshape(&[-1]).slice(0, 0, (rows * columns) as i64 / size * size, 1).reshape(&shape);
        gpu.evaluate_blocking(&some).map_or_else(|_| some, Expr::from)
    };
    let short = |values: &Expr, size: i64| many(values, [-1, size]);
    let low = |values: &Expr, size: i64| many(values, [size, -1]);
    let (row, column) = (a.slice(0, 0, 1, 1), a.slice(1, 0, 1, 1));
    let signals = ((rows * columns) >> 21).max(1);
    let signals = Expr::index(&[signals, 1 << 20, 2]).mul(2_654_435_769u32).cast(DType::F32).mul(1.0 / 2_147_483_648.0).sub(1.0);
    let signals = Expr::from(gpu.evaluate_blocking(&signals)?);
    let signal = Expr::from(gpu.evaluate_blocking(&signals.slice(0, 0, 1, 1))?);
    let (row, column) = (Expr::from(gpu.evaluate_blocking(&row)?), Expr::from(gpu.evaluate_blocking(&column)?));
    let cases = [
        ("add", a.add(&b)),
        ("relu", a.relu()),
        ("exp", a.exp()),
        ("gelu", a.gelu()),
        ("gelu tanh", a.gelu_tanh()),
        ("chain", a.mul(0.5).add(&b).relu().sub(1.0)),
        ("long chain", a.add(&b).tanh().mul(&a).sigmoid().sub(&b).softplus().exp()),
        ("bias", a.add(&row)),
        ("bias of rows", a.mul(&column)),
        ("f32 to f16", a.cast(DType::F16)),
        ("f16 to f32", half.cast(DType::F32)),
        ("f16 add", half.add(half.flip(Some(&[0])))),
        ("f16 relu", half.relu()),
        ("less", a.less(&b)),
        ("slice", a.slice(1, 4, columns as i64, 1)),
        ("slice, odd", a.slice(1, 1, columns as i64, 1)),
        ("odd rows", odd.relu()),
        ("every second", a.slice(1, 0, columns as i64, 2)),
        ("flip", a.flip(Some(&[1]))),
        ("transpose", a.transpose(None)),
        ("transpose f16", half.transpose(None)),
        ("transpose, odd", odd.transpose(None)),
        ("transpose uneven", uneven.transpose(None)),
        ("transpose uneven f16", uneven_half.transpose(None)),
        ("transpose n x 3", short(&a, 3).transpose(None)),
        ("transpose n x 10", short(&a, 10).transpose(None)),
        ("transpose 10 x n", low(&a, 10).transpose(None)),
        ("transpose f16 n x 10", short(&half, 10).transpose(None)),
        ("add transposed", a.reshape(&[rows as i64 / 4, -1]).transpose(None).add(b.reshape(&[-1, rows as i64 / 4]))),
        ("permute 4-d", a.reshape(&[-1, 64, 64, 64]).transpose(Some(&[0, 2, 1, 3]))),
        ("pad", a.pad(&[[1, 1], [1, 1]], Padding::Constant(0.0))),
        ("pad images", a.reshape(&[-1, 256, 256]).pad(&[[0, 0], [1, 1], [1, 1]], Padding::Constant(0.0))),
        ("concat", Expr::concat(&[a.clone(), b.clone()], 1)),
        ("sum", a.sum(None, false)),
        ("sum of rows", a.sum(Some(&[1]), false)),
        ("sum of columns", a.sum(Some(&[0]), false)),
        ("sum of 64s", a.reshape(&[-1, 64]).sum(Some(&[1]), false)),
        ("sum of 10s", short(&a, 10).sum(Some(&[1]), false)),
        ("sum of 33s", short(&a, 33).sum(Some(&[1]), false)),
        ("var of 33s", short(&a, 33).var(Some(&[1]), false, 1.0)),
        ("argmax of 33s", short(&a, 33).argmax(Some(&[1]), false)),
        ("sum, odd rows", odd.sum(Some(&[1]), false)),
        ("sum of 3s", a.reshape(&[-1, 4]).slice(1, 0, 3, 1).sum(Some(&[1]), false)),
        ("sum f16", half.sum(Some(&[1]), false)),
        ("sum, few rows", a.reshape(&[4, -1]).sum(Some(&[1]), false)),
        ("sum of 4 columns", a.reshape(&[-1, 4]).sum(Some(&[0]), false)),
        ("sum of chain", a.mul(&b).add(1.0).relu().sum(None, false)),
        ("max", a.amax(None, false)),
        ("max f16", half.amax(Some(&[1]), false)),
        ("var f16", half.var(Some(&[1]), false, 1.0)),
        ("argmax of rows", a.argmax(Some(&[1]), false)),
        ("var of rows", a.var(Some(&[1]), false, 1.0)),
        ("norm", a.norm_l2(None, false)),
        ("log sum exp", a.log_sum_exp(Some(&[1]), false)),
        ("softmax", a.softmax(1)),
        ("softmax of 512", a.reshape(&[-1, 512]).softmax(1)),
        ("softmax of 10s", short(&a, 10).softmax(1)),
        ("softmax of 16s", short(&a, 16).softmax(1)),
        ("softmax of 33s", short(&a, 33).softmax(1)),
        ("layer norm of 33s", short(&a, 33).layer_norm(&[1], None, None, 1e-5)),
        ("softmax f16", half.softmax(1)),
        ("softmax, odd", odd.softmax(1)),
        ("softmax, columns", a.reshape(&[-1, 256, 512]).softmax(1)),
        ("softmax, long columns", a.reshape(&[-1, 1024, 512]).softmax(1)),
        ("layer norm, columns", a.reshape(&[-1, 256, 512]).layer_norm(&[1], None, None, 1e-5)),
        ("softmax, long rows", a.reshape(&[-1, 1 << 20]).softmax(1)),
        ("layer norm, long rows", a.reshape(&[-1, 1 << 20]).layer_norm(&[1], None, None, 1e-5)),
        ("log softmax", a.log_softmax(1)),
        ("layer norm", a.layer_norm(&[1], Some(&row), Some(&row), 1e-5)),
        ("rms norm", a.rms_norm(&[1], Some(&row), 1e-5)),
        ("fft of 2^20", signal.fft(1, None)),
        ("ffts of 2^20", signals.fft(1, None)),
        ("ffts of 1024", a.reshape(&[-1, 1024, 2]).fft(1, None)),
    ];
    for (name, expr) in cases.into_iter().filter(|(name, _)| only.split(',').any(|part| name.contains(part))) {
        gpu.clear_profile();
        let start = Instant::now();
        match gpu.evaluate_blocking(&expr) {
            Err(error) if matches!(error.code(), "unavailable" | "limit_exceeded" | "out_of_memory") => {
                println!("{name:>22} {error}");
                continue;
            }
            done => drop(done?),
        }
        let first_ms = start.elapsed().as_secs_f64() * 1e3;
        let (start, mut runs) = (Instant::now(), 0);
        while runs < RUNS || start.elapsed().as_millis() < RUNS_MS {
            drop(gpu.evaluate_blocking(&expr)?);
            runs += 1;
        }
        let operations = gpu.profile().operations;
        // Most expressions are one operation.
        let each = operations.len() / (runs + 1);
        let ms = |run: usize| operations[run * each..][..each].iter().map(|operation| operation.compute.ms).sum::<f64>();
        let best_ms = (1..=runs).map(ms).fold(f64::INFINITY, f64::min);
        let bytes: u64 = operations[..each].iter().map(|operation| operation.compute.bytes).sum();
        let gbs = bytes as f64 / best_ms / 1e6;
        let kernel = operations[0].kernel.chars().take(60).collect::<String>();
        let mib = bytes >> 20;
        println!("{name:>22} {mib:>9} {best_ms:>8.3} {gbs:>9.0} {:>6.0} {first_ms:>9.1}  {kernel}", gbs / copy_gbs * 100.0);
    }
    Ok(())
}
