//! What the CPU can do at best: copies of memory, and multiply-adds in registers, on as many threads as its products have.

use std::hint::black_box;
use std::sync::Barrier;

use crate::clock::Stopwatch;

/// More than the caches of most CPUs hold, for each thread.
const COPY_BYTES: usize = 32 << 20;

/// Times that each is measured, of which the best counts: what else runs only takes time away.
const ROUNDS: usize = 12;

/// The least that a round of arithmetic takes.
const ROUND_MS: f64 = 2.0;

/// The seconds that the slowest of so many threads takes for the work, at best, each with a state of its own.
fn best_s<T>(threads: usize, prepare: impl Fn() -> T + Sync, work: impl Fn(&mut T) + Sync) -> f64 {
    let barrier = Barrier::new(threads);
    let thread = || {
        let mut state = prepare();
        let mut rounds = [0.0; ROUNDS];
        // The first one finds everything cold.
        work(&mut state);
        for round in &mut rounds {
            barrier.wait();
            let clock = Stopwatch::start();
            work(&mut state);
            *round = clock.ms() / 1e3;
        }
        rounds
    };
    let rounds: Vec<[f64; ROUNDS]> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(thread)).collect();
        let own = thread();
        others.into_iter().filter_map(|other| other.join().ok()).chain([own]).collect()
    });
    let slowest = |round: usize| rounds.iter().map(|rounds| rounds[round]).fold(0.0, f64::max);
    (0..ROUNDS).map(slowest).fold(f64::INFINITY, f64::min).max(1e-9)
}

/// Thousand million bytes a second, those that are read and those that are written.
pub(super) fn copy_gbs(threads: usize) -> f64 {
    let prepare = || (vec![1u8; COPY_BYTES], vec![2u8; COPY_BYTES]);
    let seconds = best_s(threads, prepare, |(from, to)| black_box(to).copy_from_slice(black_box(from)));
    (2 * COPY_BYTES * threads) as f64 / seconds / 1e9
}

/// Thousand million multiplications and additions a second.
pub(super) fn fma_gflops(simd: bool, threads: usize) -> f64 {
    let links = if simd { vectors } else { plain };
    let mut steps = 1 << 10;
    let chains = loop {
        let clock = Stopwatch::start();
        let chains = links(steps);
        if clock.ms() >= ROUND_MS || steps >= 1 << 30 {
            break chains;
        }
        steps *= 2;
    };
    let work = |(): &mut ()| {
        black_box(links(steps));
    };
    let seconds = best_s(threads, || (), work);
    2.0 * f64::from(steps) * f64::from(chains) * threads as f64 / seconds / 1e9
}

/// Ten chains of so many links, enough to hide the latency of each: written out, since the compiler may be told to keep the code small. They
/// neither grow nor vanish.
macro_rules! ten_chains {
    ($steps:expr, $link:expr, $($sum:ident),+) => {{
        $( let mut $sum = black_box($sum); )+
        for _ in 0..$steps {
            $( $sum = $link($sum); )+
        }
        $( black_box($sum); )+
    }};
}

/// With the widest vectors that this CPU has; gives how many chains there are, each lane being one.
#[cfg(feature = "simd")]
fn vectors(steps: u32) -> u32 {
    struct Chains(u32);

    impl pulp::WithSimd for Chains {
        type Output = u32;

        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, simd: S) -> u32 {
            let (x, y) = (black_box(simd.splat_f32s(0.999)), black_box(simd.splat_f32s(0.001)));
            let [a, b, c, d, e, f, g, h, i, j] = [y; 10];
            ten_chains!(self.0, |sum| simd.mul_add_f32s(sum, x, y), a, b, c, d, e, f, g, h, i, j);
            10 * S::F32_LANES as u32
        }
    }

    match pulp::Arch::new() {
        // Without an instruction for it, a fused multiply-add is a call.
        pulp::Arch::Scalar => plain(steps),
        arch => arch.dispatch(Chains(steps)),
    }
}

#[cfg(not(feature = "simd"))]
fn vectors(steps: u32) -> u32 {
    plain(steps)
}

/// One number at a time.
fn plain(steps: u32) -> u32 {
    let (x, y) = (black_box(0.999f32), black_box(0.001f32));
    let [a, b, c, d, e, f, g, h, i, j] = [y; 10];
    ten_chains!(steps, |sum: f32| sum * x + y, a, b, c, d, e, f, g, h, i, j);
    10
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo test --release --lib what_the_cpu_can_do -- --ignored --nocapture`
    #[test]
    #[ignore = "prints figures"]
    fn what_the_cpu_can_do() {
        for threads in [1, 2] {
            println!("{threads} threads: {:.1} GB/s", copy_gbs(threads));
            println!("{threads} threads: {:.1} and {:.1} GFLOP/s", fma_gflops(true, threads), fma_gflops(false, threads));
        }
    }
}
