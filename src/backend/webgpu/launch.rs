//! From a plan to launches: what both a product that somebody waits for and one that is queued are made of.

use std::future::Future;
use std::pin::Pin;

use super::WebGpu;
use super::buffer::{Buffer, Place};
use super::pipeline::Pipeline;
use crate::error::Result;
use crate::plan::matmul::group::place;
use crate::plan::{Dispatch, Params, Plan};

/// Parameters of each launch lie this far apart, which every adapter allows.
pub(super) const PARAMS_STRIDE_BYTES: usize = 256;

/// What an error scope caught, once the device says so.
#[cfg(target_arch = "wasm32")]
pub(super) type ScopeFuture = Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>;
/// What an error scope caught.
#[cfg(not(target_arch = "wasm32"))]
pub(super) type ScopeFuture = Pin<Box<dyn Future<Output = Option<wgpu::Error>> + Send>>;

/// Error scopes that catch what can be said of a submission.
pub(super) struct Scopes([wgpu::ErrorScopeGuard; 2]);

impl Scopes {
    pub(super) fn open(device: &wgpu::Device) -> Self {
        Self([wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation].map(|filter| device.push_error_scope(filter)))
    }

    /// What was caught of faults, and last what there was no memory for.
    pub(super) fn close(self) -> Vec<ScopeFuture> {
        let [outer, inner] = self.0;
        // They close in the reverse order.
        let inner: ScopeFuture = Box::pin(inner.pop());
        vec![inner, Box::pin(outer.pop())]
    }
}

/// Adds the parameters of a plan's launches, as a buffer has to hold them.
pub(super) fn add_params(bytes: &mut Vec<u8>, plan: &Plan) {
    for dispatch in &plan.dispatches {
        bytes.extend_from_slice(dispatch.params.bytes());
        bytes.resize(bytes.len().next_multiple_of(PARAMS_STRIDE_BYTES), 0);
    }
}

/// Bytes of a launch's parameters; of a group's, of as many products as may join.
pub(super) fn most_params_bytes(dispatch: &Dispatch) -> usize {
    let places = dispatch.kernel.constant("GROUPED") as usize * size_of::<[u32; 4]>();
    dispatch.params.bytes().len().next_multiple_of(16) + places
}

/// Launches a plan's kernels one after the other, but for those that are `done`. `is_set` tells that the last launches were of the same pipelines.
/// Of a plan for groups, `many` is how many products there are, and where in their buffer the parameters start.
pub(super) fn launch(
    pass: &mut wgpu::ComputePass<'_>,
    plan: &Plan,
    pipelines: &[Pipeline],
    groups: &[wgpu::BindGroup],
    is_set: bool,
    done: &[Option<usize>],
    many: Option<(u32, u32)>,
) {
    let is_one = pipelines.len() == 1 + done.iter().flatten().count();
    for (at, ((dispatch, pipeline), group)) in plan.dispatches.iter().zip(pipelines).zip(groups).enumerate() {
        if done.contains(&Some(at)) {
            continue;
        }
        if !is_set || !is_one {
            pass.set_pipeline(&pipeline.pipeline);
        }
        pass.set_bind_group(0, group, many.as_ref().map_or(&[], |(_, at)| std::slice::from_ref(at)));
        let [x, y, z] = dispatch.grid;
        pass.dispatch_workgroups(x, y, many.map_or(z, |(count, _)| count));
    }
}

impl WebGpu {
    /// The kernels of a plan, compiled.
    pub(super) fn pipelines(&self, plan: &Plan) -> Result<Vec<Pipeline>> {
        let mut pipelines = Vec::new();
        for dispatch in &plan.dispatches {
            pipelines.push(self.pipeline(&dispatch.kernel)?);
        }
        Ok(pipelines)
    }

    /// What each launch sees: parts of its plan's buffers in the order of their slots, and its parameters, those of the first starting at `params_at` bytes.
    pub(super) fn groups(
        &self,
        plan: &Plan,
        pipelines: &[Pipeline],
        buffers: &[&Buffer],
        params: &wgpu::Buffer,
        mut params_at: usize,
    ) -> Vec<wgpu::BindGroup> {
        let mut groups = Vec::new();
        for (dispatch, pipeline) in plan.dispatches.iter().zip(pipelines) {
            let entry = |binding, buffer, offset, bytes| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(bytes) }),
            };
            let is_group = dispatch.kernel.constant("GROUPED") > 0;
            let mut entries = vec![entry(Params::BINDING, params, params_at as u64, most_params_bytes(dispatch) as u64)];
            for binding in &dispatch.bindings {
                let buffer = buffers[binding.slot.index()];
                let (offset, size) = match &buffer.place {
                    // Each product is told where in the slab it finds its own.
                    Place::Slot(slot) if is_group && place(binding).is_some() => (0, slot.raw.size()),
                    _ => (buffer.at_bytes() + binding.offset_bytes, binding.size_bytes),
                };
                entries.push(entry(binding.index, buffer.raw(), offset, size));
            }
            groups.push(self.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.bindings,
                entries: &entries,
            }));
            params_at += PARAMS_STRIDE_BYTES;
        }
        groups
    }
}
