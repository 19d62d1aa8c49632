import { Gpu, type Backend } from "lapidary";

/** Multiplies on a backend; gives what was wrong, or an empty text. */
export async function multiply(backend: Backend): Promise<string> {
  const gpu = await Gpu.open({ backend, threads: 2 });
  const [m, k, n] = [33, 20, 47];
  const a = Float32Array.from({ length: m * k }, (_, i) => (i % 7) - 3);
  const b = Float32Array.from({ length: k * n }, (_, i) => (i % 5) - 2);
  const { data, backend: used } = await gpu.matmul(a, b, { m, k, n, report: true });
  if (backend === "simd") {
    const [x, y] = [new Float32Array(300 * 300).fill(2), new Float32Array(300 * 300).fill(3)];
    for (let turn = 0; ; turn++) {
      const { kernel, data } = await gpu.matmul(x, y, { m: 300, k: 300, n: 300, report: true });
      if (!data.every((value) => value === 1800)) return `${kernel} is wrong`;
      if (kernel.endsWith(", 2 threads")) break;
      if (turn === 100) return `no second thread: ${gpu.info().name}`;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  gpu.free();
  if (used !== backend) return `${used} computed in place of ${backend}`;
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let p = 0; p < k; p++) sum += a[i * k + p]! * b[p * n + j]!;
      if (data[i * n + j] !== sum) return `element ${i}, ${j} is ${data[i * n + j]}, not ${sum}`;
    }
  }
  return "";
}

export const tell = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));
