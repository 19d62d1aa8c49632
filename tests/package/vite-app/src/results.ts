/** What calls give, by the types of what they take; compiled, never run. */
import {
  Expr,
  Gpu,
  Tensor,
  benchmark,
  evaluate,
  lazy,
  matmul,
  reference,
  tensor,
  type DType,
  type DeviceBuffer,
  type Halves,
  type MatmulOptions,
  type MatmulReport,
  type Product,
  type Value,
} from "lapidary";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Compiles if a promise is of just that type. */
declare function gives<Expected>(): <Actual>(actual: Promise<Actual>, ...right: Same<Actual, Expected> extends true ? [] : [never]) => void;

declare const a: Float32Array;
declare const halves: Halves;
declare const bytes: Int8Array;
declare const x: Tensor;
declare const y: Tensor<"f16">;
declare const whole: Tensor<"i32">;
declare const signed: Tensor<"i8">;
declare const unsigned: Tensor<"u8">;
declare const truths: Tensor<"bool">;
declare const buffer: DeviceBuffer;
declare const is_wanted: boolean;

const sizes = { m: 1, k: 1, n: 1 };

export function products(gpu: Gpu): void {
  for (const multiply of [matmul, gpu.matmul.bind(gpu)] as [typeof matmul, Gpu["matmul"]]) {
    gives<Float32Array<ArrayBuffer>>()(multiply(a, a, sizes));
    gives<Float32Array<ArrayBuffer>>()(multiply(a, y, { ...sizes, report: false, keep: false, result: "f32" }));
    gives<Halves>()(multiply(halves, halves, { ...sizes, result: "f16" }));
    gives<Tensor>()(multiply(a, a, { ...sizes, keep: true }));
    gives<Tensor<"f16">>()(multiply(a, a, { ...sizes, keep: true, result: "f16" }));
    gives<MatmulReport>()(multiply(a, a, { ...sizes, report: true }));
    gives<MatmulReport<Halves>>()(multiply(a, a, { ...sizes, report: true, result: "f16" }));
    gives<MatmulReport<Tensor>>()(multiply(a, a, { ...sizes, report: true, keep: true }));
    gives<MatmulReport<Tensor<"f16">>>()(multiply(a, a, { ...sizes, report: true, keep: true, result: "f16" }));
    gives<Int32Array<ArrayBuffer>>()(multiply(bytes, unsigned, { ...sizes, result: "i32" }));
    gives<Tensor<"i32">>()(multiply(bytes, bytes, { ...sizes, keep: true }));
    gives<MatmulReport<Int32Array<ArrayBuffer>>>()(multiply(bytes, bytes, { ...sizes, report: true }));
    gives<MatmulReport<Tensor<"i32">>>()(multiply(bytes, bytes, { ...sizes, report: true, keep: true }));

    // Tensors know their sizes.
    gives<Float32Array<ArrayBuffer>>()(multiply(x, x));
    gives<Float32Array<ArrayBuffer>>()(multiply(x, y.reshape([1, 1]), {}));
    gives<Int32Array<ArrayBuffer>>()(multiply(signed, unsigned));

    // What the options' type leaves open, the result's does too.
    const reported = { ...sizes, report: true };
    const kept: MatmulOptions = { ...sizes, keep: true };
    gives<Product<"f32" | "f16">>()(multiply(a, a, reported));
    gives<Product<"f32" | "f16">>()(multiply(x, x, kept));
    gives<Product<"f32" | "f16">>()(multiply(a, a, { ...sizes, ...(is_wanted ? { report: true } : {}) }));
    gives<Product<"i32">>()(multiply(bytes, signed, reported));
    gives<Product<"i32">>()(multiply(bytes, bytes, kept));
    gives<MatmulReport>()(multiply(a, a, { ...sizes, report: true } as const));
  }
}

export async function wrong_products(gpu: Gpu): Promise<void> {
  const options = { ...sizes, report: true };
  // @ts-expect-error It may be a report.
  const bare: Float32Array = await matmul(a, a, options);
  // @ts-expect-error The same of a handle.
  const of_handle: Float32Array = await gpu.matmul(a, a, options);
  // @ts-expect-error It may be kept.
  const sums: Int32Array = await matmul(bytes, bytes, { ...sizes, keep: is_wanted });
  // @ts-expect-error It may be of f16.
  const wide: Float32Array = await gpu.matmul(a, a, { ...sizes, result: is_wanted ? "f16" : "f32" });
  // @ts-expect-error It is of f16, which TypeScript's library need not know.
  const rounded: Float32Array = await matmul(a, a, { ...sizes, result: "f16" });
  // @ts-expect-error An array does not know its sizes.
  await matmul(x, a);
  // @ts-expect-error Integers of 32 bits are not multiplied.
  await matmul(whole, whole);
  // @ts-expect-error Bytes are multiplied by bytes.
  await matmul(signed, x);
}

export function values(gpu: Gpu): void {
  for (const compute of [evaluate, gpu.evaluate.bind(gpu)] as [typeof evaluate, Gpu["evaluate"]]) {
    gives<Tensor>()(compute(x));
    gives<Tensor>()(compute(2));
    gives<Tensor>()(compute(lazy(2).mul(3)));
    gives<Tensor>()(compute(lazy(x).mul(0.5).add(x).relu().transpose().slice(0, 0, 1)));
    gives<Tensor<"f16">>()(compute(lazy(y).matmul(y).add(y).softmax()));
    gives<Tensor<"i32">>()(compute(lazy(1).sub(whole)));
    gives<Tensor<"i32">>()(compute(lazy(signed).matmul(unsigned).clamp(0, 9)));
    gives<Tensor<"u8">>()(compute(unsigned));
    gives<Tensor<"u32">>()(compute(lazy(x).argmax()));
    gives<Tensor<"u32">>()(compute<"u32">(lazy(x).maxPoolIndices([2]).shiftLeft(1)));
    gives<Tensor<"bool">>()(compute(lazy(whole).less(3).and(truths)));
    gives<Tensor>()(compute(lazy(truths).mean()));
    gives<Tensor<"f16">>()(compute(lazy(y).std(0, true, 1)));
    gives<Tensor<"i32">>()(compute(lazy(truths).select(whole, 2)));
    gives<Tensor<"i32">>()(compute(lazy(truths).select(2, lazy(whole))));
    gives<Tensor>()(compute(lazy(truths).select(1, 2)));
    gives<Tensor<"f16">>()(compute(Expr.index([3]).cast("f16")));
    gives<Tensor>()(compute(Expr.concat([lazy(x).exp(), x, Expr.randomNormal([1], 1)])));
    gives<Tensor>()(compute(lazy(x).layerNorm(-1, { scale: x, bias: 0.5 }).rfft()));
    gives<Tensor<DType>>()(compute(lazy(x) as Expr));
    gives<Tensor>()(compute(lazy(x) as Expr as Expr<"f32">));
    gives<Tensor<DType>>()(compute(2 as Value));
    let sum: Expr<"f32"> = lazy(0);
    for (const part of [x, x]) sum = sum.add(part);
    gives<Tensor>()(compute(sum));
  }
  type Over = ArrayBuffer;
  gives<Float32Array<Over> | Halves | Int32Array<Over> | Uint32Array<Over> | Uint8Array<Over> | Int8Array<Over>>()((x as Tensor<DType>).toArray());
  gives<Tensor>()(tensor(buffer, [1], { offset_bytes: 4 }));
  gives<Tensor<"i8">>()(tensor(buffer, [1], { dtype: "i8" }));
}

/** What takes any type gives it back. */
export const doubled = <D extends DType>(value: Tensor<D>): Promise<Tensor<D>> => evaluate(lazy(value).mul(2));

export async function wrong_values(gpu: Gpu, unknown: Expr): Promise<void> {
  // @ts-expect-error Places are of u32.
  const places: Float32Array = await (await evaluate(lazy(x).argmax())).toArray();
  // @ts-expect-error A comparison gives truths.
  const less: Tensor = await gpu.evaluate(lazy(x).less(3));
  // @ts-expect-error It is of f32.
  await evaluate<"u32">(lazy(x).mul(2));
  // @ts-expect-error It is of whole numbers.
  const other: Expr<"f32"> = lazy(whole);
  // @ts-expect-error Of an expression of any type nothing is known.
  const any: Tensor = await evaluate(unknown);
  // @ts-expect-error A number is no matrix.
  lazy(x).matmul(2);
  // @ts-expect-error Nor a number for each channel.
  lazy(x).batchNorm(1, 0, 0, 1);
  // @ts-expect-error A buffer is read as f32 unless something else is said.
  await tensor<"u32">(buffer, [1]);
}

export async function measures(gpu: Gpu): Promise<void> {
  await benchmark(bytes, unsigned, { ...sizes, samples: 1 });
  await gpu.benchmark(signed, bytes, { n: 1, zero_points: [1, 0] });
  await benchmark(x, y);
  await gpu.benchmark(signed, unsigned, { samples: 1 });
  await reference(a, halves, { ...sizes, c: halves, beta: 1, result: "f16" });
  // @ts-expect-error Bytes are multiplied by bytes.
  await benchmark(bytes, a, sizes);
  // @ts-expect-error An array does not know its sizes.
  await gpu.benchmark(bytes, signed);
  // @ts-expect-error A reference is of arrays, which do not know their sizes.
  await reference(a, a, { m: 1, k: 1 });
  // @ts-expect-error Its result is one of floating-point numbers.
  await reference(a, a, { ...sizes, result: "i32" });
}
