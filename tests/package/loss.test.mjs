/** The GPU goes away: idle, during calls, at every step of a call, and again. No result is ever wrong, and none is waited for in vain. */
import { test } from "node:test";
import { pages } from "./page.mjs";

const { visit } = pages();

/** Each gets `backend`, `seen` (what was opened) and `kill`, which takes the GPU away. */
function losses(name, body) {
  for (const backend of ["webgpu", "webgl2"]) {
    test(`${name} on ${backend}`, () => visit(`async (tools, backend) => {
      const seen = tools.watch();
      const gpu = await tools.lapidary.Gpu.open({ backend });
      const generation = () => gpu.info().generation;
      const kill = () => tools.lose(seen, backend);
      await tools.within(20_000, (${body})({ ...tools, backend, seen, gpu, kill, generation }), "the test");
      await tools.right(gpu, tools.problem(6, 7, 8), "the next call");
    }`, { argument: backend }));
  }
}

losses("an idle device is replaced by the next call", async ({ gpu, kill, seen, generation, assert, same, problem, sleep }) => {
  const { a, b, options, expected } = problem(20, 30, 40);
  same(await gpu.matmul(a, b, options), expected);
  for (const [turn, wait] of [0, 30].entries()) {
    kill();
    if (wait) await sleep(wait);
    const { data, replayed, backend, total_ms } = await gpu.matmul(a, b, { ...options, report: true });
    same(data, expected);
    assert(replayed && total_ms > 0, `replayed: ${replayed}`);
    assert(generation() === turn + 2 && seen.asked === turn + 2, `generation ${generation()}, ${seen.asked} devices on ${backend} after ${turn + 1} losses`);
    const next = await gpu.matmul(a, b, { ...options, report: true });
    assert(!next.replayed, "replayed once");
  }
});

losses("16 products under way are replayed on one fresh device", async ({ gpu, kill, seen, generation, assert, same, problem, sleep }) => {
  for (const [turn, wait] of [0, 2].entries()) {
    const all = Array.from({ length: 16 }, (_, i) => problem(40 + i, 50, 60, i, i % 3 ? {} : { alpha: 2, beta: -1, c: new Float32Array((40 + i) * 60).fill(3) }));
    const pending = all.map(({ a, b, options }) => gpu.matmul(a, b, { ...options, report: true }));
    if (wait) await sleep(wait);
    kill();
    const reports = await Promise.all(pending);
    reports.forEach(({ data }, i) => same(data, all[i].expected, `product ${i}`));
    if (!wait) assert(reports.every(({ replayed }) => replayed), "all were replayed");
    assert(seen.asked <= turn + 2 && generation() === seen.asked, `${seen.asked} devices, generation ${generation()}`);
  }
});

losses("tensors of before are lost, and say so", async ({ gpu, kill, lapidary, rejects, settles, is_fault, same, problem, integers, product }) => {
  const x = integers(36);
  const [a, b] = [await gpu.tensor(x, [6, 6]), await gpu.matmul(x, x, { m: 6, k: 6, n: 6, keep: true })];
  kill();
  for (const call of [() => a.toArray(), () => gpu.matmul(a, b, {}), () => gpu.matmul(x, b, { m: 6 }), () => gpu.benchmark(a, b, {})]) await rejects("device_lost", call, /lost/);
  same(await gpu.matmul(x, x, { m: 6, k: 6, n: 6 }), product(x, x, { m: 6, k: 6, n: 6 }), "a product of arrays");
  for (const call of [() => a.toArray(), () => gpu.matmul(a, x, { n: 6 }), () => gpu.matmul(x, b, { m: 6 }), () => gpu.benchmark(a, b, {})]) await rejects("device_lost", call, /lost/);
  const fresh = await gpu.tensor(x, [6, 6]);
  same(await gpu.matmul(fresh, fresh, {}), product(x, x, { m: 6, k: 6, n: 6 }), "a fresh tensor");
  for (const tensor of [a, b, fresh]) tensor.dispose();
});

losses("whatever is called first after a loss, the second call works", async ({ gpu, kill, backend, each, settles, is_fault, assert, integers, sleep }) => {
  const x = integers(16);
  await each({
    tensor: () => gpu.tensor(x, [4, 4]),
    benchmark: () => gpu.benchmark(x, x, { m: 4, k: 4, n: 4, samples: 1, min_ms: 0 }),
    keep: () => gpu.matmul(x, x, { m: 4, k: 4, n: 4, keep: true }),
    "a tensor used": async () => gpu.matmul(await gpu.tensor(x, [4, 4]), x, { n: 4 }),
  }, async (call) => {
    kill();
    await sleep(20);
    const { error } = await settles(call());
    if (error) is_fault(error, "device_lost");
    const second = await settles(call());
    assert(!second.error, `the second call: ${second.error?.code}`);
    second.value.dispose?.();
  });
});

losses("calls of every kind under way end, right or as lost", async ({ gpu, kill, backend, settles, is_fault, same, problem, sleep, integers, product }) => {
  const { a, b, options, expected } = problem(60, 50, 40);
  for (const wait of [-1, 0, 3]) {
    const fresh = await gpu.tensor(a, [60, 50]);
    const pending = {
      plain: gpu.matmul(a, b, options).then((data) => same(data, expected)),
      report: gpu.matmul(a, b, { ...options, report: true }).then(({ data }) => same(data, expected)),
      tensor: gpu.matmul(fresh, b, { n: 40 }).then((data) => same(data, expected)),
      keep: gpu.matmul(a, b, { ...options, keep: true }).then((tensor) => tensor.toArray()).then((data) => same(data, expected)),
      upload: gpu.tensor(a, [60, 50]).then((tensor) => tensor.toArray()).then((data) => same(data, a)),
      download: fresh.toArray().then((data) => same(data, a)),
      benchmark: gpu.benchmark(a, b, { ...options, samples: 1, min_ms: 1 }),
    };
    const ends = Object.entries(pending).map(async ([name, promise]) => ({ name, ...(await settles(promise)) }));
    if (wait >= 0) await sleep(wait);
    kill();
    for (const { name, error } of await Promise.all(ends)) {
      if (error) is_fault(error, name === "plain" || name === "report" ? "never" : "device_lost");
    }
    same(await gpu.matmul(a, b, options), expected, "afterwards");
  }
});

losses("operands changed meanwhile are noticed", async ({ gpu, kill, rejects, settles, same, assert, is_fault, problem, integers }) => {
  for (const change of [({ a }) => a.fill(1), ({ b }) => (b[b.length - 1] += 1), ({ options }) => options.c.fill(0), ({ a }) => structuredClone(a.buffer, { transfer: [a.buffer] })]) {
    const one = problem(12, 10, 9, 1, { beta: 1, c: integers(108) });
    const pending = gpu.matmul(one.a, one.b, one.options);
    change(one);
    kill();
    await rejects("device_lost", () => pending, /changed/);
  }
});

losses("free during a replay", async ({ lapidary, backend, seen, kill, settles, same, is_fault, problem }) => {
  const own = await lapidary.Gpu.open({ backend });
  const { a, b, options, expected } = problem(9, 9, 9);
  const pending = Array.from({ length: 4 }, () => settles(own.matmul(a, b, options)));
  kill();
  own.free();
  for (const { error, value } of await Promise.all(pending)) error ? is_fault(error, ["disposed", "device_lost"]) : same(value, expected);
});

losses("aborted during a replay", async ({ gpu, kill, settles, is_fault, problem, sleep }) => {
  const { a, b, options } = problem(9, 9, 9);
  const controller = new AbortController();
  const pending = settles(gpu.matmul(a, b, { ...options, signal: controller.signal }));
  kill();
  await sleep(1);
  controller.abort();
  is_fault((await pending).error, "aborted");
});

losses("loss after loss, products all along", async ({ gpu, kill, backend, seen, generation, assert, right, problem }) => {
  for (let turn = 1; turn <= (backend === "webgpu" ? 4 : 12); turn++) {
    const pending = [1, 2, 3].map((i) => right(gpu, problem(10 * i, 9, 8, turn)));
    kill();
    await Promise.all(pending);
    assert(generation() === turn + 1 && seen.asked === turn + 1, `generation ${generation()}, ${seen.asked} devices after ${turn} losses`);
  }
});

losses("a loss at each step of a call", async ({ gpu, kill, backend, STEPS, at_call, settles, same, assert, is_fault, problem, within }) => {
  const faults = [];
  let injected = 0;
  const { a, b, options, expected } = problem(13, 11, 12);
  for (const [prototype, names] of STEPS[backend]()) {
    for (const name of names) {
      let stays = true;
      for (let at = 1; stays && at <= (backend === "webgpu" ? 1 : 2); at++) {
        const hook = at_call(prototype, name, at, kill);
        const { value, error } = await settles(within(5_000, gpu.matmul(a, b, options), "the call"));
        hook.stop();
        stays = hook.fired;
        injected += hook.fired;
        try {
          if (error) is_fault(error, "device_lost");
          else same(value, expected);
          same(await gpu.matmul(a, b, options), expected, "the next call");
        } catch (fault) {
          faults.push(`at ${name} ${at}: ${fault.message}`);
        }
      }
    }
  }
  assert(injected >= 8, `${injected} losses only`);
  assert(faults.length === 0, `${faults.length} of ${injected}:\n${faults.join("\n")}`);
});
