//! How fast the convolutions of a ResNet-50 are, layer by layer, beside the product of two large matrices.
//!
//! `cargo run --profile native --example layers -- [--backend NAME] [--batch N] ...`

use lapidary::{BackendId, Choice, Conv, DType, Expr, Gpu, Options};

type Failure = Box<dyn std::error::Error>;

/// Runs of each, of which the fastest counts.
const RUNS: usize = 12;

/// Channels, size, filters, taps, stride: those of He, Zhang, Ren and Sun (2016), each once.
const LAYERS: [[u64; 5]; 17] = [
    [3, 224, 64, 7, 2],
    [64, 56, 64, 1, 1],
    [64, 56, 64, 3, 1],
    [64, 56, 256, 1, 1],
    [256, 56, 64, 1, 1],
    [128, 56, 128, 3, 2],
    [256, 56, 512, 1, 2],
    [128, 28, 128, 3, 1],
    [128, 28, 512, 1, 1],
    [512, 28, 128, 1, 1],
    [256, 28, 256, 3, 2],
    [256, 14, 256, 3, 1],
    [256, 14, 1024, 1, 1],
    [1024, 14, 256, 1, 1],
    [512, 7, 512, 3, 1],
    [512, 7, 2048, 1, 1],
    [2048, 7, 512, 1, 1],
];

fn main() -> Result<(), Failure> {
    let (mut backend, mut batches) = (Choice::Auto, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--batch" => batches.push(arguments.next().unwrap_or_default().parse::<u64>()?),
            "--backend" => {
                let name = arguments.next().unwrap_or_default();
                backend = Choice::Only(BackendId::from_name(&name).ok_or_else(|| format!("there is no backend {name}"))?);
            }
            other => return Err(format!("{other} is none of --backend and --batch").into()),
        }
    }
    if batches.is_empty() {
        batches = vec![1, 8];
    }
    let gpu = Gpu::open_blocking(Options { backend, profile: true, ..Options::default() })?;
    let info = gpu.info()?;
    println!("{} {}", info.backend, info.name);
    println!("{:>32} {:>9} {:>9} {:>6}  kernels", "", "ms", "GFLOP/s", "%");
    let square = noise(&gpu, &[4096, 4096])?;
    let (ms, kernels) = best(&gpu, &square.matmul(&square))?;
    let ceiling_gflops = 2.0 * 4096f64.powi(3) / ms / 1e6;
    println!("{:>32} {ms:>9.3} {ceiling_gflops:>9.0} {:>6}  {kernels}", "product of 4096", 100);
    for images in batches {
        for [channels, size, filters, taps, stride] in LAYERS {
            let input = noise(&gpu, &[images, channels, size, size])?;
            let weights = noise(&gpu, &[filters, channels, taps, taps])?;
            let how = Conv::default().strides(&[stride; 2]).pads(&[[taps / 2; 2]; 2]);
            let conv = input.conv(&weights, &how).relu();
            let (ms, kernels) = best(&gpu, &conv)?;
            let elements: u64 = conv.shape()?.iter().product();
            let gflops = 2.0 * (elements * channels * taps * taps) as f64 / ms / 1e6;
            let name = format!("{images}x{channels}x{size}x{size} by {filters}x{taps}x{taps}/{stride}");
            println!("{name:>32} {ms:>9.4} {gflops:>9.0} {:>6.0}  {kernels}", gflops / ceiling_gflops * 100.0);
        }
    }
    Ok(())
}

/// Numbers between -1 and 1 in no order, made on the device.
fn noise(gpu: &Gpu, shape: &[u64]) -> Result<Expr, Failure> {
    let noise = Expr::index(shape).mul(2_654_435_769u32).cast(DType::F32).mul(1.0 / 2_147_483_648.0).sub(1.0);
    Ok(Expr::from(gpu.evaluate_blocking(&noise)?))
}

/// The shortest time of the device in milliseconds, and what ran.
fn best(gpu: &Gpu, expr: &Expr) -> Result<(f64, String), Failure> {
    gpu.clear_profile();
    for _ in 0..=RUNS {
        drop(gpu.evaluate_blocking(expr)?);
    }
    let operations = gpu.profile().operations;
    let each = operations.len() / (RUNS + 1);
    let ms = |run: usize| operations[run * each..][..each].iter().map(|operation| operation.compute.ms).sum::<f64>();
    let kernels: Vec<_> = operations[..each].iter().map(|operation| operation.kernel.as_str()).collect();
    Ok(((1..=RUNS).map(ms).fold(f64::INFINITY, f64::min), kernels.join(", ")))
}
