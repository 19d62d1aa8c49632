//! Measurements as files: JSON, CSV and Markdown.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::bench::Row;
use crate::destination::Destination;
use crate::failure::Failure;
use crate::measure::{Measured, Times, gflops};
use crate::output;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Csv,
    Markdown,
}

impl Format {
    /// By the file's ending.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// Writes the rows to a file.
pub fn write(file: &Destination, format: Format, rows: &[Row], settings: &Value) -> Result<(), Failure> {
    let text = match format {
        Format::Json => output::json_text("bench", fields(rows, settings)),
        Format::Csv => csv(rows),
        Format::Markdown => markdown(rows),
    };
    file.write(|out| out.write_all(text.as_bytes()))?;
    output::note(&format!("written to {}", file.path.display()));
    Ok(())
}

/// All that is known, for JSON.
pub fn fields(rows: &[Row], settings: &Value) -> Value {
    json!({ "settings": settings, "results": rows.iter().map(row_json).collect::<Vec<_>>() })
}

fn row_json(row: &Row) -> Value {
    let Row { backend, adapter, device, standing, ceilings, shape, measured, .. } = row;
    let [m, k, n] = shape;
    let mut fields = json!({
        "backend": backend.name(),
        "adapter": adapter,
        "device": device,
        "standing": standing,
        "m": m,
        "k": k,
        "n": n,
        "dtype": row.dtype.name(),
        "ceilings": ceilings.map(|best| json!({ "fma_gflops": best.fma_gflops, "copy_gbs": best.copy_gbs })),
    });
    match measured {
        Err(error) => fields["error"] = error.as_str().into(),
        Ok(Measured { kernel, resident, end_to_end, judgement }) => {
            let times = |times: &Times| {
                let median_ms = times.median_ms();
                json!({ "median_ms": median_ms, "gflops": gflops(*shape, median_ms), "samples_ms": times.0 })
            };
            fields["kernel"] = kernel.as_str().into();
            fields["resident"] = times(resident);
            let [of_fma, of_copy] = row.shares();
            fields["resident"]["share_of_fma"] = of_fma.into();
            fields["resident"]["share_of_copy"] = of_copy.into();
            fields["end_to_end"] = times(end_to_end);
            fields["verdict"] = json!({
                "right": judgement.verdict.map(|verdict| verdict.is_right()),
                "judged_rows": judgement.rows,
                "rows": judgement.of_rows,
                "wrong_elements": judgement.verdict.map(|verdict| verdict.wrong),
                "worst_error_by_bound": judgement.verdict.map(|verdict| verdict.worst_ratio),
            });
        }
    }
    fields
}

/// A row's cells: what all formats of text have.
fn cells(row: &Row) -> [String; 15] {
    let Row { backend, adapter, device, standing, shape: [m, k, n], dtype, measured, .. } = row;
    let adapter = adapter.map_or_else(String::new, |adapter| adapter.to_string());
    let (kernel, numbers, verdict) = match measured {
        Err(error) => (String::new(), Default::default(), error.clone()),
        Ok(measured) => {
            let times = [&measured.resident, &measured.end_to_end].map(Times::median_ms);
            let rate = |ms| gflops(row.shape, ms).map_or_else(String::new, |gflops| format!("{gflops:.3}"));
            let [resident, end_to_end] = times;
            let numbers = [format!("{resident:.6}"), rate(resident), format!("{end_to_end:.6}"), rate(end_to_end)];
            (measured.kernel.clone(), numbers, measured.judgement.to_string())
        }
    };
    let device = format!("{device} ({standing})");
    let [share_of_fma, share_of_copy] = row.shares().map(|share| share.map_or_else(String::new, |share| format!("{share:.4}")));
    let [resident_ms, resident_gflops, end_to_end_ms, end_to_end_gflops] = numbers;
    [
        backend.to_string(),
        adapter,
        device,
        m.to_string(),
        k.to_string(),
        n.to_string(),
        dtype.name().to_owned(),
        kernel,
        resident_ms,
        resident_gflops,
        share_of_fma,
        share_of_copy,
        end_to_end_ms,
        end_to_end_gflops,
        verdict,
    ]
}

const HEADINGS: [&str; 15] = [
    "backend",
    "adapter",
    "device",
    "m",
    "k",
    "n",
    "dtype",
    "kernel",
    "resident_ms",
    "resident_gflops",
    "resident_share_of_fma",
    "resident_share_of_copy",
    "end_to_end_ms",
    "end_to_end_gflops",
    "verdict",
];

/// As RFC 4180 has it.
fn csv(rows: &[Row]) -> String {
    let quoted = |cell: &String| {
        if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
    };
    let mut text = HEADINGS.join(",") + "\r\n";
    for row in rows {
        text += &cells(row).iter().map(quoted).collect::<Vec<_>>().join(",");
        text += "\r\n";
    }
    text
}

fn markdown(rows: &[Row]) -> String {
    let mut text = format!("| {} |\n|{}\n", HEADINGS.join(" | "), "---|".repeat(HEADINGS.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", cells(row).map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use lapidary::BackendId;

    use super::*;

    #[test]
    fn what_parts_cells_is_quoted() {
        let failed = Row {
            backend: BackendId::Simd,
            adapter: Some(0),
            device: "a | \"CPU\"".to_owned(),
            standing: "fallback",
            ceilings: None,
            shape: [1, 2, 3],
            dtype: lapidary::DType::F32,
            measured: Err("too large, by far".to_owned()),
        };
        assert!(
            csv(std::slice::from_ref(&failed))
                .ends_with("simd,0,\"a | \"\"CPU\"\" (fallback)\",1,2,3,f32,,,,,,,,\"too large, by far\"\r\n")
        );
        assert!(
            markdown(&[failed])
                .ends_with("| simd | 0 | a \\| \"CPU\" (fallback) | 1 | 2 | 3 | f32 |  |  |  |  |  |  |  | too large, by far |\n")
        );
    }
}
