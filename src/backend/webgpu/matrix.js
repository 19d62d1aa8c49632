// Chromium's experimental subgroup matrix, which wgpu knows nothing of: asked for here, and found here.

const FEATURES = ["subgroups", "chromium-experimental-subgroup-matrix"];

/**
 * Adds what the units take to the next request for a device, if its adapter has all of it, and has the part for them
 * loaded meanwhile; then asks `make` for the device, which may have one. wgpu makes that request before anything else
 * can run, and with it the prototype is as it was. `saves_power` tells by which preference the adapter was chosen.
 */
export function ask_for_matrix_units(load, part, make, saves_power) {
  const adapters = globalThis.GPUAdapter?.prototype;
  const request = adapters?.requestDevice;
  if (!request) return;
  adapters.requestDevice = function (descriptor) {
    adapters.requestDevice = request;
    if ([...FEATURES, "shader-f16"].every((name) => this.features.has(name))) {
      // Whoever needs it loads it again, and hears of a failure.
      load?.(part)?.catch(() => {});
      descriptor = { ...descriptor, requiredFeatures: [...descriptor.requiredFeatures, ...FEATURES] };
    }
    const ask = () => request.call(this, descriptor);
    return make ? make(descriptor, ask, saves_power) : ask();
  };
}

/** Invocations that share a unit for 16 × 16 × 16 products of f16 with sums in f32; 0 if the device has none, or it is not always so many. */
export function matrix_unit(device) {
  const { subgroupMinSize: least, subgroupMaxSize: most, subgroupMatrixConfigs: shapes = [] } = device.adapterInfo ?? {};
  const is_right = ({ M, N, K, componentType, resultComponentType }) =>
    M === 16 && N === 16 && K === 16 && componentType === "f16" && resultComponentType === "f32";
  return FEATURES.every((name) => device.features.has(name)) && [...shapes].some(is_right) && least === most ? least : 0;
}

export const has_packed_dot = () => !!navigator.gpu.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product");
