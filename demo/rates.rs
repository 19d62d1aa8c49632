//! Rates of each backend of this machine, and a verdict on every element of every result.
//!
//! ```text
//! cargo run --release --example rates -- [BACKEND …] [SIZE …]      all backends with a GPU, and 512 1024 2048 4096, if none is named
//! ```

use std::process::ExitCode;

use lapidary::verify::{Reference, Verdict};
use lapidary::{BackendId, Error, Gpu, Matmul, Options, Result, random};

fn main() -> ExitCode {
    let (mut backends, mut sizes) = (Vec::new(), Vec::new());
    for word in std::env::args().skip(1) {
        match (BackendId::from_name(&word), word.parse::<usize>()) {
            (Some(backend), _) => backends.push(backend),
            (_, Ok(size)) if size > 0 => sizes.push(size),
            _ => {
                let names: Vec<_> = BackendId::ALL.iter().map(|backend| backend.name()).collect();
                eprintln!("usage: rates [{}] [SIZE …], but there is {word}", names.join(" | "));
                return ExitCode::from(2);
            }
        }
    }
    if backends.is_empty() {
        backends = BackendId::ALL.iter().copied().filter(|backend| backend.is_gpu()).collect();
    }
    if sizes.is_empty() {
        sizes = vec![512, 1024, 2048, 4096];
    }
    let mut wrong = false;
    let gpus: Vec<Gpu> = backends.into_iter().filter_map(|backend| open(backend, &mut wrong)).collect();
    println!("{:>8}  {:<8} {:<28} {:>13} {:>13} {:>16}  verdict", "n", "backend", "kernel", "kernel GFLOP/s", "best", "end to end");
    for n in sizes {
        let matrices = [random::matrix(n * n, 1), random::matrix(n * n, 2)];
        let references = references(&matrices, n);
        for gpu in &gpus {
            match measure(gpu, &matrices, n, &references) {
                Ok((line, right)) => {
                    println!("{n:>8}  {line}");
                    wrong |= !right;
                }
                Err(error) => {
                    println!("{n:>8}  {error}");
                    wrong = true;
                }
            }
        }
    }
    ExitCode::from(u8::from(wrong))
}

fn open(backend: BackendId, failed: &mut bool) -> Option<Gpu> {
    let clock = std::time::Instant::now();
    match Gpu::open_blocking(Options::only(backend)).and_then(|gpu| Ok((gpu.info()?, gpu))) {
        Ok((info, gpu)) => {
            let ms = clock.elapsed().as_secs_f64() * 1e3;
            println!("{backend}: {}, {}, opened and tested in {ms:.0} ms", info.name, info.kind.name());
            println!("  PCI {}, features {}", info.pci_address, info.features.join(" "));
            Some(gpu)
        }
        Err(error) => {
            println!("{error}");
            *failed |= !matches!(error, Error::Unavailable { .. });
            None
        }
    }
}

/// The exact product, some rows on each core.
fn references([a, b]: &[Vec<f32>; 2], n: usize) -> Vec<Reference> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rows = n.div_ceil(cores);
    std::thread::scope(|scope| {
        let part = |a: &[f32]| Reference::new(a, b, &[], &Matmul::new((a.len() / n) as u64, n as u64, n as u64)).expect("it fits");
        let parts: Vec<_> = a.chunks(rows * n).map(|a| scope.spawn(move || part(a))).collect();
        parts.into_iter().map(|part| part.join().expect("no panic")).collect()
    })
}

fn measure(gpu: &Gpu, [a, b]: &[Vec<f32>; 2], n: usize, references: &[Reference]) -> Result<(String, bool)> {
    let op = Matmul::new(n as u64, n as u64, n as u64);
    let gflops = |ms: f64| 2.0 * (n as f64).powi(3) / ms / 1e6;
    let mut fastest = f64::INFINITY;
    let mut result = Vec::new();
    for _ in 0..5 {
        let report = gpu.matmul_report_blocking(a, b, &op)?;
        fastest = fastest.min(report.total_ms);
        result = report.data;
    }
    let verdicts: Vec<Verdict> = {
        let mut rest = result.as_slice();
        let rows = a.len() / n;
        let each = rows.div_ceil(references.len()) * n;
        references
            .iter()
            .map(|reference| {
                let (part, after) = rest.split_at(each.min(rest.len()));
                rest = after;
                reference.check(part)
            })
            .collect::<Result<_>>()?
    };
    let wrong: u64 = verdicts.iter().map(|verdict| verdict.wrong).sum();
    let worst = verdicts.iter().map(|verdict| verdict.worst_ratio).fold(0.0, f64::max);
    let done = pollster::block_on(gpu.benchmark(a, b, &op, 7, 50.0))?;
    let best = done.samples_ms.iter().copied().fold(f64::INFINITY, f64::min);
    let verdict = if wrong == 0 { format!("right, error at most {worst:.3} of the bound") } else { format!("{wrong} WRONG") };
    let line = format!(
        "{:<8} {:<28} {:>13.0} {:>13.0} {:>7.0} {:>5.1} ms  {verdict}",
        done.backend,
        done.kernel,
        gflops(done.median_ms()),
        gflops(best),
        gflops(fastest),
        fastest
    );
    Ok((line, wrong == 0))
}
