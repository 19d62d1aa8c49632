//! How fast products are with operands and result on the device, kernel by kernel, and whether they are right.
//!
//! `cargo run --profile native --example rates -- [--backend NAME] [--own] [--f16 | --f16x3 | --i8] [--nt | --tn | --tt] [--alpha X]
//! [--bias] [--batch COUNT] [N | MxKxN] ...`; `--own` leaves makers' libraries out. Operands are of f16 with `--f16` and 8-bit integers with `--i8`; with `--f16x3`
//! those of f32 are taken apart into f16. Those with a t are stored transposed: with `--nt` B is. Products are multiplied by X, and a bias is added;
//! with `--batch` each is of so many, one behind the other.

use std::time::Instant;

use half::f16;
use lapidary::verify::Reference;
use lapidary::{BackendId, Choice, Gpu, Matmul, Operand, Options, Precision, random};

type Failure = Box<dyn std::error::Error>;

/// Rows of each result that are compared with a product in double precision; all of them would take minutes.
const JUDGED_ROWS: usize = 16;

/// What is multiplied, and how.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    F32,
    F16,
    F16x3,
    I8,
}

/// What is computed of every shape.
struct Form {
    kind: Kind,
    transposed: [bool; 2],
    alpha: f32,
    bias: bool,
    batch: usize,
}

fn main() -> Result<(), Failure> {
    let start = Instant::now();
    let (mut backend, mut own, mut shapes) = (Choice::Auto, false, Vec::new());
    let mut form = Form { kind: Kind::F32, transposed: [false; 2], alpha: 1.0, bias: false, batch: 1 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--own" => own = true,
            "--f16" => form.kind = Kind::F16,
            "--f16x3" => form.kind = Kind::F16x3,
            "--i8" => form.kind = Kind::I8,
            "--nt" => form.transposed = [false, true],
            "--tn" => form.transposed = [true, false],
            "--tt" => form.transposed = [true; 2],
            "--alpha" => form.alpha = arguments.next().unwrap_or_default().parse().map_err(|error| format!("--alpha: {error}"))?,
            "--bias" => form.bias = true,
            "--batch" => form.batch = arguments.next().unwrap_or_default().parse().map_err(|error| format!("--batch: {error}"))?,
            "--backend" => {
                let name = arguments.next().unwrap_or_default();
                backend = Choice::Only(BackendId::from_name(&name).ok_or_else(|| format!("there is no backend {name}"))?);
            }
            shape => shapes.push(parse(shape)?),
        }
    }
    if shapes.is_empty() {
        shapes = [512, 1024, 2048, 4096].map(|n| [n; 3]).to_vec();
    }
    let options = Options { backend, vendor_libraries: !own, ..Options::default() };
    let gpu = Gpu::open_blocking(options.clone())?;
    let opened_ms = start.elapsed().as_secs_f64() * 1e3;
    let values = random::matrix(512 * 512, 1);
    gpu.matmul_blocking(&values, &values, &Matmul::new(512, 512, 512))?;
    let first_ms = start.elapsed().as_secs_f64() * 1e3;
    let info = gpu.info()?;
    println!("{} {} ({}), {}", info.backend, info.name, info.architecture, info.features.join(", "));
    println!("opened {opened_ms:.0} ms, first product (512) done {first_ms:.0} ms after the start\n");
    println!(
        "{:>16} {:>10} {:>12} {:>12}  kernel",
        "m x k x n",
        "ms",
        if form.kind == Kind::I8 { "GOP/s" } else { "GFLOP/s" },
        "end to end"
    );
    let mut handles = vec![gpu];
    if !own && info.features.contains(&"cublaslt") {
        handles.push(Gpu::open_blocking(Options { vendor_libraries: false, ..options })?);
    }
    let mut all_right = true;
    for [m, k, n] in shapes {
        for gpu in &handles {
            all_right &= rate(gpu, [m, k, n], &form)?;
        }
    }
    if all_right { Ok(()) } else { Err("a result is wrong".into()) }
}

fn parse(shape: &str) -> Result<[usize; 3], Failure> {
    let sides = shape.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>().map_err(|error| format!("{shape}: {error}"))?;
    match sides[..] {
        [n] => Ok([n; 3]),
        [m, k, n] => Ok([m, k, n]),
        _ => Err(format!("{shape} is neither N nor MxKxN").into()),
    }
}

/// What is not f32 is judged by its values as f32.
fn rate(gpu: &Gpu, shape: [usize; 3], &Form { kind, transposed, alpha, bias, batch }: &Form) -> Result<bool, Failure> {
    let [m, k, n] = shape;
    let bias = if bias { random::matrix(n, 3) } else { Vec::new() };
    let ended = |m: usize| {
        let precision = if kind == Kind::F16x3 { Precision::F16x3 } else { Precision::F32 };
        let op = Matmul::new(m as u64, k as u64, n as u64).alpha(alpha).precision(precision);
        if bias.is_empty() { op } else { op.bias(&bias) }
    };
    let op = ended(m).transpose_a(transposed[0]).transpose_b(transposed[1]);
    let op = if batch > 1 { op.batch(batch as u64) } else { op };
    // Of a batch the last item.
    let judge = |a: &[f32], b: &[f32], c: &[f32]| is_right(last(a, m * k), last(b, k * n), last(c, m * n), shape, ended);
    let operands = [random::matrix(batch * m * k, 1), random::matrix(batch * k * n, 2)];
    let sizes = [[m, k], [k, n]];
    let size = |which: usize| sizes[which][0] * sizes[which][1];
    let stored = |which: usize| {
        let values = &operands[which];
        if transposed[which] { values.chunks(size(which)).flat_map(|item| turned(item, sizes[which])).collect() } else { values.clone() }
    };
    let [a, b] = &operands;
    match kind {
        Kind::F32 | Kind::F16x3 => timed(gpu, (batch, shape), &op, (&stored(0)).into(), (&stored(1)).into(), |c| judge(a, b, c)),
        Kind::F16 => {
            let [a, b, stored_a, stored_b] =
                [a, b, &stored(0), &stored(1)].map(|values| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
            timed(gpu, (batch, shape), &op, (&stored_a).into(), (&stored_b).into(), |c| judge(&wide(&a), &wide(&b), c))
        }
        Kind::I8 => {
            let [a, b, stored_a, stored_b] =
                [a, b, &stored(0), &stored(1)].map(|values| values.iter().map(|x| (x * 128.0) as i8).collect::<Vec<_>>());
            timed(gpu, (batch, shape), &op, (&stored_a).into(), (&stored_b).into(), |c| judge(&wide(&a), &wide(&b), c))
        }
    }
}

fn last(values: &[f32], count: usize) -> &[f32] {
    &values[values.len() - count..]
}

/// A matrix of so many rows and columns by columns.
fn turned(values: &[f32], [rows, columns]: [usize; 2]) -> Vec<f32> {
    (0..columns * rows).map(|at| values[at % rows * columns + at / rows]).collect()
}

fn wide<T: Copy + Into<f32>>(values: &[T]) -> Vec<f32> {
    values.iter().map(|&value| value.into()).collect()
}

fn timed(
    gpu: &Gpu,
    (batch, [m, k, n]): (usize, [usize; 3]),
    op: &Matmul<'_>,
    a: Operand<'_>,
    b: Operand<'_>,
    is_right: impl FnOnce(&[f32]) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    // The first call compiles.
    gpu.matmul_blocking(a.clone(), b.clone(), op)?;
    let report = gpu.matmul_report_blocking(a.clone(), b.clone(), op)?;
    let kernel = gpu.benchmark_blocking(a, b, op, 7, 40.0)?;
    let gflops = |ms: f64| 2.0 * (batch * m * k * n) as f64 / ms / 1e6;
    let right = is_right(&report.data)?;
    println!(
        "{:>16} {:>10.4} {:>12.0} {:>12.0}  {}{}",
        format!("{m}x{k}x{n}"),
        kernel.median_ms(),
        gflops(kernel.median_ms()),
        gflops(report.total_ms),
        kernel.kernel,
        if right { "" } else { "  WRONG" },
    );
    Ok(right)
}

/// Judges rows spread over the result, the last one among them.
fn is_right<'c>(a: &[f32], b: &[f32], c: &[f32], [m, k, n]: [usize; 3], of_rows: impl Fn(usize) -> Matmul<'c>) -> Result<bool, Failure> {
    let judged = m.min(JUDGED_ROWS);
    let rows = |matrix: &[f32], columns: usize| -> Vec<f32> {
        (1..=judged).map(|i| i * m / judged - 1).flat_map(|row| matrix[row * columns..][..columns].to_vec()).collect()
    };
    let reference = Reference::new(&rows(a, k), b, &[], &of_rows(judged))?;
    Ok(reference.check(&rows(c, n))?.is_right())
}
