//! Copies of operands into rows that start where kernels read several elements at once, eight of f16 for matrix units, or turned on the way: the
//! launch that makes one, and how what comes after reads it.

use super::Params;
pub(super) use super::cooperative::VECTOR;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
#[cfg(not(target_arch = "wasm32"))]
use crate::plan::Plan;
use crate::plan::{Binding, Dispatch, Slot};

/// Threads of a block of `shaders/matmul/copy.cu`, or invocations of a workgroup of `copy.wgsl`.
pub(super) const THREADS: u32 = 64;

/// Elements that a block of `copy.cu` copies at a time.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const BLOCK: u32 = 4 * THREADS;

/// Bytes that a block of `int8_copy.cu` copies at a time.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const BLOCK_BYTES: u32 = 16 * THREADS;

/// Elements of the squares of `copy.wgsl`, and rows of one that an invocation reads.
const SQUARE: u32 = 32 * 32;
const ROWS: u32 = SQUARE / THREADS;

/// Bytes of a line of a GPU's cache, and from how many of them on a row may end with an unused part of one.
const LINE_BYTES: u64 = 128;
const MOST_WASTED: u64 = 8;

/// The most workgroups that copy an operand in WGSL: enough for large GPUs.
const MOST_WORKGROUPS: u32 = 1 << 14;

/// How a launch reads an operand: elements from row to row and from item to item of its batch, and to the first.
pub(super) struct Reads<'p> {
    stride: &'p mut u32,
    start: &'p mut u32,
    outer: &'p mut u32,
    inner: &'p mut u32,
    /// Items of the batch, and of its inner loop.
    items: [u32; 2],
}

impl<'p> Reads<'p> {
    pub(super) fn a(params: &'p mut Params) -> Self {
        let Params { lda, a_start, a_outer, a_inner, batch, inner, .. } = params;
        Self { stride: lda, start: a_start, outer: a_outer, inner: a_inner, items: [*batch, *inner] }
    }

    pub(super) fn b(params: &'p mut Params) -> Self {
        let Params { ldb, b_start, b_outer, b_inner, batch, inner, .. } = params;
        Self { stride: ldb, start: b_start, outer: b_outer, inner: b_inner, items: [*batch, *inner] }
    }

    pub(super) fn are_aligned(&self, dtype: DType) -> bool {
        [&*self.stride, self.start, self.outer, self.inner].into_iter().all(|number| number.is_multiple_of(vector(dtype)))
    }

    /// Elements of a copy of so many rows and columns of each item.
    pub(super) fn elements(&self, size: [u32; 2], turned: bool, dtype: DType) -> u64 {
        let [rows, stride] = rows_apart(size, turned, dtype);
        u64::from(self.own_items()[0]) * rows * stride
    }

    /// Items to copy: what all of them share is copied once.
    fn own_items(&self) -> [u32; 2] {
        if *self.outer == 0 && *self.inner == 0 { [1, 1] } else { self.items }
    }
}

/// Elements that such kernels read at once.
fn vector(dtype: DType) -> u32 {
    if dtype.bytes() == 1 { 16 } else { VECTOR }
}

/// Elements from one row of so many columns to the next, where it is for the crate to say: whole lines of a GPU's cache, if those are not much more. A part
/// of a row that is read at once would else lie in one line more.
pub(super) fn stride(columns: u32, dtype: DType) -> u64 {
    let line = LINE_BYTES / dtype.bytes();
    let columns = u64::from(columns);
    columns.next_multiple_of(if columns >= MOST_WASTED * line { line } else { vector(dtype).into() })
}

/// Rows of a copy, and elements from one to the next.
fn rows_apart([rows, columns]: [u32; 2], turned: bool, dtype: DType) -> [u64; 2] {
    let (rows, columns) = if turned { (columns, rows) } else { (rows, columns) };
    [rows.into(), stride(columns, dtype)]
}

/// Copies in WGSL that come before a launch, and the bytes of the scratch that they take: those that a device keeps have room of their own.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) dispatches: Vec<Dispatch>,
    pub(super) bytes: u64,
}

impl Copies {
    /// Has an operand copied that is `size` as stored, if there is room, and tells whether there is.
    pub(super) fn add(
        &mut self,
        operand: &mut Binding,
        reads: &mut Reads<'_>,
        size: [u32; 2],
        dtype: DType,
        turned: bool,
        caps: &Caps,
    ) -> bool {
        if reads.elements(size, turned, dtype) * dtype.bytes() > caps.max_binding_bytes {
            return false;
        }
        let is_f16 = u32::from(dtype == DType::F16);
        let slot = caps.kept(operand.slot).unwrap_or(Slot::Scratch);
        let offset_bytes = if slot == Slot::Scratch { self.bytes.next_multiple_of(caps.binding_alignment_bytes) } else { 0 };
        let copy = Copy {
            kernel: (KernelId::MatmulCopy, ""),
            from: *operand,
            size,
            turned,
            dtype,
            slot,
            index: 2,
            offset_bytes,
            max_bytes: caps.max_buffer_bytes,
            constants: vec![("ROWS", ROWS), ("BATCHED", 1), ("BIAS_ROWS", 0), ("HALF", is_f16), ("TURNED", u32::from(turned))],
            workgroup: SQUARE,
            most_workgroups: MOST_WORKGROUPS.min(caps.max_workgroups_per_dimension),
        };
        // One that is too large is not made.
        let Ok(dispatch) = copy.dispatch(reads) else { return false };
        let kept = dispatch.bindings[1];
        if slot == Slot::Scratch {
            self.bytes = kept.offset_bytes + kept.size_bytes;
        }
        *operand = Binding { index: operand.index, ..kept };
        self.dispatches.push(dispatch);
        true
    }
}

/// A copy to be made.
pub(super) struct Copy {
    /// By which kernel.
    pub(super) kernel: (KernelId, &'static str),
    /// What is read, at the kernel's first place.
    pub(super) from: Binding,
    /// Rows and columns of each item, as stored.
    pub(super) size: [u32; 2],
    /// Whether its rows become columns.
    pub(super) turned: bool,
    /// Of the copy's elements.
    pub(super) dtype: DType,
    /// Where the copy goes, at the kernel's place for it, and where in that it starts.
    pub(super) slot: Slot,
    pub(super) index: u32,
    pub(super) offset_bytes: u64,
    /// How far that may go.
    pub(super) max_bytes: u64,
    /// Constants of the kernel beside the number of threads.
    pub(super) constants: Vec<(&'static str, u32)>,
    /// Elements that a workgroup copies at a time, and the most workgroups: each goes on until nothing is left.
    pub(super) workgroup: u32,
    pub(super) most_workgroups: u32,
}

impl Copy {
    /// Adds the launch to a plan for CUDA, has the product's matrices read the copy, and tells the bytes of it.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn add_to(self, plan: &mut Plan, matrices: &mut [Binding], mut reads: Reads<'_>) -> Result<u64> {
        let slot = self.from.slot;
        let dispatch = self.dispatch(&mut reads)?;
        let copy = dispatch.bindings[1];
        for binding in matrices.iter_mut().filter(|binding| binding.slot == slot) {
            *binding = Binding { index: binding.index, ..copy };
        }
        plan.dispatches.push(dispatch);
        Ok(copy.size_bytes)
    }

    /// The launch, whose second binding is the copy; it is what is read from then on.
    ///
    /// # Errors
    /// [`Error::LimitExceeded`] for a copy too large.
    pub(super) fn dispatch(self, reads: &mut Reads<'_>) -> Result<Dispatch> {
        let Self {
            kernel: (id, variant),
            from,
            size,
            turned,
            dtype,
            slot,
            index,
            offset_bytes,
            max_bytes,
            constants,
            workgroup,
            most_workgroups,
        } = self;
        let ([rows, columns], [batch, inner], [copied, stride]) = (size, reads.own_items(), rows_apart(size, turned, dtype));
        let (item, elements) = (copied * stride, reads.elements(size, turned, dtype));
        let size_bytes = (elements * dtype.bytes()).next_multiple_of(256);
        let (requested, max) = (offset_bytes + size_bytes, max_bytes.min(u64::from(u32::MAX) * dtype.bytes()));
        if requested > max {
            let what = "the size in bytes of copies of operands whose rows start at no multiple of 16 bytes";
            return Err(Box::new(Error::LimitExceeded { what, requested, max }));
        }
        let params = Params {
            m: rows,
            n: columns,
            lda: *reads.stride,
            ldo: stride as u32,
            a_start: *reads.start,
            a_outer: *reads.outer,
            a_inner: *reads.inner,
            batch,
            inner,
            alpha: 1.0,
            result: u32::from(dtype != DType::F32),
            ..Params::default()
        };
        (*reads.stride, *reads.start) = (stride as u32, 0);
        if *reads.outer > 0 || *reads.inner > 0 {
            (*reads.outer, *reads.inner) = ((u64::from(inner) * item) as u32, item as u32);
        }
        Ok(Dispatch {
            kernel: Kernel {
                id,
                variant: variant.to_owned(),
                source: None,
                constants: [("THREADS", THREADS)].into_iter().chain(constants).collect(),
            },
            params: params.into(),
            bindings: vec![Binding { index: 0, ..from }, Binding { slot, index, offset_bytes, size_bytes }],
            grid: [elements.div_ceil(workgroup.into()).clamp(1, most_workgroups.into()) as u32, 1, 1],
        })
    }
}
