//! Compiled kernels, kept for the life of the device.

use std::sync::{Mutex, PoisonError};

use super::WebGpu;
use crate::error::Result;
use crate::kernels::Kernel;

/// Pipelines by variant. A device uses a handful, and a hash map would cost the package more than it saves.
#[derive(Default)]
pub(super) struct Pipelines(Mutex<Vec<(Kernel, Pipeline)>>);

/// A compiled kernel and the layout of its bindings, which is read from the source.
#[derive(Clone)]
pub(super) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub bindings: wgpu::BindGroupLayout,
}

impl WebGpu {
    /// The kernel, compiled at its first use.
    pub(super) fn pipeline(&self, kernel: &Kernel) -> Result<Pipeline> {
        let mut known = self.pipelines.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pipeline)) = known.iter().find(|(variant, _)| variant == kernel) {
            return Ok(pipeline.clone());
        }
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(kernel.id.name()),
            source: wgpu::ShaderSource::Wgsl(kernel.wgsl()?.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(kernel.id.name()),
            layout: None,
            module: &module,
            entry_point: Some("main"),
            // Every element that is read was written before.
            compilation_options: wgpu::PipelineCompilationOptions { zero_initialize_workgroup_memory: false, ..Default::default() },
            cache: None,
        });
        let pipeline = Pipeline { bindings: pipeline.get_bind_group_layout(0), pipeline };
        known.push((kernel.clone(), pipeline.clone()));
        Ok(pipeline)
    }
}
