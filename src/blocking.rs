//! Natively a thread may wait: each async method again, blocking, and the handle that a process shares.

use std::cell::Cell;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use crate::benchmark::Benchmark;
use crate::call::Operand;
use crate::error::Result;
use crate::expr::Expr;
use crate::gpu::{Gpu, Report};
use crate::host::{HostSlice, HostVec};
use crate::ops::matmul::Matmul;
use crate::options::Options;
use crate::selector::Selector;
use crate::tensor::Tensor;

/// The handle that the process shares, opened with default options at its first use. Once anybody has [closed](Gpu::close) it, it stays closed.
///
/// # Errors
/// As [`Gpu::open`]; the next call tries again.
pub fn default_gpu() -> Result<&'static Gpu> {
    static SHARED: OnceLock<Gpu> = OnceLock::new();
    if let Some(gpu) = SHARED.get() {
        return Ok(gpu);
    }
    let opened = Gpu::open_blocking(Options::default())?;
    Ok(SHARED.get_or_init(|| opened))
}

thread_local! {
    static IS_BLOCKED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread waits for the future that asks, so that no other task of it goes on meanwhile.
pub(crate) fn is_blocked() -> bool {
    IS_BLOCKED.get()
}

/// Waits for a future. What is ready at once, as CPUs' work is, is spared what a thread needs to wait.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// Puts back what was before, also if the future panics.
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            IS_BLOCKED.set(self.0);
        }
    }

    let _before = Before(IS_BLOCKED.replace(true));
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => pollster::block_on(future),
    }
}

impl Gpu {
    /// [`open`](Self::open), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn open_blocking(options: Options) -> Result<Self> {
        block_on(Self::open(options))
    }

    /// [`select`](Self::select), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn select_blocking(selector: &Selector) -> Result<Self> {
        block_on(Self::select(selector))
    }

    /// [`matmul`](Self::matmul), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn matmul_blocking<'a, 'b>(&self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>, op: &Matmul<'_>) -> Result<Vec<f32>> {
        block_on(self.matmul(a, b, op))
    }

    /// [`matmul_report`](Self::matmul_report), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn matmul_report_blocking<'a, 'b>(&self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>, op: &Matmul<'_>) -> Result<Report> {
        block_on(self.matmul_report(a, b, op))
    }

    /// [`matmul_values`](Self::matmul_values), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn matmul_values_blocking<'a, 'b>(&self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>, op: &Matmul<'_>) -> Result<HostVec> {
        block_on(self.matmul_values(a, b, op))
    }

    /// [`matmul_tensor`](Self::matmul_tensor), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn matmul_tensor_blocking<'a, 'b>(&self, a: impl Into<Operand<'a>>, b: impl Into<Operand<'b>>, op: &Matmul<'_>) -> Result<Tensor> {
        block_on(self.matmul_tensor(a, b, op))
    }

    /// [`benchmark`](Self::benchmark), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn benchmark_blocking<'a, 'b>(
        &self,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'b>>,
        op: &Matmul<'_>,
        samples: u32,
        min_ms: f64,
    ) -> Result<Benchmark> {
        block_on(self.benchmark(a, b, op, samples, min_ms))
    }

    /// [`evaluate`](Self::evaluate), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn evaluate_blocking(&self, expr: &Expr) -> Result<Tensor> {
        block_on(self.evaluate(expr))
    }

    /// [`tensor`](Self::tensor), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn tensor_blocking<'a>(&self, values: impl Into<HostSlice<'a>>, rows: u64, columns: u64) -> Result<Tensor> {
        block_on(self.tensor(values, rows, columns))
    }
}

impl Tensor {
    /// [`to_host`](Self::to_host), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn to_host_blocking(&self) -> Result<HostVec> {
        block_on(self.to_host())
    }

    /// The same as f32, blocking.
    ///
    /// # Errors
    /// As [`to_host`](Self::to_host).
    pub fn to_vec_blocking(&self) -> Result<Vec<f32>> {
        Ok(self.to_host_blocking()?.into_vec())
    }
}
