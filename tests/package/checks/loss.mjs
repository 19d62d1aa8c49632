/** Checks on one handle whose GPU is taken away by `kill`; `seen` tells what was opened. Pages only. */
import { STEPS, at_call, run_out_at } from "./faults.mjs";
import { assert, each, integers, is_fault, is_slow, problem, product, rejects, right, same, settles, skip, sleep, within } from "./tools.mjs";

export default {
  "an idle device is replaced by the next call": async ({ gpu, kill, seen }) => {
    const { a, b, options, expected } = problem(20, 31, 41);
    same(await gpu.matmul(a, b, options), expected);
    for (const wait of is_slow(gpu) ? [30] : [0, 30]) {
      const before = { asked: seen.asked, generation: gpu.info().generation };
      kill();
      if (wait) await sleep(wait);
      const { data, replayed, total_ms } = await gpu.matmul(a, b, { ...options, report: true });
      same(data, expected);
      assert(replayed && total_ms > 0, `replayed: ${replayed}`);
      assert(gpu.info().generation === before.generation + 1, `generation ${gpu.info().generation} after ${before.generation}`);
      assert(seen.asked === before.asked + 1, `${seen.asked - before.asked} devices were asked for`);
      assert(!(await gpu.matmul(a, b, { ...options, report: true })).replayed, "replayed once");
    }
  },

  "16 products under way are replayed on one fresh device": async ({ gpu, kill, seen }) => {
    for (const wait of is_slow(gpu) ? [0] : [0, 2]) {
      const before = seen.asked;
      const all = Array.from({ length: 16 }, (_, i) => problem(20 + i, 31, 25, i, i % 3 ? {} : { alpha: 2 }));
      const pending = all.map(({ a, b, options }) => gpu.matmul(a, b, { ...options, report: true }));
      const ends = Promise.all(pending);
      if (wait) await sleep(wait);
      kill();
      (await ends).forEach(({ data, replayed }, i) => {
        same(data, all[i].expected, `product ${i}`);
        assert(replayed || wait, `product ${i} was not replayed`);
      });
      assert(seen.asked <= before + 1, `${seen.asked - before} devices were asked for`);
      await right(gpu, problem(5, 5, 5));
    }
  },

  "a tensor of before leaves the fresh device and its tensors alone": async ({ gpu, kill, lapidary: { lazy } }) => {
    const x = integers(49);
    const old = await gpu.tensor(x, [7, 7]);
    kill();
    await right(gpu, problem(5, 5, 5));
    const fresh = await gpu.tensor(x, [7, 7]);
    const { generation } = gpu.info();
    const calls = [
      () => gpu.matmul(old, old, {}),
      () => gpu.matmul(x, x, { m: 7, k: 7, n: 7, beta: 1, c: old }),
      () => gpu.matmul(old, old, { keep: true }),
      () => gpu.evaluate(lazy(old).add(1)),
      () => gpu.evaluate(lazy(fresh).add(old)),
      () => old.toArray(),
    ];
    for (const call of calls) is_fault((await settles(call())).error, ["device_lost"]);
    assert(gpu.info().generation === generation, `generation ${gpu.info().generation} after ${generation}`);
    same(await fresh.toArray(), x);
    for (const tensor of [old, fresh]) tensor.dispose();
  },

  "tensors of before are lost, and say so": async ({ gpu, kill }) => {
    const x = integers(49);
    const [a, b] = [await gpu.tensor(x, [7, 7]), await gpu.matmul(x, x, { m: 7, k: 7, n: 7, keep: true })];
    kill();
    for (const call of [() => a.toArray(), () => gpu.matmul(a, b, {}), () => gpu.matmul(x, b, { m: 7 }), () => gpu.benchmark(a, b, {})])
      await rejects("device_lost", call, /lost/);
    same(await gpu.matmul(x, x, { m: 7, k: 7, n: 7 }), product(x, x, { m: 7, k: 7, n: 7 }), "a product of arrays");
    for (const call of [
      () => a.toArray(),
      () => gpu.matmul(a, x, { n: 7 }),
      () => gpu.matmul(x, b, { m: 7 }),
      () => gpu.benchmark(a, b, {}),
    ])
      await rejects("device_lost", call, /lost/);
    const fresh = await gpu.tensor(x, [7, 7]);
    same(await gpu.matmul(fresh, fresh, {}), product(x, x, { m: 7, k: 7, n: 7 }), "a fresh tensor");
    for (const tensor of [a, b, fresh]) tensor.dispose();
  },

  "whatever is called first after a loss, the second call works": async ({ gpu, kill }) => {
    const x = integers(25);
    const calls = {
      tensor: async () => (await gpu.tensor(x, [5, 5])).dispose(),
      benchmark: () => gpu.benchmark(x, x, { m: 5, k: 5, n: 5, samples: 1, min_ms: 0 }),
      ...(!is_slow(gpu) && { keep: async () => (await gpu.matmul(x, x, { m: 5, k: 5, n: 5, keep: true })).dispose() }),
      ...(gpu.device && {
        buffer: async () => {
          const buffer = gpu.device.createBuffer({ size: 64, usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
          (await gpu.tensor(buffer, [4, 4])).dispose();
        },
      }),
    };
    await each(calls, async (call) => {
      kill();
      await sleep(20);
      const { error } = await settles(call());
      if (error) is_fault(error, "device_lost");
      const second = await settles(call());
      assert(!second.error, `the second call: ${second.error?.code}`);
    });
  },

  "calls of every kind under way end, right or as lost": async ({ gpu, kill }) => {
    const { a, b, options, expected } = problem(60, 51, 41);
    for (const wait of is_slow(gpu) ? [0] : [-1, 0, 1, 3]) {
      const before = await gpu.tensor(a, [60, 51]);
      const pending = {
        plain: gpu.matmul(a, b, options).then((data) => same(data, expected)),
        report: gpu.matmul(a, b, { ...options, report: true }).then(({ data }) => same(data, expected)),
        tensor: gpu.matmul(before, b, { n: 41 }).then((data) => same(data, expected)),
        keep: gpu
          .matmul(a, b, { ...options, keep: true })
          .then((tensor) => tensor.toArray())
          .then((data) => same(data, expected)),
        upload: gpu
          .tensor(a, [60, 51])
          .then((tensor) => tensor.toArray())
          .then((data) => same(data, a)),
        download: before.toArray().then((data) => same(data, a)),
        benchmark: gpu.benchmark(a, b, { ...options, samples: 1, min_ms: 1 }),
      };
      const ends = Object.entries(pending).map(async ([name, promise]) => ({ name, ...(await settles(promise)) }));
      if (wait >= 0) await sleep(wait);
      kill();
      for (const { name, error } of await Promise.all(ends)) {
        const replayable = name === "plain" || name === "report";
        if (error && replayable) throw new Error(`${name}: ${error.code} ${error.message}`);
        if (error) is_fault(error, "device_lost");
      }
      before.dispose();
    }
  },

  "a queue that is lost ends, right or as lost": async ({ gpu, kill }) => {
    const x = integers(81, 5);
    const sizes = { m: 9, k: 9, n: 9 };
    // Lost before the first product, after it, in the middle, and at the end; read at once, or later.
    for (const [at, wait] of [[0], [30], [60, 5]]) {
      const [a, b] = [await gpu.tensor(x, [9, 9]), await gpu.tensor(x, [9, 9])];
      const count = 60;
      const kept = [];
      for (let i = 0; i <= count; i++) {
        if (i === at) kill();
        if (i < count) kept.push(settles(gpu.matmul(a, b, { keep: true })));
      }
      if (wait) await sleep(wait);
      for (const { value, error } of await within(20_000, Promise.all(kept), "a queued product")) {
        const end = error ? { error } : await within(20_000, settles(value.toArray()), "its reading");
        if (end.error) is_fault(end.error, "device_lost");
        else same(end.value, product(x, x, sizes));
        value?.dispose();
      }
      await rejects("device_lost", () => gpu.matmul(a, b, { keep: true }), /lost/);
      const fresh = await gpu.tensor(x, [9, 9]);
      const next = await gpu.matmul(fresh, fresh, { keep: true });
      same(await next.toArray(), product(x, x, sizes), "a queue on the fresh device");
      for (const tensor of [a, b, fresh, next]) tensor.dispose();
    }
  },

  "a loss at each step of a queue": async ({ gpu, kill, backend }) => {
    if (!is_slow(gpu) && backend === "webgpu") skip("it is made on a software GPU");
    const item = integers(81, 6);
    const square = product(item, item, { m: 9, k: 9, n: 9 });
    // What happens with each product, in the middle of the queue; with each submission, at the second; with each result.
    const of_webgl2 = [
      [
        WebGL2RenderingContext.prototype,
        {
          texStorage2D: 30,
          bindFramebuffer: 20,
          framebufferTexture2D: 30,
          drawBuffers: 20,
          drawArrays: 20,
          flush: 1,
          bindBuffer: 2,
          readPixels: 1,
          fenceSync: 2,
          clientWaitSync: 1,
          getBufferSubData: 1,
          getError: 1,
        },
      ],
    ];
    // On WebGPU with each launch of many products.
    const shared = [
      [GPUDevice.prototype, { createBuffer: 2, createBindGroup: 1, createCommandEncoder: 2, popErrorScope: 3 }],
      [GPUComputePassEncoder.prototype, { setPipeline: 2, setBindGroup: 2, dispatchWorkgroups: 2, end: 2 }],
      [GPUCommandEncoder.prototype, { beginComputePass: 2, finish: 2 }],
      [GPUQueue.prototype, { writeBuffer: 1, submit: 2 }],
      [GPUBuffer.prototype, { mapAsync: 1, getMappedRange: 1 }],
    ];
    // And of such as share no launch.
    const alone = [
      [GPUDevice.prototype, { createBuffer: 20, createBindGroup: 20 }],
      [GPUComputePassEncoder.prototype, { setBindGroup: 20, dispatchWorkgroups: 20 }],
    ];
    for (const [items, steps, least] of backend === "webgpu" ? [[1, shared, 12], [2, alone, 4]] : [[1, of_webgl2, 12]]) {
      const [x, expected] = [item, square].map((values) => Float32Array.from({ length: 81 * items }, (_, i) => values[i % 81]));
      let injected = 0;
      const faults = [];
      for (const [prototype, calls] of steps) {
        for (const [name, at] of Object.entries(calls)) {
          const a = await gpu.tensor(x, [items, 9, 9]);
          const hook = at_call(prototype, name, at, kill);
          const kept = Array.from({ length: 40 }, () => settles(gpu.matmul(a, a, { keep: true })));
          const ends = (await within(20_000, Promise.all(kept), "the queue")).map(({ value, error }) =>
            error ? { error } : settles(within(20_000, value.toArray(), "a reading")),
          );
          const read = await Promise.all(ends);
          hook.stop();
          injected += hook.fired;
          try {
            for (const { value, error } of read) error ? is_fault(error, "device_lost") : same(value, expected);
            await right(gpu, problem(5, 6, 7), "the next call");
          } catch (fault) {
            faults.push(`at ${name} ${at}: ${fault.message}`);
          }
          a.dispose();
          for (const { value } of await Promise.all(kept)) value?.dispose();
        }
      }
      assert(injected >= least, `${injected} losses only`);
      assert(faults.length === 0, `${faults.length} of ${injected}:\n${faults.join("\n")}`);
    }
  },

  "memory that runs out in a queue": async ({ gpu, backend }) => {
    // On WebGPU results that lie together, more than find room in one buffer, and such that have buffers of their own; from which new one on.
    const on_webgpu = [[64, 300, 1], [130, 40, 1], [130, 40, 25]];
    for (const [side, count, at] of backend === "webgpu" ? on_webgpu : [[9, 60, 1], [9, 60, 25]]) {
      const [x, shape, sizes] = [integers(side * side, 7), [side, side], { m: side, k: side, n: side }];
      const expected = product(x, x, sizes);
      const again = product(expected, x, sizes);
      const a = await gpu.tensor(x, shape);
      const before = gpu.memory();
      const first = await gpu.matmul(a, a, { keep: true });
      same(await first.toArray(), expected);
      gpu.trim();
      const stop = run_out_at(at, backend);
      const kept = [];
      for (let i = 0; i < count; i++) kept.push(await gpu.matmul(a, a, { keep: true }));
      stop();
      // Computed from them before it is known.
      const derived = await gpu.matmul(kept.at(-1), a, { keep: true });
      let short = 0;
      for (const tensor of [...kept, derived]) {
        const { value, error } = await within(20_000, settles(tensor.toArray()), "a reading");
        if (error) short++, is_fault(error, "out_of_memory");
        else same(value, tensor === derived ? again : expected);
      }
      assert(short > 0, "no product lacked memory");
      await rejects("out_of_memory", () => gpu.matmul(kept.at(-1), a, { keep: true }));
      await rejects("out_of_memory", () => gpu.matmul(kept.at(-1), a, {}));
      same(await first.toArray(), expected, "what was computed before");
      const next = await gpu.matmul(first, a, { keep: true });
      same(await next.toArray(), again, "what is computed after");
      await right(gpu, problem(6, 7, 8), "arrays");
      for (const tensor of [...kept, derived, next, first]) tensor.dispose();
      const after = gpu.memory();
      assert(after.used_bytes <= before.used_bytes && after.buffers <= before.buffers, JSON.stringify({ before, after }));
      a.dispose();
    }
  },

  "memory that runs out for a call that is waited for, with a queue before it": async ({ gpu, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const x = integers(81, 8);
    const a = await gpu.tensor(x, [9, 9]);
    const { a: p, b: q, options, expected } = problem(11, 12, 13);
    for (const at of [1, 2, 3]) {
      gpu.trim();
      const kept = await Promise.all(Array.from({ length: 5 }, () => gpu.matmul(a, a, { keep: true })));
      const stop = run_out_at(at);
      const pending = settles(gpu.matmul(p, q, options));
      stop();
      const { value, error } = await within(20_000, pending, "the call");
      error ? is_fault(error, "out_of_memory") : same(value, expected);
      for (const tensor of kept) {
        same(await tensor.toArray(), product(x, x, { m: 9, k: 9, n: 9 }), "the queue is not to blame");
        tensor.dispose();
      }
      same(await gpu.matmul(p, q, options), expected, "the next call");
    }
    a.dispose();
  },

  "memory that ran out in a queue, found out when there is room for a large array": async ({ gpu, backend }) => {
    if (backend !== "webgl2") skip("it is of WebGL2");
    const x = integers(81, 9);
    const a = await gpu.tensor(x, [9, 9]);
    gpu.trim();
    const stop = run_out_at(1, backend);
    const kept = [1, 2, 3].map((alpha) => gpu.matmul(a, a, { alpha, keep: true }));
    stop();
    const [k, n] = [2048, 4096];
    const [large, ones] = [await gpu.tensor(new Float32Array(k * n).fill(2), [k, n]), await gpu.tensor(new Float32Array(k).fill(1), [1, k])];
    for (const tensor of await Promise.all(kept)) {
      await rejects("out_of_memory", () => tensor.toArray());
      await rejects("out_of_memory", () => gpu.matmul(tensor, a, { keep: true }));
      tensor.dispose();
    }
    same(await gpu.matmul(ones, large, {}), new Float32Array(n).fill(2 * k), "the large array");
    same(await gpu.matmul(a, a, {}), product(x, x, { m: 9, k: 9, n: 9 }), "what was there before");
    for (const tensor of [a, large, ones]) tensor.dispose();
  },

  "memory that runs out for several calls at once": async ({ gpu, backend }) => {
    if (backend !== "webgpu") skip("it is of WebGPU");
    const side = 200;
    const x = integers(side * side, 3);
    const { a, b, options, expected } = problem(150, 4, 151);
    const calls = () => [gpu.matmul(a, b, options), gpu.matmul(a, b, options), gpu.tensor(x, [side, side]), gpu.tensor(x, [side, side])];
    const check = async (pending, what) => {
      const ends = await within(20_000, Promise.all(pending.map(settles)), what);
      for (const { value, error } of ends) {
        assert(!error, `${what}: ${error?.code} ${error?.message}`);
        same(value.toArray ? await value.toArray() : value, value.toArray ? x : expected, what);
        value.dispose?.();
      }
    };
    await check(calls(), "before");
    // For the first tries alone.
    gpu.trim();
    let stop = run_out_at(1);
    const pending = calls();
    stop();
    await check(pending, "with memory for the second tries");
    // For all of them; nothing of what was not to be had serves later.
    gpu.trim();
    stop = run_out_at(1);
    for (const { error } of await within(20_000, Promise.all(calls().map(settles)), "calls without memory")) is_fault(error, "out_of_memory");
    stop();
    await check(calls(), "with memory again");
    // What cannot be read again is what there was no memory for.
    gpu.trim();
    stop = run_out_at(1);
    const [changed, copy] = [a.slice(), x.slice()];
    const changes = [gpu.matmul(changed, b, options), gpu.tensor(copy, [side, side])].map(settles);
    stop();
    for (const array of [changed, copy]) array.fill(1);
    for (const { error } of await Promise.all(changes)) is_fault(error, "out_of_memory");
    await check(calls(), "in the end");
  },

  "operands changed meanwhile are noticed": async ({ gpu, kill }) => {
    const changes = {
      "all of a": ({ a }) => a.fill(1),
      "the last of b": ({ b }) => (b[b.length - 1] += 1),
      "all of c": ({ options }) => options.c.fill(0),
      "a transferred": ({ a }) => structuredClone(a, { transfer: [a.buffer] }),
    };
    const ends = Object.fromEntries(
      Object.entries(changes).map(([name, change]) => {
        const one = problem(12, 11, 9, 1, name.endsWith("c") ? { beta: 1, c: integers(108) } : {});
        const end = settles(gpu.matmul(one.a, one.b, one.options));
        change(one);
        return [name, end];
      }),
    );
    kill();
    await each(ends, async (end) => is_fault((await end).error, "device_lost", /changed/));
  },

  "free and abort during a replay": async ({ lapidary, gpu, backend, seen, kill }) => {
    const { a, b, options, expected } = problem(9, 9, 9);
    const controller = new AbortController();
    const aborted = settles(gpu.matmul(a, b, { ...options, signal: controller.signal }));
    kill();
    await sleep(1);
    controller.abort();
    is_fault((await aborted).error, "aborted");
    await right(gpu, problem(5, 5, 5));
    const before = [seen.devices.length, seen.contexts.length];
    const own = await lapidary.Gpu.open({ backend });
    const pending = Array.from({ length: 4 }, () => settles(own.matmul(a, b, options)));
    kill();
    own.free();
    for (const { error, value } of await within(30_000, Promise.all(pending)))
      error ? is_fault(error, ["disposed", "device_lost"]) : same(value, expected);
    // The next loss is to be of the shared handle again.
    [seen.devices.length, seen.contexts.length] = before;
  },

  "loss after loss, products all along": async ({ gpu, kill, seen }) => {
    await right(gpu, problem(5, 5, 5));
    const before = { asked: seen.asked, generation: gpu.info().generation };
    for (let turn = 1; turn <= (is_slow(gpu) ? 1 : 20); turn++) {
      const pending = [1, 2, 3].map((i) => right(gpu, problem(10 * i, 9, 7, turn)));
      kill();
      await Promise.all(pending);
      assert(
        gpu.info().generation === before.generation + turn,
        `generation ${gpu.info().generation} after ${turn} losses from ${before.generation}`,
      );
      assert(seen.asked === before.asked + turn, `${seen.asked - before.asked} devices after ${turn} losses`);
    }
  },

  "another loss while the first is mended": async ({ gpu, kill, backend }) => {
    const step = { webgpu: [GPUQueue.prototype, "submit"], webgl2: [WebGL2RenderingContext.prototype, "drawArrays"] }[backend];
    const { a, b, options, expected } = problem(9, 5, 7);
    // The first is the fresh device's own test, the second a replayed product.
    for (const at of is_slow(gpu) ? [1] : [1, 2]) {
      const pending = Array.from({ length: 4 }, () => settles(gpu.matmul(a, b, options)));
      kill();
      const hook = at_call(...step, at, kill);
      const ends = await Promise.all(pending);
      hook.stop();
      assert(hook.fired, `no second loss at ${at}`);
      for (const { error, value } of ends)
        error ? is_fault(error, ["device_lost", "unavailable"]) : same(value, expected, `with a loss at ${at}`);
      await right(gpu, problem(5, 5, 5), `after a loss at ${at}`);
    }
  },

  "a loss at each step of a call": async ({ gpu, kill, backend }) => {
    const faults = [];
    let injected = 0;
    const { a, b, options, expected } = problem(13, 11, 15);
    for (const [prototype, names] of STEPS[backend]()) {
      for (const name of names) {
        let stays = true;
        for (let at = 1; stays && at <= (is_slow(gpu) ? 1 : 3); at++) {
          const hook = at_call(prototype, name, at, kill);
          const { value, error } = await settles(within(20_000, gpu.matmul(a, b, options), "the call"));
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
    assert(injected >= 6, `${injected} losses only`);
    assert(faults.length === 0, `${faults.length} of ${injected}:\n${faults.join("\n")}`);
  },

  "memory is counted anew": async ({ gpu }) => {
    await right(gpu, problem(5, 5, 5));
    const { used_bytes, buffers } = gpu.memory();
    assert(used_bytes === 0 && buffers === 0, `${used_bytes} bytes in ${buffers} buffers`);
  },
};
