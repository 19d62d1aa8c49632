//! Rows so many that a GPU has each folded by few lanes, and rows that begin anywhere among fours.

use super::*;

/// Rows and their lengths: short ones, ones of fours, and such as begin within a four, of which long ones have more than a block.
const SHAPES: &[(usize, usize)] = &[
    (1_048_579, 3),
    (1_048_579, 6),
    (262_147, 33),
    (65_539, 100),
    (65_539, 101),
    (32_771, 258),
    (16_387, 1027),
    (1025, 4099),
    (3, 70_001),
];

/// Between -2 and 2, many of them alike.
fn values(elements: usize) -> Vec<f32> {
    let mut values = vec![0.0; elements];
    random::fill(3, 0, &mut values);
    values.iter().map(|value| (value * 16.0).round() / 8.0).collect()
}

/// Rows enough to see them all by: the first, the last, and some between.
fn some_rows(rows: usize) -> impl Iterator<Item = usize> {
    (0..rows).filter(move |&row| row < 9 || row + 9 > rows || row % 61 == 7)
}

#[test]
fn rows_that_are_many_or_begin_anywhere() {
    everywhere(|gpu, backend| {
        for &(rows, count) in SHAPES {
            let values = values(rows * count);
            let shape = [rows as u64, count as u64];
            let wide: Vec<f64> = values.iter().map(|&value| value.into()).collect();
            let x = tensor(gpu, &values, &shape);
            for dtype in [DType::F32, DType::F16] {
                // All of them are numbers of f16 too.
                let x = &Expr::from(gpu.evaluate_blocking(&x.cast(dtype)).unwrap());
                for (name, fold, exact, bound) in CASES {
                    // What else is computed of f16 than sums and extremes is rounded to f16 in between.
                    if dtype == DType::F16 && !["sum", "amax", "var", "log_sum_exp"].contains(name) {
                        continue;
                    }
                    let found = host::<f32>(gpu, &fold(x, &[1]).cast(DType::F32));
                    for row in some_rows(rows) {
                        let of_row = &wide[row * count..][..count];
                        let (found, exact, mut bound) = (f64::from(found[row]), exact(of_row), bound(of_row));
                        if dtype == DType::F16 {
                            bound += exact.abs() * f64::from(f16::EPSILON);
                        }
                        let what = || format!("{backend}: {name} of row {row} of {rows} of {count} of {dtype}: {found}, not {exact}");
                        assert!((found - exact).abs() <= bound, "{}", what());
                    }
                }
            }
        }
    });
}

#[test]
fn what_stands_out_is_found_wherever_a_row_begins() {
    everywhere(|gpu, backend| {
        for &(rows, count) in SHAPES {
            let mut values = values(rows * count);
            // Where in a row it is, its edges among them.
            let place = |row: usize| if row % 5 < 2 { row % 5 * (count - 1) } else { row * 7 % count };
            for row in 0..rows {
                let out = [5.0, f32::INFINITY, f32::NAN, -f32::NAN][row % 4];
                values[row * count + place(row)] = out;
                // The first of two alike is told.
                values[row * count + count - 1] = out;
            }
            for dtype in [DType::F32, DType::F16] {
                let x = tensor(gpu, &values, &[rows as u64, count as u64]).cast(dtype);
                let x = Expr::from(gpu.evaluate_blocking(&x).unwrap());
                let places = host::<u32>(gpu, &x.argmax(Some(&[1]), false).cast(DType::U32));
                let most = host::<f32>(gpu, &x.amax(Some(&[1]), false).cast(DType::F32));
                let least = host::<f32>(gpu, &(-&x).amin(Some(&[1]), false).cast(DType::F32));
                for row in 0..rows {
                    let out = values[row * count + place(row)];
                    let is_out = |found: f32| found == out || found.is_nan() && out.is_nan();
                    let what = || format!("{backend}: row {row} of {rows} of {count} of {dtype}: {} at {}", most[row], places[row]);
                    assert!(places[row] as usize == place(row) && is_out(most[row]) && is_out(-least[row]), "{}", what());
                }
            }
        }
    });
}
