/** The types as a user meets them; compiled, never run. */
import {
  Expr,
  Gpu,
  Reference,
  Tensor,
  benchmark,
  clear_tuning,
  device_info,
  evaluate,
  gpu_device,
  init_gpu,
  lazy,
  matmul,
  memory,
  random_matrix,
  reference,
  tensor,
  tune,
  type Backend,
  type Benchmark,
  type Device,
  type DeviceBuffer,
  type DeviceInfo,
  type ErrorCode,
  type InitOptions,
  type LapidaryError,
  type MatmulOptions,
  type MatmulReport,
  type MemoryStats,
  type Tuning,
  type Verdict,
} from "lapidary";

declare const a: Float32Array;
declare const signal: AbortSignal;
declare const own_buffer: DeviceBuffer;

export async function right(): Promise<void> {
  const options: InitOptions = { backend: "auto", power_preference: "low-power", pool_bytes: 0, threads: 2, signal };
  const info: DeviceInfo = await init_gpu(options);
  const chosen: Backend = (await device_info()).backend;
  const bytes: number | undefined = info.limits.max_buffer_bytes;

  const product = { m: 1, k: 2, n: 3, transpose_a: true, alpha: 2, beta: 1, c: a, lda: 4, signal } satisfies MatmulOptions;
  const plain: Float32Array = await matmul(a, a, product);
  const report: MatmulReport = await matmul(a, a, { m: 1, k: 2, n: 3, report: true });
  const data: Float32Array = report.data;
  const kept: Tensor = await matmul(a, a, { m: 1, k: 2, n: 3, keep: true });
  const batch: Float32Array = await matmul(a, a, { m: 1, k: 2, n: 3, batch: [2, 4], stride_b: 0, bias: a, activation: "gelu" });
  const again: Tensor = kept.reshape([3, 1]);
  const both: MatmulReport<Tensor> = await matmul(kept, a, { n: 3, report: true, keep: true });

  const truths: Tensor<"bool"> = await tensor([true, false], [2], { dtype: "bool" });
  const chosen_of: Expr<"f32"> = lazy(truths).select(kept, 2).slice(0, 0, 1).add(Expr.index([3]).cast("f32"));
  const bytes_of: Uint8Array = await (await evaluate<"bool">(lazy(await tensor(new Int32Array(2), [2])).less(3))).toArray();
  const computed: Tensor = await evaluate(Expr.concat([chosen_of, kept], -1));

  const gpu: Gpu = await Gpu.open({ backend: "webgl2" });
  const tuning: Tuning = await gpu.tune({ signal });
  const is_cleared: boolean = tuning.kept && tuning.trials.some(({ is_tuned }) => is_tuned) ? await clear_tuning() : (await tune()).kept;
  const device: Device | undefined = gpu.device ?? (await gpu_device());
  if (device) {
    const words: Tensor<"u32"> = await gpu.tensor(own_buffer, [2], { dtype: "u32", offset_bytes: 8 });
    await words.copyTo(own_buffer);
  }
  const sums: Int32Array = await matmul(new Int8Array(2), new Uint8Array(2), { m: 1, k: 2, n: 1, zero_points: [0, 128] });
  const bytes_kept: Tensor<"u8"> = await gpu.tensor(new Uint8Array(2), [1, 2]);
  const sums_kept: Tensor<"i32"> = await gpu.matmul(bytes_kept, new Int8Array(2), { n: 1, keep: true });
  console.log(sums, await sums_kept.toArray());
  const own: Tensor = await gpu.tensor(plain, [2, 3] as const);
  const times: Benchmark = await gpu.benchmark(own, data, { n: 3, samples: 3, min_ms: 1 });
  const shared: Benchmark = await benchmark(a, a, { m: 1, k: 1, n: 1 });
  const stats: MemoryStats[] = [gpu.memory(), await memory()];
  const judge: Reference = await reference(a, await random_matrix(6, 1), { m: 1, k: 2, n: 3 });
  const verdict: Verdict = judge.check(await (await tensor(a, [1, 1])).toArray());
  try {
    gpu.trim();
  } catch (error) {
    const { code, message, cause }: LapidaryError = error as LapidaryError;
    const known: ErrorCode = code;
    console.log(known, message, cause);
  }
  for (const thing of [own, kept, both.data]) thing.dispose();
  judge.free();
  gpu.free();
  console.log(chosen, bytes, times, shared, stats, verdict.ok, batch, again.shape.length, bytes_of, computed, is_cleared);
}

export async function wrong(gpu: Gpu): Promise<void> {
  // @ts-expect-error An array is not a Float32Array.
  await matmul([1, 2], a, { m: 1, k: 2, n: 3 });
  // @ts-expect-error Options are needed.
  await matmul(a, a);
  // @ts-expect-error There is no such option.
  await matmul(a, a, { m: 1, k: 2, n: 3, transposeA: true });
  // @ts-expect-error Double precision is not taken.
  await gpu.tensor(new Float64Array(4), [2, 2]);
  // @ts-expect-error Bytes are truths only if that is said.
  const truths: Tensor<"bool"> = await gpu.tensor(new Uint8Array(4), [4]);
  // @ts-expect-error Bytes are multiplied by bytes.
  await gpu.matmul(new Int8Array(4), a, { m: 1, k: 1, n: 1 });
  // @ts-expect-error There is no such type.
  lazy(1).cast("f64");
  // @ts-expect-error An array is no operand.
  lazy(1).add(a);
  // @ts-expect-error A shape is an array.
  await gpu.tensor(a, 4);
  // @ts-expect-error There is no such backend.
  await init_gpu({ backend: "cuda" });
  // @ts-expect-error Tensors are made by functions.
  new Tensor();
  // @ts-expect-error A shape cannot be changed.
  (await gpu.tensor(a, [2, 2])).rows = 3;
  // @ts-expect-error A benchmark adds no C.
  await benchmark(a, a, { m: 1, k: 1, n: 1, beta: 1, c: a });
}
