// A device that the browser makes while the module loads: what Rust will ask for, as far as can be said before it runs. To make one takes a
// browser some tens of milliseconds.

/** As in src/backend/webgpu: the features and limits of adapter.rs, and the features of matrix.js, which are of use all together only. */
const FEATURES = ["timestamp-query", "shader-f16"];
const UNITS = ["subgroups", "chromium-experimental-subgroup-matrix"];
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupSizeY",
  "maxComputeWorkgroupsPerDimension",
];

/** A promise of a device, or of nothing if there is none; undefined once it has been taken. */
let early;
/** Whether it was asked for so as to save power. */
let saves_power;

async function request(powerPreference) {
  const adapter = await navigator.gpu.requestAdapter({ powerPreference });
  const has = (name) => adapter.features.has(name);
  const requiredFeatures = FEATURES.filter(has);
  if ([...UNITS, "shader-f16"].every(has)) requiredFeatures.push(...UNITS);
  const requiredLimits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  return adapter.requestDevice({ label: "lapidary", requiredFeatures, requiredLimits });
}

/** Has a device made. Whatever goes wrong, Rust will say when it asks for one. */
export function ask_early(powerPreference) {
  if (early) return;
  saves_power = powerPreference === "low-power";
  early = request(powerPreference).catch(() => {});
}

function suits({ features, limits }, { requiredFeatures, requiredLimits }) {
  const is_met = ([name, value]) => (name.startsWith("min") ? limits[name] <= value : limits[name] >= value);
  return requiredFeatures.every((name) => features.has(name)) && Object.entries(requiredLimits).every(is_met);
}

/** The device that was made, if it has all that a request asks for, or the one that `ask` gives. */
export async function device_for(descriptor, ask, is_to_save_power) {
  // It may be another GPU's.
  if (is_to_save_power !== saves_power) return ask();
  const making = early;
  early = undefined;
  const device = await making;
  // It may be lost by now.
  const is_lost = device && (await Promise.race([device.lost, false]));
  if (device && !is_lost && suits(device, descriptor)) return device;
  device?.destroy();
  return ask();
}

/** Gives back what nobody has taken. */
export function forget_early() {
  early?.then((device) => device?.destroy());
  early = undefined;
}
