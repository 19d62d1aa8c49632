//! Compiled kernels, of which the latest are kept while the device lives.
//!
//! wgpu compiles what is used at once, and all that follows waits for it. So in the browser a kernel that is wanted again and again is
//! compiled beside other work by `ahead.js`, and another computes in its place until then; see [`Backend::plan_soon`](crate::backend::Backend::plan_soon).

#[cfg(target_arch = "wasm32")]
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use super::WebGpu;
use crate::backend::recent::Recent;
use crate::error::Result;
use crate::kernels::Kernel;

/// Pipelines by variant. Those that go are held by whatever of them is under way.
#[derive(Default)]
pub(super) struct Pipelines {
    known: Mutex<Recent<Pipeline>>,
    #[cfg(target_arch = "wasm32")]
    ahead: Mutex<Vec<(Kernel, Rc<ahead::Ahead>)>>,
}

/// A compiled kernel and the layout of its bindings, which is read from the source.
#[derive(Clone)]
pub(super) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub bindings: wgpu::BindGroupLayout,
}

/// What a kernel's source declares: its bindings by their numbers.
fn declared(code: &str) -> impl Iterator<Item = (u32, wgpu::BufferBindingType)> {
    code.lines().filter_map(|line| {
        let (binding, kind) = line.strip_prefix("@group(0) @binding(")?.split_once(')')?;
        // Looking at the start alone: to look for a text anywhere brings kilobytes of code to the npm package.
        let ty = match kind.starts_with(" var<uniform>") {
            true => wgpu::BufferBindingType::Uniform,
            _ => wgpu::BufferBindingType::Storage { read_only: kind.starts_with(" var<storage, read>") },
        };
        Some((binding.parse().ok()?, ty))
    })
}

impl WebGpu {
    /// The kernel, compiled at its first use.
    pub(super) fn pipeline(&self, kernel: &Kernel) -> Result<Pipeline> {
        let mut known = self.pipelines.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = known.get(kernel) {
            return Ok(pipeline.clone());
        }
        let code = kernel.wgsl()?;
        // What a group is told is somewhere else each time.
        let moves = kernel.constant("GROUPED") > 0;
        let entry = |(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: moves && ty == wgpu::BufferBindingType::Uniform,
                min_binding_size: None,
            },
            count: None,
        };
        let entries: Vec<_> = declared(&code).map(entry).collect();
        let bindings = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&bindings)],
            immediate_size: 0,
        });
        let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(kernel.id.name()),
            source: wgpu::ShaderSource::Wgsl(code.into()),
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(kernel.id.name()),
            layout: Some(&layout),
            module: &module,
            entry_point: Some("main"),
            // Every element that is read was written before.
            compilation_options: wgpu::PipelineCompilationOptions { zero_initialize_workgroup_memory: false, ..Default::default() },
            cache: None,
        });
        let pipeline = Pipeline { bindings, pipeline };
        drop(known.keep(kernel.clone(), pipeline.clone()));
        Ok(pipeline)
    }
}

#[cfg(target_arch = "wasm32")]
mod ahead {
    use std::cell::{Cell, OnceCell};

    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::{JsFuture, spawn_local};

    use super::*;
    use crate::backend::recent::MOST;

    /// How often a kernel has to be wanted before it is compiled: what is computed a few times is done before, and three products are computed
    /// by a device at most to find out whether it is to be used.
    const WANTED: u32 = 4;

    /// A kernel that is not compiled yet.
    #[derive(Default)]
    pub(super) struct Ahead {
        wanted: Cell<u32>,
        /// What the browser has made, or why it has not: kept until wgpu asks for the same.
        made: OnceCell<Result<JsValue, JsValue>>,
    }

    #[wasm_bindgen(module = "/src/backend/webgpu/ahead.js")]
    extern "C" {
        fn compile(device: &JsValue, code: &str, bindings: &[u32]) -> js_sys::Promise;
    }

    impl WebGpu {
        /// Whether a kernel can be used at once. One that cannot is compiled, beside whatever else there is to do, if it is wanted often enough.
        pub(in super::super) fn is_compiled(&self, kernel: &Kernel) -> Result<bool> {
            if self.pipelines.known.lock().unwrap_or_else(PoisonError::into_inner).get(kernel).is_some() {
                return Ok(true);
            }
            let mut all = self.pipelines.ahead.lock().unwrap_or_else(PoisonError::into_inner);
            let ahead = match all.iter().position(|(variant, _)| variant == kernel) {
                Some(at) if all[at].1.made.get().is_some() => {
                    // Wgpu finds it made from here on.
                    self.pipeline(kernel)?;
                    all.swap_remove(at);
                    return Ok(true);
                }
                Some(at) => Rc::clone(&all[at].1),
                None => {
                    // Of so many most are not wanted any more, and those that are will be wanted again.
                    if all.len() >= MOST {
                        all.clear();
                    }
                    all.push((kernel.clone(), Rc::default()));
                    return Ok(false);
                }
            };
            ahead.wanted.set(ahead.wanted.get() + 1);
            if ahead.wanted.get() + 1 == WANTED {
                self.compile(kernel.wgsl()?, ahead);
            }
            Ok(false)
        }

        fn compile(&self, code: String, ahead: Rc<Ahead>) {
            let Some(device) = self.device.as_webgpu().cloned() else { return };
            spawn_local(async move {
                // What called is to be on its way first: the browser reads the source before all that is sent after it.
                crate::clock::turn().await;
                let kinds = |(binding, ty)| match ty {
                    wgpu::BufferBindingType::Uniform => [binding, 0],
                    wgpu::BufferBindingType::Storage { read_only: true } => [binding, 1],
                    wgpu::BufferBindingType::Storage { .. } => [binding, 2],
                };
                let bindings: Vec<u32> = declared(&code).flat_map(kinds).collect();
                // A kernel that cannot be compiled is an error of who uses it.
                let _ = ahead.made.set(JsFuture::from(compile(&device, &code, &bindings)).await);
            });
        }
    }
}
