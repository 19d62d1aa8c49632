/** What is told of devices, products and benchmarks, and how results are judged. */
import { assert, each, integers, problem, same } from "./tools.mjs";

const is_time = (value) => Number.isFinite(value) && value >= 0;

function check_report(report, backend, kept) {
  const { device, software, kernel, upload_ms, kernel_ms, download_ms, total_ms, kernel_clock, replayed } = report;
  const text = JSON.stringify({ ...report, data: undefined });
  assert(report.backend === backend, text);
  assert(typeof device === "string" && typeof software === "boolean", text);
  assert(/^matmul\/\S/.test(kernel) || kernel === "none", text);
  assert([upload_ms, kernel_ms, download_ms, total_ms].every(is_time), text);
  assert(upload_ms + kernel_ms + download_ms <= total_ms + 1, text);
  assert(["timestamp", "wall"].includes(kernel_clock) && replayed === false, text);
  assert(
    Object.keys(report).sort().join() ===
      "backend,data,device,download_ms,kernel,kernel_clock,kernel_ms,replayed,software,total_ms,upload_ms",
    text,
  );
  assert(kept === !(report.data instanceof Float32Array), text);
}

export default {
  "info names the device, and every other backend with its reason": async ({ gpu, backend }) => {
    const info = gpu.info();
    const text = JSON.stringify(info);
    assert(info.backend === backend && info.generation === 1 && info.reason !== "", text);
    assert(["discrete", "integrated", "gpu", "software", "cpu"].includes(info.kind) && info.software === (info.kind === "software"), text);
    assert(
      [info.name, info.vendor, info.architecture].every((value) => typeof value === "string"),
      text,
    );
    assert(Object.values(info.limits).every((limit) => Number.isFinite(limit) && limit > 0) && Array.isArray(info.features), text);
    const others = info.others
      .map((other) => other.backend)
      .sort()
      .join();
    assert(others === ["scalar", "simd", "webgl2", "webgpu"].filter((other) => other !== backend).join(), text);
    for (const other of info.others) {
      assert(["available", "off", "untried"].includes(other.state) && other.reason !== "" && typeof other.remedy === "string", text);
    }
    assert(gpu.info() !== info && JSON.stringify(gpu.info()) === text, "a copy each time");
  },

  "reports are complete": async ({ gpu, backend }) => {
    const { a, b, options, expected } = problem(70, 80, 90);
    const plain = await gpu.matmul(a, b, { ...options, report: true });
    check_report(plain, backend, false);
    same(plain.data, expected);
    const kept = await gpu.matmul(a, b, { ...options, report: true, keep: true });
    check_report(kept, backend, true);
    same(await kept.data.toArray(), expected);
    kept.data.dispose();
    check_report(await gpu.matmul(integers(0), integers(0), { m: 0, k: 3, n: 0, report: true }), backend, false);
    const many = await Promise.all(Array.from({ length: 8 }, () => gpu.matmul(a, b, { ...options, report: true })));
    for (const report of many) {
      check_report(report, backend, false);
      same(report.data, expected);
    }
  },

  "a benchmark is complete": async ({ gpu, backend }) => {
    const { a, b, options } = problem(48, 48, 48);
    const tensor = await gpu.tensor(a, [48, 48]);
    const calls = {
      arrays: [a, b, options],
      "a tensor": [tensor, b, { n: 48 }],
      strides: [integers(60), integers(60), { m: 5, k: 6, n: 7, lda: 10, ldb: 9 }],
      "k = 0": [integers(0), integers(0), { m: 3, k: 0, n: 3 }],
      "no elements": [integers(0), integers(12), { m: 0, k: 3, n: 4 }],
      transposed: [a, b, { ...options, transpose_a: true, transpose_b: true, alpha: 2 }],
    };
    await each(calls, async ([x, y, more], name) => {
      const found = await gpu.benchmark(x, y, { ...more, samples: 3, min_ms: 1 });
      const text = JSON.stringify(found);
      assert(
        found.backend === backend && (name === "no elements" || /^matmul\/\S/.test(found.kernel)) && found.samples_ms.length === 3,
        text,
      );
      assert(found.samples_ms.every(is_time) && is_time(found.median_ms) && is_time(found.gflops) && found.dispatches >= 1, text);
      assert([...found.samples_ms].sort((x, y) => x - y)[1] === found.median_ms, text);
    });
    tensor.dispose();
  },

  "a reference tells right from wrong": async ({ gpu, lapidary: { reference, random_matrix } }) => {
    const [m, k, n] = [37, 53, 29];
    const [a, b, c] = [await random_matrix(m * k, 1), await random_matrix(k * n, 2), await random_matrix(m * n, 3)];
    for (const more of [{}, { alpha: -1.5, beta: 0.25, c }, { transpose_a: true, transpose_b: true }, { alpha: 0 }]) {
      const options = { m, k, n, ...more };
      const judge = await reference(a, b, options);
      const result = await gpu.matmul(a, b, options);
      const verdict = judge.check(result);
      const text = JSON.stringify({ more: Object.keys(more), verdict });
      assert(verdict.ok && verdict.elements === m * n && verdict.wrong === 0 && verdict.worst_ratio <= 1, text);
      for (const wrong of [0.01, NaN, Infinity]) {
        result[5 * n + 3] += wrong;
        const { ok, wrong: count, row, column, value } = judge.check(result);
        assert(
          !ok && count === 1 && row === 5 && column === 3 && Object.is(value, result[5 * n + 3]),
          `${wrong} is not found: ${JSON.stringify(judge.check(result))}`,
        );
      }
      judge.free();
    }
  },

  "a hidden page's calls wait for none of its timers, which come late": async ({ gpu, lapidary: { reference } }) => {
    const { a, b, options, expected } = problem(300, 400, 500);
    const { document, setTimeout } = globalThis;
    const hidden = document && Object.getOwnPropertyDescriptor(Document.prototype, "hidden");
    const waits = [];
    globalThis.setTimeout = (act, ms, ...rest) => {
      waits.push(ms);
      return setTimeout(act, ms, ...rest);
    };
    if (hidden) Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    try {
      const exact = await reference(a, b, options);
      const { data } = await gpu.matmul(a, b, { ...options, report: true });
      const { samples_ms } = await gpu.benchmark(a, b, { ...options, samples: 2, min_ms: 1 });
      same(data, expected);
      assert(exact.check(data).ok && samples_ms.length === 2, `${samples_ms.length} samples`);
      exact.free();
    } finally {
      globalThis.setTimeout = setTimeout;
      if (hidden) delete document.hidden;
    }
    // Others are of workers that may not answer.
    assert(!waits.some((ms) => ms <= 16), `timers: ${waits.join()}`);
  },

  "random matrices are the same for the same seed": async ({ lapidary: { random_matrix } }) => {
    const [x, y, z] = [await random_matrix(70_000, 5), await random_matrix(70_000, 5), await random_matrix(70_000, 6)];
    same(x, y);
    assert(
      x.every((value) => value >= -1 && value < 1),
      "all are in [−1, 1)",
    );
    assert(x.filter((value, i) => value === z[i]).length < 100, "another seed gives others");
    same(await random_matrix(100, 5), x.slice(0, 100), "a shorter one begins alike");
    same(await random_matrix(0, 5), integers(0));
  },
};
