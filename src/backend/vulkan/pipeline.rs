//! Compiled kernels: the latest are kept while the device lives, and by a cache on disk beyond it.

use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;
use naga::back::spv::Capability;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags};

use super::cache::Cache;
use super::context::Context;
use crate::backend::recent::Recent;
use crate::compute::reflection;
use crate::error::{Error, Result};
use crate::kernels::Kernel;

/// Pipelines by variant. Those that go are held by whatever of them is under way.
pub(super) struct Pipelines {
    known: Mutex<Recent<Arc<Pipeline>>>,
    pub checks: Checks,
    /// Whether the device multiplies four integers of a word at once.
    packed_dot: bool,
    cache: Cache,
    context: Arc<Context>,
}

/// A compiled kernel and the layout of its bindings, which is read from the source.
pub(super) struct Pipeline {
    pub handle: vk::Pipeline,
    pub layout: vk::PipelineLayout,
    pub bindings: vk::DescriptorSetLayout,
    context: Arc<Context>,
}

/// What a shader does beside its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Checks {
    /// Whether indices are kept inside of arrays and buffers.
    pub bounds: bool,
    /// Whether workgroup memory is cleared first.
    pub zeroes: bool,
    /// Whether each loop counts its turns, so that it ends.
    pub loops: bool,
    /// Whether divisors are kept from being 0.
    pub divisions: bool,
}

impl Checks {
    /// The crate's own kernels: plans guarantee that ranges lie in their buffers, kernels check edges themselves and read nothing that
    /// was not written, each of their loops ends, and they divide by constants.
    pub const TRUSTED: Self = Self { bounds: false, zeroes: false, loops: false, divisions: false };

    /// Kernels of the caller's: as WebGPU has it, whatever they do stays within their buffers.
    pub const ALL: Self = Self { bounds: true, zeroes: true, loops: true, divisions: true };
}

/// What a shader may use beside what every device has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Uses {
    pub capabilities: Capabilities,
    pub packed_dot: bool,
}

impl Uses {
    /// The same as SPIR-V has it. Without a list naga takes whatever makes a shader short, such as bytes, which no device here is asked for.
    fn spirv(self) -> naga::FastHashSet<Capability> {
        use Capability as Of;
        let with = |capability, these: &'static [Capability]| if self.capabilities.contains(capability) { these } else { &[] };
        let groups = [
            &[Of::Shader, Of::Matrix][..],
            with(Capabilities::SHADER_FLOAT16, &[Of::Float16, Of::StorageBuffer16BitAccess, Of::UniformAndStorageBuffer16BitAccess]),
            with(Capabilities::FLOAT64, &[Of::Float64]),
            with(
                Capabilities::SUBGROUP,
                &[
                    Of::GroupNonUniform,
                    Of::GroupNonUniformVote,
                    Of::GroupNonUniformArithmetic,
                    Of::GroupNonUniformBallot,
                    Of::GroupNonUniformShuffle,
                    Of::GroupNonUniformShuffleRelative,
                    Of::GroupNonUniformQuad,
                ],
            ),
            with(Capabilities::COOPERATIVE_MATRIX, &[Of::CooperativeMatrixKHR, Of::VulkanMemoryModel]),
            if self.packed_dot { &[Of::DotProduct, Of::DotProductInput4x8BitPacked] } else { &[] },
        ];
        groups.into_iter().flatten().copied().collect()
    }
}

/// A shader as the driver takes it.
pub(super) struct Shader {
    words: Vec<u32>,
    /// Its bindings in group 0.
    bindings: Vec<(u32, vk::DescriptorType)>,
    /// How many invocations a subgroup has to have; 0 for any number.
    lanes: u32,
}

impl Shader {
    #[cfg(test)]
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Compiles a kernel of the crate to SPIR-V.
    pub(super) fn of(kernel: &Kernel, checks: Checks) -> Result<Self> {
        // One that tells how many invocations a subgroup has is one for matrix units.
        let lanes = kernel.constant("LANES_OF_SUBGROUP");
        let units = Capabilities::SUBGROUP | Capabilities::SHADER_FLOAT16 | Capabilities::COOPERATIVE_MATRIX;
        let mut capabilities = if lanes > 0 { units } else { Capabilities::empty() };
        capabilities.set(Capabilities::SHADER_FLOAT16, lanes > 0 || kernel.constant("HALF") > 0);
        let uses = Uses { capabilities, packed_dot: kernel.constant("PACKED") > 0 };
        Ok(Self { lanes, ..Self::compile(kernel.id.name(), &kernel.wgsl()?, "main", uses, checks, true)? })
    }

    /// Compiles an entry point of WGSL to SPIR-V. Its layout has all that is declared, which plans bind, or what it uses alone: what it leaves
    /// out may have the same numbers.
    pub(super) fn compile(name: &str, wgsl: &str, entry: &str, uses: Uses, checks: Checks, binds_all: bool) -> Result<Self> {
        // Every device packs and unpacks f16.
        let capabilities = uses.capabilities | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        let fault = |what: String| Error::internal(format!("the kernel {name} does not compile: {what}"));
        let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| fault(error.emit_to_string(wgsl)))?;
        // naga takes what any variable holds for something that differs between invocations, a loop's counter too, and so would allow no matrix
        // units in a loop.
        let mut flags = ValidationFlags::all();
        flags.set(ValidationFlags::CONTROL_FLOW_UNIFORMITY, !capabilities.contains(Capabilities::COOPERATIVE_MATRIX));
        let mut validator = naga::valid::Validator::new(flags, capabilities);
        let info = validator.validate(&module).map_err(|error| fault(error.emit_to_string(wgsl)))?;
        let policy = if checks.bounds { BoundsCheckPolicy::Restrict } else { BoundsCheckPolicy::Unchecked };
        let zeroes = naga::back::spv::ZeroInitializeWorkgroupMemoryMode::Polyfill;
        let options = naga::back::spv::Options {
            lang_version: (1, 3),
            flags: naga::back::spv::WriterFlags::empty(),
            bounds_check_policies: BoundsCheckPolicies { index: policy, buffer: policy, image_load: policy, binding_array: policy },
            zero_initialize_workgroup_memory: if checks.zeroes { zeroes } else { naga::back::spv::ZeroInitializeWorkgroupMemoryMode::None },
            force_loop_bounding: checks.loops,
            emit_int_div_checks: checks.divisions,
            use_storage_input_output_16: false,
            capabilities: Some(uses.spirv()),
            ..Default::default()
        };
        let used = module.entry_points.iter().position(|known| known.name == entry).map(|at| info.get_entry_point(at));
        let entry = naga::back::spv::PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: entry.to_owned() };
        let words = naga::back::spv::write_vec(&module, &info, &options, Some(&entry)).map_err(|error| fault(error.to_string()))?;
        let bindings = module.global_variables.iter().filter_map(|(handle, variable)| {
            if !binds_all && used.is_none_or(|used| used[handle].is_empty()) {
                return None;
            }
            let kind = match variable.space {
                naga::AddressSpace::Uniform => vk::DescriptorType::UNIFORM_BUFFER,
                _ => vk::DescriptorType::STORAGE_BUFFER,
            };
            variable.binding.map(|binding| (binding.binding, kind))
        });
        Ok(Self { words, bindings: bindings.collect(), lanes: 0 })
    }
}

impl Pipelines {
    pub(super) fn new(context: &Arc<Context>, cache: Cache, packed_dot: bool) -> Self {
        Self { known: Mutex::default(), checks: Checks::TRUSTED, packed_dot, cache, context: Arc::clone(context) }
    }

    /// The kernel, compiled at its first use.
    pub(super) fn get(&self, kernel: &Kernel) -> Result<Arc<Pipeline>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = known.get(kernel).map(|known| Arc::clone(known)) {
            drop(known);
            self.cache.save_if_due();
            return Ok(pipeline);
        }
        let pipeline = self.made(&Shader::of(kernel, self.checks)?, "main")?;
        let oldest = known.keep(kernel.clone(), Arc::clone(&pipeline));
        // Others need not wait for the disk.
        drop(known);
        drop(oldest);
        self.cache.added();
        Ok(pipeline)
    }

    /// A pipeline that is its caller's to keep.
    pub(super) fn make(&self, name: &str, wgsl: &str, entry: &str, checks: Checks) -> Result<Arc<Pipeline>> {
        // That the device has what it uses was seen when it was read.
        let wgsl = reflection::plain(wgsl);
        let uses = Uses { capabilities: reflection::EVERYTHING, packed_dot: self.packed_dot };
        let pipeline = self.made(&Shader::compile(name, &wgsl, entry, uses, checks, false)?, entry)?;
        self.cache.added();
        Ok(pipeline)
    }

    fn made(&self, shader: &Shader, entry: &str) -> Result<Arc<Pipeline>> {
        Pipeline::new(&self.context, shader, entry, self.cache.handle()).map(Arc::new)
    }
}

impl Pipeline {
    fn new(context: &Arc<Context>, shader: &Shader, entry: &str, cache: vk::PipelineCache) -> Result<Self> {
        let device = &context.device;
        let mut made = Self {
            handle: vk::Pipeline::null(),
            layout: vk::PipelineLayout::null(),
            bindings: vk::DescriptorSetLayout::null(),
            context: Arc::clone(context),
        };
        let binding = |&(index, kind)| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(index)
                .descriptor_type(kind)
                .descriptor_count(1)
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        };
        let bindings: Vec<_> = shader.bindings.iter().map(binding).collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the bindings are those that one entry point of a valid shader uses, or those of a kernel of the crate, all in one group: no two
        // have one number.
        made.bindings = context.check("vkCreateDescriptorSetLayout", unsafe { device.create_descriptor_set_layout(&info, None) })?;
        let layouts = [made.bindings];
        let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts);
        // SAFETY: the layout was just made.
        made.layout = context.check("vkCreatePipelineLayout", unsafe { device.create_pipeline_layout(&info, None) })?;
        let name = CString::new(entry).map_err(|_| Error::internal("an entry point with a zero in its name"))?;
        let info = vk::ShaderModuleCreateInfo::default().code(&shader.words);
        // SAFETY: naga has validated the module, and writes valid SPIR-V.
        let module = context.check("vkCreateShaderModule", unsafe { device.create_shader_module(&info, None) })?;
        let mut stage = vk::PipelineShaderStageCreateInfo::default().stage(vk::ShaderStageFlags::COMPUTE).module(module).name(&name);
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(shader.lanes);
        if shader.lanes > 0 {
            stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS).push_next(&mut size);
        }
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(made.layout);
        // SAFETY: the layout has the shader's bindings; the planner keeps to the device's limits.
        let compiled = unsafe { device.create_compute_pipelines(cache, &[info], None) };
        // SAFETY: a pipeline does not need its module any more.
        unsafe { device.destroy_shader_module(module, None) };
        made.handle = match compiled {
            Ok(pipelines) => pipelines.first().copied().unwrap_or_default(),
            Err((_, fault)) => context.check("vkCreateComputePipelines", Err(fault))?,
        };
        Ok(made)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // SAFETY: the queue, which holds what it uses, is done; destroying what was not made does nothing.
        unsafe {
            self.context.device.destroy_pipeline(self.handle, None);
            self.context.device.destroy_pipeline_layout(self.layout, None);
            self.context.device.destroy_descriptor_set_layout(self.bindings, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::device;
    use crate::backend::recent::MOST;
    use crate::backend::{Backend, Bound, How};
    use crate::dtype::Extent;
    use crate::host::HostSlice;
    use crate::ops::matmul::Matmul;

    #[test]
    fn of_ever_new_kernels_the_latest_are_kept_and_what_is_under_way_stays() {
        let Some((device, _)) = device() else { return };
        let n = 256;
        let values = vec![1.0f32; n * n];
        let call = crate::call::Call::new(&Matmul::new(n as u64, n as u64, n as u64), (&values).into(), (&values).into()).unwrap();
        let plan = device.plan(&call.op).unwrap();
        let kernel = &plan.dispatches[0].kernel;
        let a = device.upload(&HostSlice::from(&values)).unwrap();
        let out = device.allocate(&plan, &call.op).unwrap();
        let how = How { repeats: 20, timed: false, download: Extent::f32((n * n) as u64) };
        let running = device.submit(&plan, &[Some(Bound::Buffer(&a)), Some(Bound::Buffer(&a)), None, None], &out, how).unwrap();
        let pipeline = std::sync::Arc::downgrade(&device.pipelines.get(kernel).unwrap());
        // One that is soon compiled, under other names.
        let small = crate::call::Call::new(&Matmul::new(1, 4, 1), (&values[..4]).into(), (&values[..4]).into()).unwrap();
        let small = device.plan(&small.op).unwrap().dispatches.remove(0).kernel;
        for number in 0..MOST + 9 {
            let other = crate::kernels::Kernel { variant: format!("the {number}th"), ..small.clone() };
            device.pipelines.get(&other).unwrap();
        }
        let done = pollster::block_on(device.finish(running)).unwrap().data.unwrap().into_vec();
        assert!(done.iter().all(|sum| *sum == n as f32), "{}", done[0]);
        pollster::block_on(device.synchronize()).unwrap();
        assert_eq!(device.memory().buffers, 2);
        assert!(pipeline.upgrade().is_none(), "it is not kept any more");
    }
}
