//! What a device has beside what every kernel needs: data for plans, and for who chooses a device.

use std::ffi::CStr;

use ash::{khr, vk};

use super::instance::Instance;
use crate::dtype::DType;
use crate::info::{Dialect, MatrixUnit};

/// A shape of matrices that a subgroup multiplies: m, n, k, the type of A and B, that of C and of the result.
type Shape = (u32, u32, u32, vk::ComponentTypeKHR, vk::ComponentTypeKHR);

const F16: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT16;
const F32: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT32;
const F64: vk::ComponentTypeKHR = vk::ComponentTypeKHR::FLOAT64;
const I8: vk::ComponentTypeKHR = vk::ComponentTypeKHR::SINT8;
const I32: vk::ComponentTypeKHR = vk::ComponentTypeKHR::SINT32;
const U8: vk::ComponentTypeKHR = vk::ComponentTypeKHR::UINT8;
const U32: vk::ComponentTypeKHR = vk::ComponentTypeKHR::UINT32;
/// `VK_KHR_shader_bfloat16`, which is newer than the bindings.
const BF16: vk::ComponentTypeKHR = vk::ComponentTypeKHR::from_raw(1_000_141_000);

/// The shapes that have names here; a device may have others.
const SHAPES: [(Shape, &str); 20] = [
    ((16, 16, 16, F16, F32), "cooperative-matrix-16x16x16-f16-f32"),
    ((16, 16, 16, F16, F16), "cooperative-matrix-16x16x16-f16-f16"),
    ((16, 8, 16, F16, F32), "cooperative-matrix-16x8x16-f16-f32"),
    ((16, 8, 16, F16, F16), "cooperative-matrix-16x8x16-f16-f16"),
    ((16, 8, 8, F16, F32), "cooperative-matrix-16x8x8-f16-f32"),
    ((16, 8, 8, F16, F16), "cooperative-matrix-16x8x8-f16-f16"),
    ((8, 8, 16, F16, F32), "cooperative-matrix-8x8x16-f16-f32"),
    ((8, 16, 16, F16, F32), "cooperative-matrix-8x16x16-f16-f32"),
    ((8, 8, 8, F16, F32), "cooperative-matrix-8x8x8-f16-f32"),
    ((8, 8, 8, F32, F32), "cooperative-matrix-8x8x8-f32-f32"),
    ((16, 16, 16, BF16, F32), "cooperative-matrix-16x16x16-bf16-f32"),
    ((16, 8, 16, BF16, F32), "cooperative-matrix-16x8x16-bf16-f32"),
    ((16, 8, 8, BF16, F32), "cooperative-matrix-16x8x8-bf16-f32"),
    ((8, 16, 16, BF16, F32), "cooperative-matrix-8x16x16-bf16-f32"),
    ((16, 16, 32, I8, I32), "cooperative-matrix-16x16x32-i8-i32"),
    ((16, 16, 16, I8, I32), "cooperative-matrix-16x16x16-i8-i32"),
    ((16, 8, 32, I8, I32), "cooperative-matrix-16x8x32-i8-i32"),
    ((8, 16, 32, I8, I32), "cooperative-matrix-8x16x32-i8-i32"),
    ((16, 16, 32, U8, U32), "cooperative-matrix-16x16x32-u8-u32"),
    ((8, 8, 4, F64, F64), "cooperative-matrix-8x8x4-f64-f64"),
];

/// All that WGSL's functions of subgroups take.
const SUBGROUP_FUNCTIONS: vk::SubgroupFeatureFlags = vk::SubgroupFeatureFlags::from_raw(
    vk::SubgroupFeatureFlags::BASIC.as_raw()
        | vk::SubgroupFeatureFlags::VOTE.as_raw()
        | vk::SubgroupFeatureFlags::ARITHMETIC.as_raw()
        | vk::SubgroupFeatureFlags::BALLOT.as_raw()
        | vk::SubgroupFeatureFlags::SHUFFLE.as_raw()
        | vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE.as_raw()
        | vk::SubgroupFeatureFlags::QUAD.as_raw(),
);

/// The names of shaders in half and in double precision.
pub(super) const F16_NAME: &str = "shader-f16";
pub(super) const F64_NAME: &str = "shader-f64";

/// The name of WGSL's functions of subgroups.
pub(super) const SUBGROUPS_NAME: &str = "subgroups";

/// The name of products of packed 8-bit integers.
pub(super) const PACKED_DOT: &str = "integer-dot-product";

/// Names of what there is.
pub(super) fn read(instance: &Instance, physical: vk::PhysicalDevice, has: impl Fn(&CStr) -> bool) -> Vec<&'static str> {
    let mut half = vk::PhysicalDevice16BitStorageFeatures::default();
    let mut small = vk::PhysicalDeviceShaderFloat16Int8Features::default();
    let mut bytes = vk::PhysicalDevice8BitStorageFeatures::default();
    let mut dot = vk::PhysicalDeviceShaderIntegerDotProductFeatures::default();
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
    let mut subgroups = vk::PhysicalDeviceSubgroupProperties::default();
    let mut extended = vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures::default();
    let mut asked = vk::PhysicalDeviceFeatures2::default().push_next(&mut half).push_next(&mut small).push_next(&mut bytes);
    asked = asked.push_next(&mut extended);
    if has(khr::shader_integer_dot_product::NAME) {
        asked = asked.push_next(&mut dot);
    }
    if has(khr::cooperative_matrix::NAME) {
        asked = asked.push_next(&mut matrices);
    }
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroups);
    // SAFETY: the physical device is the instance's, of version 1.2, and knows each struct in the chains.
    let doubles = unsafe {
        instance.raw.get_physical_device_features2(physical, &mut asked);
        instance.raw.get_physical_device_properties2(physical, &mut properties);
        asked.features.shader_float64
    };
    let mut found = Vec::new();
    let mut add = |there: bool, name: &'static str| {
        if there {
            found.push(name);
        }
    };
    let yes = |flag: vk::Bool32| flag == vk::TRUE;
    let in_memory = yes(half.storage_buffer16_bit_access) && yes(half.uniform_and_storage_buffer16_bit_access);
    let has_f16 = yes(small.shader_float16) && in_memory;
    add(has_f16, F16_NAME);
    add(yes(small.shader_int8) && yes(bytes.storage_buffer8_bit_access), "shader-i8");
    add(yes(doubles), F64_NAME);
    add(yes(dot.shader_integer_dot_product), PACKED_DOT);
    let computes = subgroups.supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
    let operations = subgroups.supported_operations;
    // Those of f16 are a feature of their own.
    let of_all_types = !has_f16 || yes(extended.shader_subgroup_extended_types);
    add(computes && operations.contains(SUBGROUP_FUNCTIONS) && of_all_types, SUBGROUPS_NAME);
    add(computes && operations.contains(vk::SubgroupFeatureFlags::ARITHMETIC), "subgroup-arithmetic");
    add(computes && operations.contains(vk::SubgroupFeatureFlags::SHUFFLE), "subgroup-shuffle");
    add(computes, subgroup_size(subgroups.subgroup_size));
    if yes(matrices.cooperative_matrix) {
        add(true, "cooperative-matrix");
        let functions = khr::cooperative_matrix::Instance::new(&instance.entry, &instance.raw);
        // SAFETY: the physical device has the extension.
        let shapes = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) }.unwrap_or_default();
        for (shape, name) in SHAPES {
            add(shapes.iter().any(|there| is(there, shape)), name);
        }
    }
    found
}

/// The matrix units, if the device has the shape that the product's kernel is written for, and all that it takes to use it.
pub(super) fn matrix_unit(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    version: u32,
    has: impl Fn(&CStr) -> bool,
) -> Option<MatrixUnit> {
    if version < vk::API_VERSION_1_3 || !has(khr::cooperative_matrix::NAME) {
        return None;
    }
    let mut f16 = vk::PhysicalDeviceShaderFloat16Int8Features::default();
    let mut storage = vk::PhysicalDevice16BitStorageFeatures::default();
    let mut memory = vk::PhysicalDeviceVulkanMemoryModelFeatures::default();
    let mut sizes = vk::PhysicalDeviceSubgroupSizeControlFeatures::default();
    let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default();
    let mut asked = vk::PhysicalDeviceFeatures2::default().push_next(&mut f16).push_next(&mut memory);
    asked = asked.push_next(&mut storage).push_next(&mut sizes).push_next(&mut matrices);
    let mut subgroups = vk::PhysicalDeviceSubgroupProperties::default();
    let mut control = vk::PhysicalDeviceSubgroupSizeControlProperties::default();
    let mut units = vk::PhysicalDeviceCooperativeMatrixPropertiesKHR::default();
    let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroups).push_next(&mut control).push_next(&mut units);
    // SAFETY: the physical device is the instance's, of version 1.3 and with the extension, so that it knows each struct in the chains.
    unsafe {
        instance.raw.get_physical_device_features2(physical, &mut asked);
        instance.raw.get_physical_device_properties2(physical, &mut properties);
    }
    let needed = [
        f16.shader_float16,
        storage.storage_buffer16_bit_access,
        storage.uniform_and_storage_buffer16_bit_access,
        memory.vulkan_memory_model,
        sizes.subgroup_size_control,
        sizes.compute_full_subgroups,
        matrices.cooperative_matrix,
    ];
    let stage = vk::ShaderStageFlags::COMPUTE;
    let stages = control.required_subgroup_size_stages & units.cooperative_matrix_supported_stages;
    if needed.contains(&vk::FALSE) || !stages.contains(stage) {
        return None;
    }
    let functions = khr::cooperative_matrix::Instance::new(&instance.entry, &instance.raw);
    // SAFETY: the physical device has the extension.
    let shapes = unsafe { functions.get_physical_device_cooperative_matrix_properties(physical) }.unwrap_or_default();
    let there = shapes.iter().any(|there| is(there, (16, 16, 16, F16, F32)));
    let (operands, sums, subgroup_size) = (DType::F16, DType::F32, subgroups.subgroup_size);
    there.then_some(MatrixUnit { m: 16, n: 16, k: 16, operands, sums, subgroup_size, dialect: Dialect::Cooperative })
}

fn is(there: &vk::CooperativeMatrixPropertiesKHR<'_>, (m, n, k, operands, sums): Shape) -> bool {
    (there.m_size, there.n_size, there.k_size) == (m, n, k)
        && (there.a_type, there.b_type, there.c_type, there.result_type) == (operands, operands, sums, sums)
        && there.scope == vk::ScopeKHR::SUBGROUP
        && there.saturating_accumulation == vk::FALSE
}

fn subgroup_size(size: u32) -> &'static str {
    match size {
        1 => "subgroup-size-1",
        2 => "subgroup-size-2",
        4 => "subgroup-size-4",
        8 => "subgroup-size-8",
        16 => "subgroup-size-16",
        32 => "subgroup-size-32",
        64 => "subgroup-size-64",
        _ => "subgroup-size-128",
    }
}
