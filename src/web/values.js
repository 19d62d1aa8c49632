// Objects for JavaScript, which names and shapes them more briefly than WebAssembly could.

/** An error as the package's index.d.ts describes it. */
export function fault(code, message) {
  return Object.assign(new Error(message), { name: code === "aborted" ? "AbortError" : "LapidaryError", code });
}

export const tensor = (tensor, shape, dtype, backend) => ({ tensor, shape: [...shape], dtype, backend });

export const plain = (data) => ({ data });

export const report = (data, backend, device, software, kernel, upload_ms, kernel_ms, download_ms, total_ms, kernel_clock, replayed) => ({
  data,
  backend,
  device,
  software,
  kernel,
  upload_ms,
  kernel_ms,
  download_ms,
  total_ms,
  kernel_clock,
  replayed,
});

export const benchmark = (backend, kernel, samples, median_ms, gflops, dispatches) => ({
  backend,
  kernel,
  samples_ms: [...samples],
  median_ms,
  gflops,
  dispatches,
});

export const tuning = () => ({ trials: [], kept: false });

export function add_trial({ trials }, size, kernel, ms, is_default, is_tuned) {
  trials.push({ size, kernel, ms, is_default, is_tuned });
}

export function set_kept(tuning, kept) {
  tuning.kept = kept;
}

export const memory = (used_bytes, pooled_bytes, peak_bytes, buffers, wasm_bytes) => ({
  used_bytes,
  pooled_bytes,
  peak_bytes,
  buffers,
  wasm_bytes,
});

export const verdict = (ok, elements, wrong, max_abs_error, worst_ratio, row, column, value, expected, bound) => ({
  ok,
  elements,
  wrong,
  max_abs_error,
  worst_ratio,
  row,
  column,
  value,
  expected,
  bound,
});

export const device = (backend, name, vendor, architecture, kind, software, reason, generation) => ({
  backend,
  name,
  vendor,
  architecture,
  kind,
  software,
  limits: {},
  features: [],
  reason,
  others: [],
  generation,
});

export function add_limit(device, name, number) {
  device.limits[name] = number;
}

export function add_feature(device, name) {
  device.features.push(name);
}

export function add_other(device, backend, state, reason, remedy) {
  device.others.push({ backend, state, reason, remedy });
}
