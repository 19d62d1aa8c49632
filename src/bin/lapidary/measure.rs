//! One product on one device: with operands and result on it, and from the host to the host.

use std::time::Instant;

use lapidary::{DType, Gpu, HostVec, Matmul, random};

use crate::arguments::Bench;
use crate::failure::Failure;
use crate::judge::{Judge, Judgement};

/// The matrices of a shape, and what their product is.
pub struct Inputs {
    pub shape: [u64; 3],
    pub a: HostVec,
    pub b: HostVec,
    pub judge: Judge,
}

impl Inputs {
    pub fn new(shape: [u64; 3], settings: &Bench) -> Result<Self, Failure> {
        let [m, k, n] = shape;
        let (a, b) = (matrix(m, k, settings.seed)?, matrix(k, n, settings.seed.wrapping_add(1))?);
        if settings.dtype == DType::F32 {
            let judge = Judge::new(&a, &b, shape, settings.verify)?;
            return Ok(Self { shape, a: a.into(), b: b.into(), judge });
        }
        // What is multiplied is what the values are once they are rounded.
        let (a, b) = (HostVec::from(HostVec::from(a).into_f16()), HostVec::from(HostVec::from(b).into_f16()));
        let judge = Judge::new(&a.clone().into_vec(), &b.clone().into_vec(), shape, settings.verify)?;
        Ok(Self { shape, a, b, judge })
    }
}

fn matrix(rows: u64, columns: u64, seed: u64) -> Result<Vec<f32>, Failure> {
    let mut values = Vec::new();
    let elements = rows.checked_mul(columns).and_then(|elements| usize::try_from(elements).ok());
    let elements = elements.filter(|&elements| values.try_reserve_exact(elements).is_ok());
    let elements = elements.ok_or_else(|| Failure::Failed(format!("a matrix of {rows}x{columns} is more than memory holds")))?;
    values.resize(elements, 0.0);
    random::fill(seed, 0, &mut values);
    Ok(values)
}

/// Times in milliseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Times(pub Vec<f64>);

impl Times {
    pub fn median_ms(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            count => f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]),
        }
    }
}

pub struct Measured {
    pub kernel: String,
    /// Operands and result stay on the device.
    pub resident: Times,
    /// From matrices on the host to the result on the host.
    pub end_to_end: Times,
    /// Of the last end-to-end result.
    pub judgement: Judgement,
}

pub fn measure(gpu: &Gpu, inputs: &Inputs, settings: &Bench) -> lapidary::Result<Measured> {
    let Inputs { shape: [m, k, n], a, b, judge } = inputs;
    let op = Matmul::new(*m, *k, *n);
    for _ in 0..settings.warmup {
        gpu.matmul_blocking(a, b, &op)?;
    }
    let mut end_to_end = Vec::new();
    let mut last = Vec::new();
    for _ in 0..settings.runs {
        let start = Instant::now();
        last = gpu.matmul_blocking(a, b, &op)?;
        end_to_end.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let judgement = judge.judge(&last)?;
    let resident = gpu.benchmark_blocking(a, b, &op, settings.runs, settings.min_ms)?;
    Ok(Measured { kernel: resident.kernel.clone(), resident: Times(resident.samples_ms), end_to_end: Times(end_to_end), judgement })
}

/// Multiplications and additions a second, in thousand millions; None where the clock saw nothing.
pub fn gflops([m, k, n]: [u64; 3], ms: f64) -> Option<f64> {
    (ms > 0.0).then(|| 2.0 * m as f64 * k as f64 * n as f64 / ms / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_and_rates_count_both_operations() {
        assert_eq!((Times(vec![3.0, 1.0, 2.0]).median_ms(), Times(vec![4.0, 1.0]).median_ms()), (2.0, 2.5));
        assert_eq!((gflops([1000, 1000, 500], 1.0), gflops([1, 1, 1], 0.0)), (Some(1000.0), None));
    }
}
