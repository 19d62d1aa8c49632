//! What taking f32 apart into two terms of f16 costs in exactness: a twin of `shaders/matmul/split.wgsl` and of the sums in `cooperative.wgsl` and in
//! CUDA's `split_units.cu`, with matrix units as bad as they come, that cut off at each step of 16.
#![cfg(not(target_arch = "wasm32"))]

use half::f16;
use lapidary::random;
use lapidary::verify::gamma;

/// Terms that a matrix unit adds up at once.
const STEP: usize = 16;

/// Those between two times that f32 takes over, where plain f32 has so many sums of each element; None where it computes itself, being closer.
fn flushed(k: usize, sums: usize) -> Option<usize> {
    match k / (sums * sums) {
        0..240 => None,
        240..1536 => Some(64),
        1536.. => Some(128),
    }
}

/// A line of k in two terms, and the exponent by which it is scaled.
struct Split {
    terms: Vec<[f64; 2]>,
    exponent: i32,
}

fn split(line: &[f32]) -> Split {
    let most = line.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    let biased = (most.to_bits() >> 23 & 255) as i32;
    let exponent = if biased == 255 { 0 } else { (141 - biased).min(126) };
    let scale = f32::from_bits(((exponent + 127) as u32) << 23);
    let terms = line.iter().map(|x| {
        let x = x * scale;
        let h = near(x);
        [f16::from_f32(h).to_f64(), f16::from_f32((x - h) * 2048.0).to_f64()]
    });
    Split { terms: terms.collect(), exponent }
}

/// The f16 next to a number, as the shader finds it.
fn near(x: f32) -> f32 {
    let normal = f32::from_bits((x.to_bits() + 0x1000) & 0xffff_e000);
    let h = if x.abs() < 2f32.powi(-14) { (x * 2f32.powi(24)).round_ties_even() / 2f32.powi(24) } else { normal };
    assert_eq!(f16::from_f32(h).to_f32(), h, "{x:e}");
    h
}

/// Rounded to f32 towards zero.
fn cut_off(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near).abs() <= x.abs() { near } else { f32::from_bits(near.to_bits() - 1) }
}

/// A row times a column as a kernel has it, which sums up so many terms by units before f32 takes over.
fn by_matrix_units(a: &Split, b: &Split, flushed: usize) -> f64 {
    let (mut total, mut sum, mut low) = (0.0f32, 0.0f32, 0.0f32);
    for (step, (a, b)) in a.terms.chunks(STEP).zip(b.terms.chunks(STEP)).enumerate() {
        if step > 0 && step % (flushed / STEP) == 0 {
            total += std::mem::take(&mut sum);
        }
        let dot = |x: usize, y: usize| a.iter().zip(b).map(|(a, b)| a[x] * b[y]).sum::<f64>();
        sum = cut_off(f64::from(sum) + dot(0, 0));
        low = cut_off(f64::from(low) + dot(0, 1));
        low = cut_off(f64::from(low) + dot(1, 0));
    }
    f64::from(total + sum + low / 2048.0) * 2f64.powi(-a.exponent - b.exponent)
}

/// The same in f32, as the plain kernels have it that add k up in so many slices.
fn plain(a: &[f32], b: &[f32], slices: usize) -> f64 {
    let mut sums = vec![0.0f32; slices];
    for (p, (&a, &b)) in a.iter().zip(b).enumerate() {
        let sum = &mut sums[p / 8 % slices];
        *sum = a.mul_add(b, *sum);
    }
    f64::from(sums.iter().sum::<f32>())
}

/// Lines of k: what they hold, and a seed.
fn lines(count: usize, k: usize, seed: u64, value: fn(f32, usize) -> f32) -> Vec<Vec<f32>> {
    let line = |i: usize| (0..k).map(|p| value(random::element(seed, (i * k + p) as u64), p)).collect();
    (0..count).map(line).collect()
}

/// The roots of the mean squares of the errors, in two terms and plain with so many slices; and no error is past the bound that [`lapidary::Precision`] tells.
fn errors(k: usize, flushed: usize, slices: usize, value: fn(f32, usize) -> f32) -> (f64, f64) {
    const LINES: usize = 24;
    let (a, b) = (lines(LINES, k, 1, value), lines(LINES, k, 2, value));
    let (split_a, split_b): (Vec<_>, Vec<_>) = (a.iter().map(|a| split(a)).collect(), b.iter().map(|b| split(b)).collect());
    let (mut squares, mut plain_squares) = (0.0, 0.0);
    for i in 0..LINES {
        for j in 0..LINES {
            let product = |p: usize| f64::from(a[i][p]) * f64::from(b[j][p]);
            let (exact, magnitude) = (0..k).fold((0.0, 0.0), |(sum, all), p| (sum + product(p), all + product(p).abs()));
            let error = by_matrix_units(&split_a[i], &split_b[j], flushed) - exact;
            let most = |line: &[f32]| line.iter().fold(0.0, |most: f64, &x| most.max(f64::from(x).abs()));
            let bound = gamma(2 * k as u64 + 12) * magnitude + k as f64 * 2f64.powi(-48) * most(&a[i]) * most(&b[j]);
            assert!(error.abs() <= bound, "k {k}, {i},{j}: {error:e} past {bound:e}");
            squares += (error / magnitude).powi(2);
            plain_squares += ((plain(&a[i], &b[j], slices) - exact) / magnitude).powi(2);
        }
    }
    let root = |squares: f64| (squares / (LINES * LINES) as f64).sqrt();
    (root(squares), root(plain_squares))
}

#[test]
fn two_terms_are_no_less_exact_than_f32() {
    // The plain kernels slice k where a product is small; the units cut off, which adds up where all terms have one sign.
    for k in [512, 700, 1000, 1024, 1536, 2047, 2048, 4096, 10_000] {
        for (slices, flushed) in [1, 2, 4].into_iter().filter_map(|slices| Some((slices, flushed(k, slices)?))) {
            for (name, value) in [("of both signs", (|x, _| x) as fn(f32, usize) -> f32), ("positive", |x, _| x.abs())] {
                let (split, plain) = errors(k, flushed, slices, value);
                assert!(split <= plain, "k {k} in {slices} slices, {name}: {split:e}, but plain f32 {plain:e}");
            }
        }
    }
}

/// On CUDA f32 takes over at each step, and plain f32 adds up k in a row: `two_terms` of `conformance.rs` finds the same ratios on a GPU. A k of 128 is the
/// shortest that is split.
#[test]
fn on_cuda_two_terms_are_no_less_exact_whatever_the_signs() {
    for k in [128, 200, 256, 512, 1000, 4096, 10_000] {
        for (name, value) in [("of both signs", (|x, _| x) as fn(f32, usize) -> f32), ("positive", |x, _| x.abs())] {
            let (split, plain) = errors(k, STEP, 1, value);
            assert!(split <= plain, "k {k}, {name}: {split:e}, but plain f32 {plain:e}");
        }
    }
}

/// What is far smaller than the largest of its line still counts as it should.
#[test]
fn the_bound_holds_for_any_magnitudes() {
    for (k, flushed) in [(64, 64), (1000, 64), (2000, 128)] {
        errors(k, flushed, 1, |x, p| x * 2f32.powi((p * 7 % 61) as i32 - 30));
        errors(k, flushed, 1, |x, p| x * 2f32.powi((p * 5 % 240) as i32 - 120));
        errors(k, flushed, 1, |x, _| x * 2f32.powi(-140));
        errors(k, flushed, 1, |x, _| x * 2f32.powi(126));
        errors(k, flushed, 1, |x, p| if p == 3 { x } else { 0.0 });
    }
}

#[test]
fn splitting_keeps_22_bits() {
    for i in 0..100_000 {
        let x = random::element(3, i) * 2f32.powi((i % 40) as i32 - 20);
        let Split { terms, exponent } = split(&[x, 2f32.powi(7)]);
        let back = (terms[0][0] + terms[0][1] / 2048.0) * 2f64.powi(-exponent);
        let bound = f64::from(x).abs() * 2f64.powi(-22) + 2f64.powi(7 - 50);
        assert!((back - f64::from(x)).abs() <= bound, "{x:e} became {back:e}");
    }
}
