//! `lapidary matmul`: the product of two files.

use std::io::Write;
use std::path::Path;

use lapidary::{Gpu, Matmul, Options};
use serde_json::json;

use crate::arguments::{Common, Files};
use crate::destination::Destination;
use crate::failure::Failure;
use crate::npy::{self, Matrix};
use crate::output;
use crate::status::{describe, standing};

pub fn run(common: &Common, files: &Files) -> Result<(), Failure> {
    let out = Destination::new(&files.out)?;
    let trace = files.trace.as_deref().map(Destination::new).transpose()?;
    let read = |name: &str, path: &Path| {
        let matrix = npy::read(path).map_err(|fault| Failure::file(path, fault))?;
        if matrix.dtype.bytes > 4 {
            output::note(&format!("{name} is {}: rounded to f32, in which the product is computed", matrix.dtype));
        }
        Ok::<Matrix, Failure>(matrix)
    };
    let (a, b) = (read("A", &files.a)?, read("B", &files.b)?);
    let (m, k, n) = (a.rows, a.columns, b.columns);
    if k != b.rows {
        let sides = format!("A is {m} × {k} and B is {} × {n}", b.rows);
        return Err(Failure::Failed(format!("{sides}, but A must have as many columns as B has rows")));
    }
    let profiles = files.profile || trace.is_some();
    let gpu = Gpu::open_blocking(Options { profile: profiles || common.options.profile, ..common.options.clone() })?;
    // A matrix by columns is its transpose by rows.
    let op = Matmul::new(m, k, n).transpose_a(a.by_columns).transpose_b(b.by_columns);
    let report = gpu.matmul_report_blocking(&a.values, &b.values, &op)?;
    // After the product: a recovery may have changed the device.
    let info = gpu.info()?;
    out.write(|out| npy::write(out, m, n, &report.data))?;
    if let Some(trace) = &trace {
        trace.write(|out| out.write_all(gpu.profile().to_trace().as_bytes()))?;
    }
    if !common.json {
        if files.profile {
            output::print(&gpu.profile().to_string())?;
        }
        output::note(&format!("{m} × {n} in {}: {}, {}, {:.3} ms", files.out.display(), describe(&info), report.kernel, report.total_ms));
        return Ok(());
    }
    let mut fields = json!({
        "m": m,
        "k": k,
        "n": n,
        "out": files.out.display().to_string(),
        "dtypes": [a.dtype.to_string(), b.dtype.to_string()],
        "backend": report.backend.name(),
        "device": report.device,
        "standing": standing(info.kind),
        "kernel": report.kernel,
        "upload_ms": report.upload_ms,
        "kernel_ms": report.kernel_ms,
        "download_ms": report.download_ms,
        "total_ms": report.total_ms,
    });
    if files.profile {
        fields["profile"] = serde_json::from_str(&gpu.profile().to_json()).map_err(|error| Failure::Failed(error.to_string()))?;
    }
    output::print_json("matmul", fields)
}
