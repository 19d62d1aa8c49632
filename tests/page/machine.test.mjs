/** Machine mode: what a script gets that opens the page and waits. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { NO_GPU, launch, open } from "./browser.mjs";
import { serve } from "./server.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** Opens the page in machine mode and gives what it posted. */
async function posted(query, { server: options, browser: other = browser } = {}) {
  const server = await serve(options);
  const { context } = await open(other, `${server.url}?headless=1&${query}`);
  const late = new Promise((_, reject) => setTimeout(reject, 30_000, new Error("no record with done in 30 s")).unref());
  try {
    return await Promise.race([server.done, late]);
  } finally {
    await context.close();
    await server.close();
  }
}

test("devices, rows and a summary are posted in order", async () => {
  const records = await posted("sizes=20,33&backends=webgpu,webgl2,simd&repeats=2&seed=9&bad=1");
  const devices = records.filter(({ device }) => device).map(({ device }) => device);
  assert.deepEqual(devices.map(({ backend }) => backend), ["simd", "webgl2", "webgpu"]);
  assert.deepEqual(devices.map(({ software }) => software), [false, true, true]);

  const rows = records.filter(({ size }) => size);
  assert.deepEqual(rows.map(({ size, backend }) => `${size} ${backend}`), ["20 simd", "20 webgl2", "20 webgpu", "33 simd", "33 webgl2", "33 webgpu"]);
  for (const row of rows) {
    assert.deepEqual([row.m, row.k, row.n], [row.size, row.size, row.size]);
    assert.equal(row.repeats, 2);
    assert.equal(row.samples_ms.length, 2);
    assert.equal(row.verdict.ok, true, JSON.stringify(row));
    assert.equal(row.verdict.elements, row.size ** 2);
    assert.equal(row.verdict.wrong, 0);
    assert.ok(row.verdict.worst_ratio < 1 && row.verdict.max_abs_error >= 0);
    assert.match(row.kernel, /./);
    for (const name of ["median_ms", "min_ms", "max_ms", "gflops", "speedup"]) assert.ok(row[name] > 0, `${name} of ${row.backend}`);
    for (const name of ["mad_ms", "upload_ms", "kernel_ms", "download_ms"]) assert.ok(row[name] >= 0, `${name} of ${row.backend}`);
    assert.ok(["timestamp", "wall"].includes(row.kernel_clock));
    assert.equal(row.software, row.backend !== "simd");
    if (row.software) assert.ok(row.kernel_gflops > 0 && row.kernel_resident_ms > 0 && row.adapter !== "");
    else assert.equal(row.kernel_gflops, null);
  }

  const summary = records.at(-1);
  assert.equal(summary.done, true);
  assert.equal(summary.schema, 1);
  assert.deepEqual([summary.rows, summary.measured, summary.wrong, summary.skipped, summary.errors], [6, 6, 0, 0, 0]);
  assert.deepEqual([summary.posted, summary.lost], [records.length - 1, 0]);
  assert.deepEqual([summary.stopped, summary.failure, summary.ended], [false, null, summary.created]);
  assert.deepEqual(summary.ignored, ["“bad” is not a parameter of this page."]);
  assert.ok(summary.warnings.some(({ id, what, remedy }) => id === "software" && what && remedy));
  assert.equal(summary.settings.seed, 9);
});

test("without any GPU the GPU rows say why, and the CPU is measured", async () => {
  const bare = await launch(NO_GPU);
  try {
    const records = await posted("sizes=24&backends=webgpu,webgl2,simd&repeats=1", { browser: bare });
    const rows = Object.fromEntries(records.filter(({ size }) => size).map((row) => [row.backend, row]));
    assert.ok(rows.webgpu.skipped.length > 10);
    assert.ok(rows.webgl2.skipped.length > 10);
    assert.equal(rows.simd.verdict.ok, true);
    assert.deepEqual([records.at(-1).skipped, records.at(-1).measured], [2, 1]);
  } finally {
    await bare.close();
  }
});

test("a failure is posted too, and then done", async () => {
  const records = await posted("sizes=24&backends=simd", { server: { deny: /\.wasm$/ } });
  assert.equal(records.length, 2);
  assert.equal(records[0].stage, "wasm");
  assert.match(records[0].error.message, /./);
  assert.equal(records[1].done, true);
  assert.equal(records[1].error.code, records[0].error.code);
  assert.deepEqual(records[1].failure, records[0].error);
});
