import { Gpu, type Backend } from "lapidary";

/** Multiplies on a backend; gives what was wrong, or an empty text. */
export async function multiply(backend: Backend): Promise<string> {
  const gpu = await Gpu.open({ backend });
  const [m, k, n] = [33, 20, 47];
  const a = Float32Array.from({ length: m * k }, (_, i) => (i % 7) - 3);
  const b = Float32Array.from({ length: k * n }, (_, i) => (i % 5) - 2);
  const { data, backend: used } = await gpu.matmul(a, b, { m, k, n, report: true });
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
