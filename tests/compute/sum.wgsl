// The sum of all numbers, by workgroups whose own sums meet in one atomic.
@group(0) @binding(3) var<storage, read> values: array<u32>;
@group(0) @binding(7) var<storage, read_write> total: atomic<u32>;

var<workgroup> sums: array<u32, 128>;

@compute @workgroup_size(128)
fn add_up(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) at: u32) {
    sums[at] = select(0u, values[min(id.x, arrayLength(&values) - 1u)], id.x < arrayLength(&values));
    for (var half = 64u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if at < half {
            sums[at] += sums[at + half];
        }
    }
    if at == 0u {
        atomicAdd(&total, sums[0]);
    }
}
