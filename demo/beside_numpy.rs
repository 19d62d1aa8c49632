//! What expressions take on the CPU, for `scripts/bench-numpy`, which times NumPy beside it.
//!
//! `beside_numpy THREADS ELEMENTS`, 0 for all threads: each line that it reads is a number and the name of a case; it computes the case so often,
//! and answers with the milliseconds of each time. For none it answers with the sum of the result's magnitudes and that of its values, each by
//! a weight that its place has.

use std::io::BufRead;
use std::time::Instant;

use lapidary::{BackendId, Conv, DType, Expr, Gpu, Options, Padding, Pool};

type Failure = Box<dyn std::error::Error>;

/// Sizes of what is computed.
struct Sizes {
    rows: u64,
    columns: u64,
    /// What rows are cut into for three dimensions.
    layers: u64,
    /// Of the matrices that are multiplied.
    factor: u64,
    /// Complex numbers that are transformed.
    signal: u64,
    image: u64,
    odd: u64,
    prime: u64,
    /// What is convolved and pooled.
    channels: u64,
    side: u64,
}

impl Sizes {
    /// The same as in the script.
    fn of(elements: u64) -> Option<Self> {
        let [rows, columns, layers, factor, signal, image, odd, prime, channels, side] = match elements {
            10_000 => [100, 100, 10, 100, 1 << 12, 64, 2_187, 4_999, 8, 32],
            1_000_000 => [1_000, 1_000, 10, 500, 1 << 18, 512, 177_147, 249_989, 16, 224],
            60_000_000 => [7_500, 8_000, 25, 1_024, 1 << 20, 1_024, 531_441, 524_287, 64, 224],
            _ => return None,
        };
        Some(Self { rows, columns, layers, factor, signal, image, odd, prime, channels, side })
    }
}

/// Everything by its name in the script.
fn cases(gpu: &Gpu, sizes: &Sizes) -> Result<Vec<(&'static str, Expr)>, Failure> {
    let &Sizes { rows, columns, layers, factor, signal, image, odd, prime, channels, side } = sizes;
    let kept = |expr: Expr| gpu.evaluate_blocking(&expr).map(Expr::from);
    // The same numbers as in the script: uniform in [0, 1) by a multiplicative hash (Knuth, volume 3, 6.4).
    let uniform = |factor: u32| Expr::index(&[rows, columns]).mul(factor).cast(DType::F32).mul(1.0 / 4_294_967_296.0);
    let a = kept(uniform(2_654_435_761).mul(4.0).sub(2.0))?;
    // Zero has no logarithm.
    let b = kept(uniform(1_640_531_527).add(1e-6))?;
    let part = |of: &Expr, rows: u64, columns: u64| kept(of.slice(0, 0, rows as i64, 1).slice(1, 0, columns as i64, 1));
    let first = |of: &Expr, shape: &[u64]| {
        let count: u64 = shape.iter().product();
        let shape: Vec<_> = shape.iter().map(|&size| size as i64).collect();
        kept(of.reshape(&[-1]).slice(0, 0, count as i64, 1).reshape(&shape))
    };
    let (x, y) = (part(&a, factor, factor)?, part(&b, factor, factor)?);
    let (row, column) = (part(&b, 1, columns)?, part(&b, rows, 1)?);
    let (vector, tall) = (kept(row.reshape(&[-1]))?, kept(column.reshape(&[1, -1]))?);
    let cube = kept(a.reshape(&[layers as i64, (rows / layers) as i64, columns as i64]))?;
    let (ah, bh) = (kept(a.cast(DType::F16))?, kept(b.cast(DType::F16))?);
    let (ai, bi) = (kept(a.mul(1000.0).cast(DType::I32))?, kept(b.mul(9.0).cast(DType::I32))?);
    let bu = kept(bi.cast(DType::U32))?;
    let (waves, picture) = (first(&a, &[signal, 2])?, first(&a, &[image, image, 2])?);
    let (real, real_odd, real_prime) = (first(&a, &[2 * signal])?, first(&a, &[odd])?, first(&a, &[prime])?);
    let spectrum = kept(real.rfft(0, None))?;
    let planes = first(&a, &[1, channels, side, side])?;
    let plane = first(&a, &[1, 1, side, side])?;
    let filters = first(&b, &[channels, channels, 3, 3])?;
    let taps = first(&b, &[1, 1, 31])?;
    let long = kept(real.reshape(&[1, 1, -1]))?;
    let kernel = first(&b, &[1, 1, 3, 3])?;
    let batch = (rows * columns / 1024).min(1000);
    let (bx, by) = (first(&a, &[batch, 32, 32])?, first(&b, &[batch, 32, 32])?);
    let of = |side: u64| (batch * 1024) / (side * side);
    let (bx_4, by_4) = (first(&a, &[of(4), 4, 4])?, first(&b, &[of(4), 4, 4])?);
    let (points, turn) = (first(&a, &[of(2), 4])?, first(&b, &[4, 3])?);
    let (small, other) = (first(&a, &[16, 16])?, first(&b, &[16, 16])?);
    let real_picture = kept(picture.slice(2, 0, 1, 1).reshape(&[image as i64, image as i64]))?;
    let pool = Pool::new(&[2, 2]).strides(&[2, 2]);
    let middle = |axis: i64, size: u64, of: &Expr| of.slice(axis, (size / 4) as i64, (size / 4 * 3) as i64, 1);
    let all = i64::MAX;
    Ok(vec![
        ("add", a.add(&b)),
        ("add a row", a.add(&row)),
        ("add a column", a.add(&column)),
        ("add a number", a.add(2.0)),
        ("a * 2 + b", a.mul(2.0).add(&b)),
        ("divide", a.div(b.add(1.0))),
        ("sqrt", b.sqrt()),
        ("abs", a.abs()),
        ("square", a.square()),
        ("exp", a.exp()),
        ("log", b.log()),
        ("sin", a.sin()),
        ("cos", a.cos()),
        ("tan", a.tan()),
        ("atan", a.atan()),
        ("tanh", a.tanh()),
        ("sigmoid", a.sigmoid()),
        ("erf", a.erf()),
        ("power", b.pow(&a)),
        ("floor", a.floor()),
        ("maximum", a.max(&b)),
        ("relu", a.relu()),
        ("clamp", a.clamp(-1.0, 1.0)),
        ("less", a.less(&b)),
        ("equal", a.equal(&b)),
        ("less and greater", a.less(&b).and(a.greater(-1.0))),
        ("where", a.less(&b).select(&a, &b)),
        ("to int32", a.cast(DType::I32)),
        ("to float16", a.cast(DType::F16)),
        ("from float16", ah.cast(DType::F32)),
        ("from int32", ai.cast(DType::F32)),
        ("add f16", ah.add(&bh)),
        ("exp f16", ah.exp()),
        ("add i32", ai.add(&bi)),
        ("multiply i32", ai.mul(&bi)),
        ("divide u32", bu.div(bu.add(1.0))),
        ("maximum i32", ai.max(&bi)),
        ("less i32", ai.less(&bi)),
        ("copy", a.flip(Some(&[]))),
        ("transpose", a.transpose(None)),
        ("transpose 0 2 1", cube.transpose(Some(&[0, 2, 1]))),
        ("transpose 1 0 2", cube.transpose(Some(&[1, 0, 2]))),
        ("transpose 2 0 1", cube.transpose(Some(&[2, 0, 1]))),
        ("transpose 2 1 0", cube.transpose(Some(&[2, 1, 0]))),
        ("transpose f16", ah.transpose(None)),
        ("add transposed", x.add(y.transpose(None))),
        ("flip rows", a.flip(Some(&[0]))),
        ("flip columns", a.flip(Some(&[1]))),
        ("every second", a.slice(1, 0, all, 2)),
        ("every second row", a.slice(0, 0, all, 2)),
        ("part", middle(0, rows, &middle(1, columns, &a))),
        ("concatenate rows", Expr::concat(&[a.clone(), b.clone()], 0)),
        ("concatenate columns", Expr::concat(&[a.clone(), b.clone()], 1)),
        ("pad", a.pad(&[[3, 3], [5, 5]], Padding::Constant(0.0))),
        ("repeat a row", row.broadcast_to(&[rows, columns])),
        ("sum", b.sum(None, false)),
        ("sum of rows", b.sum(Some(&[1]), false)),
        ("sum of columns", b.sum(Some(&[0]), false)),
        ("sum of first", cube.sum(Some(&[0]), false)),
        ("sum of middle", cube.sum(Some(&[1]), false)),
        ("sum of last", cube.sum(Some(&[2]), false)),
        ("sum of f16", bh.cast(DType::F32).sum(Some(&[1]), false)),
        ("sum of i32", ai.sum(Some(&[1]), false)),
        ("sum of products", a.mul(&b).sum(None, false)),
        ("mean of rows", b.mean(Some(&[1]), false)),
        ("mean of columns", b.mean(Some(&[0]), false)),
        ("max", a.amax(None, false)),
        ("max of rows", a.amax(Some(&[1]), false)),
        ("max of columns", a.amax(Some(&[0]), false)),
        ("max of middle", cube.amax(Some(&[1]), false)),
        ("max of i32", ai.amax(None, false)),
        ("min of rows", a.amin(Some(&[1]), false)),
        ("argmax", a.argmax(None, false)),
        ("argmax of rows", a.argmax(Some(&[1]), false)),
        ("argmax of columns", a.argmax(Some(&[0]), false)),
        ("argmin of rows", a.argmin(Some(&[1]), false)),
        ("argmax of i32", ai.argmax(Some(&[1]), false)),
        ("prod of rows", b.mul(0.01).add(0.995).prod(Some(&[1]), false)),
        ("var of rows", a.var(Some(&[1]), false, 0.0)),
        ("std", a.std(None, false, 0.0)),
        ("std of rows", a.std(Some(&[1]), false, 0.0)),
        ("std of columns", a.std(Some(&[0]), false, 0.0)),
        ("norm", a.norm_l2(None, false)),
        ("norm of rows", a.norm_l2(Some(&[1]), false)),
        ("any", a.greater(3.0).any(None, false)),
        ("log sum exp", a.log_sum_exp(Some(&[1]), false)),
        ("softmax", a.softmax(1)),
        ("softmax of columns", a.softmax(0)),
        ("log softmax", a.log_softmax(1)),
        ("layer norm", a.layer_norm(&[1], Some(&row), Some(&row), 1e-5)),
        ("matmul", x.matmul(&y)),
        ("matmul transposed", x.matmul(y.transpose(None))),
        ("matmul of 16", small.matmul(&other)),
        ("batch of 32", bx.matmul(&by)),
        ("batch of 4", bx_4.matmul(&by_4)),
        ("points by 4x3", points.matmul(&turn)),
        ("matrix by vector", a.matmul(&vector)),
        ("vector by matrix", tall.matmul(&a)),
        ("conv1d", long.conv(&taps, &Conv::default())),
        ("conv2d of a plane", plane.conv(&kernel, &Conv::default())),
        ("conv2d", planes.conv(&filters, &Conv::default())),
        ("max pool", planes.max_pool(&pool)),
        ("average pool", planes.average_pool(&pool)),
        ("fft", waves.fft(0, None)),
        ("ifft", waves.ifft(0, None)),
        ("rfft", real.rfft(0, None)),
        ("irfft", spectrum.irfft(0, None)),
        ("rfft of 3^n", real_odd.rfft(0, None)),
        ("rfft of a prime", real_prime.rfft(0, None)),
        ("fft of rows", picture.fft(1, None)),
        ("fft of columns", picture.fft(0, None)),
        ("fft2", picture.fft2()),
        ("rfft2", real_picture.rfft2()),
    ])
}

/// The sum of the magnitudes of a case's values and that of the values themselves, each by its weight.
fn weighed(gpu: &Gpu, case: &Expr) -> Result<(f64, f64), Failure> {
    let tensor = gpu.evaluate_blocking(&case.cast(DType::F32))?;
    let values = tensor.to_host_blocking()?.into_typed::<f32>()?;
    let weight = |place: usize| f64::from((place as u32).wrapping_mul(2_654_435_761)) / 4_294_967_296.0 + 0.5;
    let parts = || values.iter().enumerate().map(|(place, &value)| f64::from(value) * weight(place));
    Ok((parts().map(f64::abs).sum(), parts().sum()))
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what: &str| -> Result<u64, Failure> { Ok(arguments.next().ok_or(format!("how many {what}?"))?.parse()?) };
    let (threads, elements) = (number("threads")? as u32, number("elements")?);
    let sizes = Sizes::of(elements).ok_or("elements are 10000, 1000000 or 60000000")?;
    let gpu = Gpu::open_blocking(Options { threads: (threads > 0).then_some(threads), ..Options::only(BackendId::Simd) })?;
    let cases = cases(&gpu, &sizes)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (repeats, name) = line.split_once(' ').ok_or("a line is a number and a case")?;
        let repeats: u32 = repeats.parse()?;
        let Some((_, expr)) = cases.iter().find(|(known, _)| *known == name) else {
            println!("there is no case {name}");
            continue;
        };
        if repeats == 0 {
            let (magnitudes, values) = weighed(&gpu, expr)?;
            println!("{magnitudes} {values}");
            continue;
        }
        let start = Instant::now();
        for _ in 0..repeats {
            gpu.evaluate_blocking(expr)?;
        }
        println!("{}", start.elapsed().as_secs_f64() * 1e3 / f64::from(repeats));
    }
    Ok(())
}
