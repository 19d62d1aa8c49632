//! What WGSL of one's own may use.

use lapidary::BackendId;
use lapidary::compute::{Argument, KernelDefinition, Memory};

use super::devices::all;
use super::said;

/// WGSL that every device runs, and WGSL that some do: the others say what they lack.
#[test]
fn wgsl_may_use_what_the_device_has() {
    let out = "@group(0) @binding(0) var<storage, read_write> out: array<u32>; @compute @workgroup_size(64)";
    let packs = format!(
        "@group(0) @binding(1) var<storage> halves: array<u32>; {out} fn main(@builtin(local_invocation_index) i: u32) {{
            let two = unpack2x16float(halves[0]);
            if i == 0 {{ out[0] = u32(two.x + two.y); out[1] = pack2x16float(vec2f(1, 2)); out[2] = bitcast<u32>(quantizeToF16(0.1)); }}
        }}"
    );
    // By instructions for them or without, whatever the device has.
    let bytes = format!(
        "{out} fn main(@builtin(local_invocation_index) i: u32) {{
            let x = i * 0x01020304u + 0x80ff7f01u;
            let signed = unpack4xI8(x);
            let packed = pack4xI8(signed + vec4(1)) ^ pack4xU8(unpack4xU8(x) + vec4(255));
            out[i] = packed + u32(dot4I8Packed(x, 0x02fe01ffu)) + dot4U8Packed(x, 0xff010203u) + pack4xI8Clamp(2 * signed);
        }}"
    );
    let of_bytes = |i: u32| {
        let x = i.wrapping_mul(0x0102_0304).wrapping_add(0x80ff_7f01);
        let each = |byte: fn(u8) -> u8| u32::from_le_bytes(x.to_le_bytes().map(byte));
        let sum =
            |of: fn(u8, u8) -> i32, by: u32| -> i32 { x.to_le_bytes().into_iter().zip(by.to_le_bytes()).map(|(x, y)| of(x, y)).sum() };
        let signed = sum(|x, y| i32::from(x.cast_signed()) * i32::from(y.cast_signed()), 0x02fe_01ff);
        let unsigned = sum(|x, y| i32::from(x) * i32::from(y), 0xff01_0203);
        let packed = each(|x| x.wrapping_add(1)) ^ each(|x| x.wrapping_add(255));
        packed
            .wrapping_add_signed(signed)
            .wrapping_add_signed(unsigned)
            .wrapping_add(each(|x| x.cast_signed().saturating_mul(2).cast_unsigned()))
    };
    let f16 = format!("enable f16; {out} fn main(@builtin(global_invocation_id) i: vec3u) {{ out[i.x] = u32(f16(i.x) * 2.5h); }}");
    let f64 = format!("{out} fn main(@builtin(global_invocation_id) i: vec3u) {{ out[i.x] = u32(f64(i.x) * 16777217.0lf); }}");
    let subgroups = format!(
        "enable subgroups;\n{out} fn main(@builtin(global_invocation_id) i: vec3u, @builtin(subgroup_size) size: u32) {{
            out[i.x] = u32(subgroupAdd(1u) == size) + subgroupMax(i.x) - subgroupMin(i.x);
        }}"
    );
    let subgroups_of_f16 = format!(
        "enable f16; enable subgroups;\n{out} fn main(@builtin(global_invocation_id) i: vec3u) {{ out[i.x] = u32(subgroupAdd(f16(1))); }}"
    );
    for gpu in all() {
        let info = gpu.info().unwrap();
        if !matches!(info.backend, BackendId::Vulkan | BackendId::WebGpu) {
            continue;
        }
        let (room, stream) = (gpu.allocate(256, Memory::Device).unwrap(), gpu.stream().unwrap());
        let definition = |source: &str| KernelDefinition::new("k").wgsl(source);
        let halves = gpu.tensor_blocking(&[3.0, 4.0].map(half::f16::from_f32).to_vec(), 1, 2).unwrap();
        let kernel = gpu.compile(&definition(&packs)).unwrap();
        stream.launch(&kernel, [1; 3], [Argument::from(&room), (&halves).into()], &()).unwrap();
        let tenth = half::f16::from_f32(0.1).to_f32().to_bits();
        assert_eq!(room.read_blocking::<u32>(0, 3).unwrap(), [7, 0x4000_3c00, tenth], "{}", info.backend);
        let run = |source: &str| {
            let kernel = gpu.compile(&definition(source))?;
            stream.launch(&kernel, [1; 3], [&room], &())?;
            room.read_blocking::<u32>(0, 64)
        };
        assert_eq!(run(&bytes).unwrap(), (0..64).map(of_bytes).collect::<Vec<_>>(), "{} bytes", info.backend);
        type Expected = fn(u32, u32) -> u32;
        let size = info.capabilities.subgroup_size.unwrap_or(1);
        let cases: [(&str, &str, Expected); 3] = [
            ("shader-f16", &f16, |i, _| i * 5 / 2),
            ("shader-f64", &f64, |i, _| i * 16_777_217),
            ("subgroups", &subgroups, |_, size| size),
        ];
        if ["shader-f16", "subgroups"].iter().all(|feature| info.features.contains(feature)) {
            assert_eq!(run(&subgroups_of_f16).unwrap(), [size; 64], "{} subgroups of f16", info.backend);
        }
        for (feature, source, expected) in cases {
            if info.features.contains(&feature) {
                assert_eq!(run(source).unwrap(), (0..64).map(|i| expected(i, size)).collect::<Vec<_>>(), "{} {feature}", info.backend);
            } else {
                eprintln!("{} has no {feature}", info.backend);
                said(run(source), "unavailable", &["the kernel k uses", feature, &info.name]);
            }
        }
    }
}
