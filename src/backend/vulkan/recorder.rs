//! What commands are recorded into: a command buffer with a pool of its own, and the bindings of its dispatches.

use std::sync::Arc;

use ash::vk;

use super::context::Context;
use crate::error::Result;

/// Stages of the GPU, and kinds of access in them.
pub(super) type Scope = (vk::PipelineStageFlags, vk::AccessFlags);

pub(super) const COPY_WRITES: Scope = (vk::PipelineStageFlags::TRANSFER, vk::AccessFlags::TRANSFER_WRITE);
pub(super) const COPY_READS: Scope = (vk::PipelineStageFlags::TRANSFER, vk::AccessFlags::TRANSFER_READ);
pub(super) const KERNEL_WRITES: Scope = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::AccessFlags::SHADER_WRITE);
/// What a kernel does with its result: it writes, and reads where it adds to what is there.
pub(super) const KERNEL_ACCESSES: Scope = (
    vk::PipelineStageFlags::COMPUTE_SHADER,
    vk::AccessFlags::from_raw(vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::SHADER_WRITE.as_raw()),
);
pub(super) const HOST_ACCESSES: Scope =
    (vk::PipelineStageFlags::HOST, vk::AccessFlags::from_raw(vk::AccessFlags::HOST_READ.as_raw() | vk::AccessFlags::HOST_WRITE.as_raw()));
pub(super) const HOST_READS: Scope = (vk::PipelineStageFlags::HOST, vk::AccessFlags::HOST_READ);

/// Storage buffers of a set of bindings at most, beside one uniform buffer: those of a product are five, and of a fused one two inputs more.
const STORAGE_BUFFERS: u32 = 8;

/// A command buffer, used again and again.
pub(super) struct Recorder {
    pub commands: vk::CommandBuffer,
    /// How many sets of bindings there is room for.
    pub sets: u32,
    pool: vk::CommandPool,
    descriptors: vk::DescriptorPool,
    context: Arc<Context>,
}

impl Recorder {
    pub(super) fn new(context: &Arc<Context>, family: u32, sets: u32) -> Result<Self> {
        let device = &context.device;
        let sets = sets.next_power_of_two().max(16);
        let mut made = Self {
            commands: vk::CommandBuffer::null(),
            sets,
            pool: vk::CommandPool::null(),
            descriptors: vk::DescriptorPool::null(),
            context: Arc::clone(context),
        };
        let info = vk::CommandPoolCreateInfo::default().queue_family_index(family).flags(vk::CommandPoolCreateFlags::TRANSIENT);
        // SAFETY: the family is the device's.
        made.pool = context.check("vkCreateCommandPool", unsafe { device.create_command_pool(&info, None) })?;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(made.pool).command_buffer_count(1);
        // SAFETY: the pool was just made.
        let commands = context.check("vkAllocateCommandBuffers", unsafe { device.allocate_command_buffers(&info) })?;
        made.commands = commands.first().copied().unwrap_or_default();
        let sizes = [
            vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: sets * STORAGE_BUFFERS },
            vk::DescriptorPoolSize { ty: vk::DescriptorType::UNIFORM_BUFFER, descriptor_count: sets },
        ];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes);
        // SAFETY: no count is 0.
        made.descriptors = context.check("vkCreateDescriptorPool", unsafe { device.create_descriptor_pool(&info, None) })?;
        Ok(made)
    }

    /// Forgets what was recorded before.
    pub(super) fn begin(&self) -> Result<()> {
        let Self { context, pool, descriptors, commands, .. } = self;
        let device = &context.device;
        // SAFETY: the GPU is done with what was recorded, and with its bindings.
        unsafe {
            context.check("vkResetCommandPool", device.reset_command_pool(*pool, vk::CommandPoolResetFlags::empty()))?;
            context.check("vkResetDescriptorPool", device.reset_descriptor_pool(*descriptors, vk::DescriptorPoolResetFlags::empty()))?;
            let info = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
            context.check("vkBeginCommandBuffer", device.begin_command_buffer(*commands, &info))
        }
    }

    /// A set of bindings of that layout.
    pub(super) fn bindings(&self, layout: vk::DescriptorSetLayout) -> Result<vk::DescriptorSet> {
        let layouts = [layout];
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(self.descriptors).set_layouts(&layouts);
        // SAFETY: the pool is used by one thread at a time, the one that records.
        let sets = unsafe { self.context.device.allocate_descriptor_sets(&info) };
        Ok(self.context.check("vkAllocateDescriptorSets", sets)?.first().copied().unwrap_or_default())
    }

    /// The commands, complete.
    pub(super) fn end(&self) -> Result<vk::CommandBuffer> {
        // SAFETY: it is being recorded.
        let ended = unsafe { self.context.device.end_command_buffer(self.commands) };
        self.context.check("vkEndCommandBuffer", ended).map(|()| self.commands)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // SAFETY: the GPU is done with it; destroying what was not made does nothing.
        unsafe {
            self.context.device.destroy_descriptor_pool(self.descriptors, None);
            self.context.device.destroy_command_pool(self.pool, None);
        }
    }
}
