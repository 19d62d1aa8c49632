//! What expressions take on the CPU, for `scripts/bench-numpy`, which times NumPy beside it.
//!
//! `beside_numpy THREADS`, 0 for all: each line that it reads names a case; it computes it once, and answers with milliseconds and the sum of the
//! result's magnitudes.

use std::io::BufRead;
use std::time::Instant;

use lapidary::{BackendId, DType, Expr, Gpu, Options};

type Failure = Box<dyn std::error::Error>;

/// Rows and columns of the matrices: 64 MiB each.
const SIDE: u64 = 4096;
/// Those of the matrices that are multiplied.
const FACTOR: u64 = 1024;
/// Complex numbers that are transformed.
const SIGNAL: u64 = 1 << 20;

fn main() -> Result<(), Failure> {
    let threads: u32 = std::env::args().nth(1).ok_or("how many threads? 0 for all")?.parse()?;
    let threads = (threads > 0).then_some(threads);
    let gpu = Gpu::open_blocking(Options { threads, ..Options::only(BackendId::Simd) })?;
    let kept = |expr: Expr| gpu.evaluate_blocking(&expr).map(Expr::from);
    // The same numbers as in the script: uniform in [0, 1) by a multiplicative hash (Knuth, volume 3, 6.4).
    let uniform = |shape: &[u64], factor: u32| Expr::index(shape).mul(factor).cast(DType::F32).mul(1.0 / 4_294_967_296.0);
    let a = kept(uniform(&[SIDE, SIDE], 2_654_435_761).mul(4.0).sub(2.0))?;
    // Zero has no logarithm.
    let b = kept(uniform(&[SIDE, SIDE], 1_640_531_527).add(1e-6))?;
    let [x, y] = [&a, &b].map(|matrix| kept(matrix.slice(0, 0, FACTOR as i64, 1).slice(1, 0, FACTOR as i64, 1)));
    let (x, y) = (x?, y?);
    let row = kept(b.slice(0, 0, 1, 1))?;
    let signal = kept(a.reshape(&[-1, 2]).slice(0, 0, SIGNAL as i64, 1))?;
    let image = kept(signal.reshape(&[1024, 1024, 2]))?;
    let cases = [
        ("add", a.add(&b)),
        ("add a row", a.add(&row)),
        ("a * 2 + b", a.mul(2.0).add(&b)),
        ("divide", a.div(b.add(1.0))),
        ("sqrt", b.sqrt()),
        ("exp", a.exp()),
        ("log", b.log()),
        ("sin", a.sin()),
        ("tanh", a.tanh()),
        ("power", b.pow(&a)),
        ("maximum", a.max(&b)),
        ("less", a.less(&b)),
        ("where", a.less(&b).select(&a, &b)),
        ("to int32", a.cast(DType::I32)),
        ("to float16", a.cast(DType::F16)),
        ("transposed copy", a.transpose(None)),
        ("concatenate", Expr::concat(&[a.clone(), b.clone()], 1)),
        ("sum", b.sum(None, false)),
        ("sum of rows", b.sum(Some(&[1]), false)),
        ("sum of columns", b.sum(Some(&[0]), false)),
        ("max", a.amax(None, false)),
        ("argmax of rows", a.argmax(Some(&[1]), false)),
        ("std of rows", a.std(Some(&[1]), false, 0.0)),
        ("softmax", a.softmax(1)),
        ("layer norm", a.layer_norm(&[1], None, None, 1e-5)),
        ("matmul", x.matmul(&y)),
        ("fft", signal.fft(0, None)),
        ("fft2", image.fft2()),
    ];
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let Some((_, expr)) = cases.iter().find(|(name, _)| *name == line) else {
            println!("there is no case {line}");
            continue;
        };
        let start = Instant::now();
        let tensor = gpu.evaluate_blocking(expr)?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let values = gpu.evaluate_blocking(&Expr::from(tensor).cast(DType::F32))?;
        let values = pollster::block_on(values.to_host())?.into_typed::<f32>()?;
        println!("{ms} {}", values.iter().map(|&value| f64::from(value).abs()).sum::<f64>());
    }
    Ok(())
}
