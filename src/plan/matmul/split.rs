//! Products of f32 in two terms of f16 each, [`Precision::F16x3`]: a launch for each operand that takes it apart, and one that multiplies.
//!
//! ```text
//! A ──split──► h, l, exponents of A's rows    ──┐
//! B ──split──► h, l, exponents of B's columns ──┴─► h·h + (h·l + l·h)/2048 by matrix units ──► C
//! ```
//!
//! Where that would not pay, would be less exact, or leaves no room, the plain kernels compute in f32.

use super::step::Step;
use super::{Params, cooperative, copy, tile, vec4};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::{Caps, MatrixUnit};
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Precision, Problem};
use crate::plan::{Binding, Dispatch, Slot};

/// Invocations of a workgroup that splits.
const THREADS: u32 = 256;

/// Elements of f16 that are read at once: rows are padded to as many, and an exponent has as much room.
const VECTOR: u64 = 8;

/// What the plain kernels take for a multiplication of a workgroup's share, in the measure of a tile's cost: they take k in parts, so that all workgroups have as
/// much to do. By `scripts/bench-peers --gpu --only f16x3,resident` on an NVIDIA H100: products of 768³, 896³ and 512x4096x512, for which these tiles leave a good
/// part of the device idle, are faster in f32, and those of 1024³ and 2048³ in two terms.
const PLAIN: f64 = 1.45;

/// For a shorter k the splitting does not pay.
const LEAST_K: u32 = 512;

/// Terms of k that matrix units sum up before f32 takes over: with half as many they are closer, and slower.
const FLUSHED_K: u32 = 128;
const FLUSHED_OF_FEW: u32 = 64;

/// Units cut off at each step of 16 terms, which adds up where all terms are of one sign. Plain f32 rounds to the nearest, which adds up to √k beside k in
/// one sum, and to less in several at once, as slices of a workgroup and parts of k are. So what counts is k over the square of those sums: where it is so
/// large 128 terms are close enough, or 64, and below neither are. `cargo test --test conformance two_terms -- --nocapture` prints how close, with shapes
/// at the least of both among them.
const MANY_TERMS: u32 = 1536;
const FEW_TERMS: u32 = 240;

pub(super) fn is_asked_for(problem: &Problem) -> bool {
    problem.precision == Precision::F16x3
}

/// Refuses a precision that the device does not have, whose matrix units are told if they are what the kernels are written for.
pub(super) fn check(problem: &Problem, unit: Option<MatrixUnit>) -> Result<()> {
    if !is_asked_for(problem) || unit.is_some() {
        return Ok(());
    }
    Err(problem.precision.not_here("this device has no matrix units that the crate can use"))
}

/// Room for an operand, in bytes: both in two terms go into one buffer.
pub(super) fn room_bytes(problem: &Problem, room_bytes: u64, caps: &Caps) -> u64 {
    if is_asked_for(problem) { room_bytes.min(caps.max_buffer_bytes / 5 * 2).max(64) } else { room_bytes }
}

/// An operand as it is stored, and where its items start.
pub(super) struct Source {
    pub(super) binding: Binding,
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) stride: u32,
    pub(super) start: u32,
    /// Elements from one item to the next in the outer and the inner loop, and how many there are: 0 and 1 where all share one.
    pub(super) outer: (u32, u32),
    pub(super) inner: (u32, u32),
    /// k is along its rows.
    pub(super) along: bool,
}

/// The same once it is split.
struct Terms {
    binding: Binding,
    stride: u32,
    outer: u32,
    inner: u32,
}

impl Source {
    /// Both operands of such a product.
    pub(super) fn both(problem: &Problem, params: &Params, [a, b]: [Binding; 2]) -> [Self; 2] {
        let Params { m, k, n, batch, inner, .. } = *params;
        let of_loop = |step: u32, count: u32| if step == 0 || count <= 1 { (0, 1) } else { (step, count) };
        let source = |binding, start, stride, turned: bool, (rows, columns), along, steps: (u32, u32)| Self {
            binding,
            rows: if turned { columns } else { rows },
            columns: if turned { rows } else { columns },
            stride,
            start,
            outer: of_loop(steps.0, batch / inner.max(1)),
            inner: of_loop(steps.1, inner),
            along,
        };
        [
            source(a, params.a_start, params.lda, problem.transpose_a, (m, k), !problem.transpose_a, (params.a_outer, params.a_inner)),
            source(b, params.b_start, params.ldb, problem.transpose_b, (k, n), problem.transpose_b, (params.b_outer, params.b_inner)),
        ]
    }

    /// Rows or columns along k.
    pub(super) fn lines(&self) -> u32 {
        if self.along { self.rows } else { self.columns }
    }

    /// Elements from one item to the next in the outer and the inner loop where each has so many.
    pub(super) fn steps(&self, item: u32) -> [u32; 2] {
        let step = |(step, _): (u32, u32), items: u32| if step == 0 { 0 } else { item * items };
        [step(self.outer, self.inner.1), step(self.inner, 1)]
    }

    /// Adds the launch that splits it into what lies behind `offset_bytes` of the scratch. None where it is too large for that.
    fn split(&self, before: &mut Vec<Dispatch>, offset_bytes: &mut u64, caps: &Caps) -> Option<Terms> {
        let lines = self.lines();
        let stride = copy::stride(self.columns, DType::F16);
        let item = 2 * u64::from(self.rows) * stride + VECTOR * u64::from(lines);
        let count = self.outer.1.checked_mul(self.inner.1)?;
        let size_bytes = item.checked_mul(count.into())?.checked_mul(DType::F16.bytes())?;
        let kept = caps.kept(self.binding.slot);
        let (slot, start_bytes) = kept.map_or((Slot::Scratch, *offset_bytes), |slot| (slot, 0));
        let binding = Binding { slot, index: self.binding.index, offset_bytes: start_bytes, size_bytes };
        if kept.is_none() {
            *offset_bytes = (*offset_bytes + size_bytes).next_multiple_of(caps.binding_alignment_bytes.max(16));
        }
        if size_bytes > caps.max_binding_bytes || *offset_bytes > caps.max_buffer_bytes || count > caps.max_workgroups_per_dimension {
            return None;
        }
        let lanes = if self.along { (self.columns / 16).next_power_of_two().clamp(8, THREADS) } else { THREADS / 4 };
        let groups = THREADS / lanes;
        let in_workgroup = if self.along { groups } else { 4 * groups };
        let ((outer_step, _), (inner_step, inner_count)) = (self.outer, self.inner);
        let params = Params {
            m: self.rows,
            n: self.columns,
            lda: self.stride,
            ldo: stride as u32,
            a_start: self.start,
            batch: count,
            inner: inner_count,
            a_outer: outer_step,
            a_inner: inner_step,
            ..Params::default()
        };
        let constants = vec![
            ("THREADS", THREADS),
            ("LANES", lanes),
            ("GROUPS", groups),
            ("ALONG", u32::from(self.along)),
            ("A_VEC4", vec4(&[self.start, self.stride, outer_step, inner_step])),
            // What store.wgsl asks: pairs of f16 are written, four at a time, and nothing is added to them.
            ("OUT_VEC4", 1),
            ("RESULT_F16", 1),
            ("WORDS", 0),
            ("READS_C", 0),
            ("ACCUMULATES", 0),
            ("READS_BIAS", 0),
            ("BIAS_ROWS", 0),
            ("ACTIVATION", 0),
            ("BATCHED", u32::from(count > 1)),
        ];
        let variant = if self.along { "along" } else { "across" };
        before.push(Dispatch {
            kernel: Kernel { id: KernelId::MatmulSplit, variant: variant.to_owned(), source: None, constants },
            params: params.into(),
            bindings: vec![Binding { index: 0, ..self.binding }, Binding { index: 2, ..binding }],
            grid: [lines.div_ceil(in_workgroup).min(caps.max_workgroups_per_dimension), 1, count],
        });
        let [outer, inner] = self.steps(item as u32);
        Some(Terms { binding, stride: stride as u32, outer, inner })
    }
}

/// The launches for such a product; None where nobody asked for one, or plain f32 is better.
pub(super) fn step(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Option<Step> {
    let Params { m, k, n, batch, .. } = params;
    let in_parts = k < problem.k && problem.result != DType::F32;
    if !is_asked_for(problem) || k < LEAST_K || in_parts {
        return None;
    }
    let unit = cooperative::unit(caps)?;
    let terms = k / tile::cheapest(problem, &params, caps)?.sums().pow(2);
    if terms < FEW_TERMS {
        return None;
    }
    let flushed_k = if terms < MANY_TERMS { FLUSHED_OF_FEW } else { FLUSHED_K };
    let plain = PLAIN * f64::from(m) * f64::from(k) * f64::from(n) * f64::from(batch) / cooperative::PARALLEL_WORKGROUPS as f64;
    let (_, tile) = cooperative::SPLIT_TILES
        .into_iter()
        .filter(|tile| tile.fits(problem, &unit, caps) && cooperative::has_grid(tile, &params, caps))
        .map(|tile| (tile.cost([m, k, n], batch, 1), tile))
        .filter(|(cost, _)| *cost < plain)
        .min_by(|(x, _), (y, _)| x.total_cmp(y))?;
    let (mut before, mut bytes) = (Vec::new(), 0);
    let [of_a, of_b] = Source::both(problem, &params, operands);
    let a = of_a.split(&mut before, &mut bytes, caps)?;
    let b = of_b.split(&mut before, &mut bytes, caps)?;
    let params = Params {
        lda: a.stride,
        ldb: b.stride,
        a_start: 0,
        b_start: 0,
        a_outer: a.outer,
        b_outer: b.outer,
        a_inner: a.inner,
        b_inner: b.inner,
        ..params
    };
    let step = cooperative::launch(problem, params, [a.binding, b.binding], &tile, &unit, 1, flushed_k / tile.k);
    Some(Step { before, before_bytes: bytes, ..step })
}
