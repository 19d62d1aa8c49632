//! A profile as a table of 80 columns: a row for each operation of a size and a kernel, however often it ran.

use std::fmt;

use super::{Operation, Phase, Profile};

/// Operations that are alike.
struct Row<'a> {
    first: &'a Operation,
    count: u32,
    total_ms: f64,
    phases: [Phase; 3],
}

impl<'a> Row<'a> {
    fn add(rows: &mut Vec<Self>, operation: &'a Operation) {
        let alike = |row: &&mut Row<'_>| {
            let Operation { name, size, backend, device, kernel, .. } = row.first;
            (name, size, backend, device, kernel)
                == (&operation.name, &operation.size, &operation.backend, &operation.device, &operation.kernel)
        };
        let phases = [operation.upload, operation.compute, operation.download];
        match rows.iter_mut().find(alike) {
            None => rows.push(Row { first: operation, count: 1, total_ms: operation.total_ms, phases }),
            Some(row) => {
                row.count += 1;
                row.total_ms += operation.total_ms;
                for (sum, phase) in row.phases.iter_mut().zip(phases) {
                    sum.ms += phase.ms;
                    sum.bytes += phase.bytes;
                    // One of them by the host's clock, and the sum is.
                    sum.device_clock &= phase.device_clock;
                }
            }
        }
    }
}

/// The mean, marked if it is not by the device's clock.
fn mean(phase: &Phase, count: u32) -> String {
    if phase.bytes == 0 {
        return "-".to_owned();
    }
    format!("{:.3}{}", phase.ms / f64::from(count), if phase.device_clock { ' ' } else { '*' })
}

/// Thousand million bytes a second.
fn rate(phase: &Phase) -> String {
    if phase.bytes == 0 || phase.ms <= 0.0 { "-".to_owned() } else { format!("{:.1}", phase.bytes as f64 / phase.ms / 1e6) }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = Vec::new();
        for operation in &self.operations {
            Row::add(&mut rows, operation);
        }
        writeln!(
            f,
            "{:<28} {:>5} {:>9} {:>9} {:>9} {:>9} {:>5}",
            "operation", "count", "total ms", "upload ", "kernel ", "download ", "GB/s"
        )?;
        for Row { first, count, total_ms, phases: [upload, compute, download] } in &rows {
            let label = format!("{} {} {}", first.backend, first.name, first.size);
            let [up, kernel, down] = [upload, compute, download].map(|phase| mean(phase, *count));
            let total_ms = total_ms / f64::from(*count);
            writeln!(f, "{label:<28.28} {count:>5} {total_ms:>9.3} {up:>9} {kernel:>9} {down:>9} {:>5.5}", rate(compute))?;
            if !first.kernel.is_empty() {
                writeln!(f, "  {:.77}", first.kernel)?;
            }
        }
        writeln!(f, "Means in ms, * by the host's clock. GB/s: what the kernel has to move, once.")?;
        if self.left_out > 0 { writeln!(f, "{} more were not recorded.", self.left_out) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;

    #[test]
    fn like_operations_share_a_row() {
        let text = example().to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let row = text.lines().nth(1).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>()[3..], ["2", "4.000", "1.000*", "0.500", "2.000*", "0.0"]);
        assert_eq!(text.lines().count(), 1 + 2 * 2 + 1, "{text}");
    }
}
