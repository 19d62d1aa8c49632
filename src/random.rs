//! Matrices that are the same on every machine: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014), counter-based, so that any part can be made alone.

/// Element `index` of the sequence of a seed: uniform in [−1, 1), a multiple of 2⁻²³.
pub fn element(seed: u64, index: u64) -> f32 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

/// Fills a part of the sequence of a seed, from element `start` on.
pub fn fill(seed: u64, start: u64, values: &mut [f32]) {
    for (index, value) in values.iter_mut().enumerate() {
        *value = element(seed, start.wrapping_add(index as u64));
    }
}

/// The first `length` elements of a seed's sequence.
pub fn matrix(length: usize, seed: u64) -> Vec<f32> {
    let mut values = vec![0.0; length];
    fill(seed, 0, &mut values);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_fixed_and_uniform() {
        let values = matrix(10_000, 1);
        assert_eq!(values[..3], [0.133_123_04, 0.491_563_44, 0.942_005_4]);
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.03 && values.iter().all(|x| (-1.0..1.0).contains(x)));
        let mut part = [0.0; 50];
        fill(1, 50, &mut part);
        assert_eq!(matrix(100, 1)[50..], part);
        fill(1, u64::MAX, &mut part);
        assert_eq!(part[1..], matrix(49, 1), "behind the last element comes the first");
    }
}
