/** What the page says when something is missing or wrong, and that it finds its way back. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { NO_GPU, launch, open, outcome, press_run, ready, row } from "./browser.mjs";
import { serve } from "./server.mjs";

let bare;
before(async () => {
  bare = await launch(NO_GPU);
});
after(() => bare?.close());

async function visit(options, query, look) {
  const server = await serve(options);
  const { page, context } = await open(bare, server.url + query);
  try {
    await look(page, server);
  } finally {
    await context.close();
    await server.close();
  }
}

test("no GPU at all: the card says what would turn each backend on, and the run goes on without them", async () => {
  await visit({}, "?sizes=32&repeats=1&backends=webgpu,webgl2,simd", async (page) => {
    await ready(page);
    assert.match(await page.locator(".chosen").innerText(), /CPU/);
    const others = await page.locator(".others").innerText();
    for (const name of ["WebGPU", "WebGL2"]) assert.match(others, new RegExp(`${name}\\s+off\\s+\\S`));
    assert.match(others, /What would turn it on: \S/);
    await press_run(page);
    assert.match(await outcome(page), /1 measured, all correct, 2 skipped/);
    assert.match(await row(page, 32, "webgpu").innerText(), /skipped: \S/);
    assert.match(await row(page, 32, "webgl2").innerText(), /skipped: \S/);
    assert.match(await row(page, 32, "simd").innerText(), /✓ correct/);
  });
});

test("a .wasm file that is not there: the screen says what to do, and trying again works", async () => {
  await visit({ deny: /\.wasm$/ }, "", async (page, server) => {
    const screen = page.locator(".fault[data-stage=wasm]");
    await screen.waitFor();
    assert.match(await screen.innerText(), /could not be loaded[\s\S]*What to do[\s\S]*404/);
    assert.match(await page.title(), /^Failed/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "fault", "the screen has the focus");
    server.allow_all();
    await page.getByRole("button", { name: "Try again" }).click();
    await ready(page);
    assert.equal(await page.locator(".fault").count(), 0);
    assert.equal(await page.evaluate(() => document.activeElement.localName), "main", "the focus stays in the page");
  });
});

test("WebAssembly refused by a content security policy", async () => {
  await visit({ policy: "default-src 'self'; script-src 'self'" }, "", async (page) => {
    const screen = page.locator(".fault[data-stage=wasm]");
    await screen.waitFor();
    assert.match(await screen.innerText(), /'wasm-unsafe-eval'/);
  });
});

test("a policy without any inline allowance is enough", async () => {
  const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'";
  await visit({ policy }, "?sizes=16&repeats=1&backends=simd", async (page) => {
    await ready(page);
    await press_run(page);
    assert.match(await outcome(page), /1 measured, all correct/);
  });
});

test("a worker that cannot be loaded", async () => {
  await visit({ deny: /worker-[^/]*\.js$/ }, "", async (page, server) => {
    const screen = page.locator(".fault[data-stage=worker]");
    await screen.waitFor();
    assert.match(await screen.innerText(), /did not start[\s\S]*Reload the page[\s\S]*worker-src 'self' blob:/);
    server.allow_all();
    await page.getByRole("button", { name: "Try again" }).click();
    await ready(page);
  });
});

/** A worker that answers from a script: faults that a sound package does not show. */
const stub = (rows, end) => `
  const device = { backend: "webgpu", name: "Test <b>GPU</b>", vendor: "", architecture: "", kind: "gpu", software: false,
    limits: { max_buffer_bytes: 1073741824 }, features: [], reason: "because", others: [], generation: 1 };
  const row = (backend, more) => ({ size: 8, m: 8, k: 8, n: 8, backend, adapter: "Test", software: false, kernel: "matmul/test",
    repeats: 2, samples_ms: [1, 3], median_ms: 2, mad_ms: 1, min_ms: 1, max_ms: 3, gflops: 0.5, upload_ms: 0, kernel_ms: 1, download_ms: 0,
    kernel_clock: "wall", kernel_resident_ms: 1, kernel_gflops: 1, speedup: null, speedup_over: null, notes: [],
    verdict: { ok: true, elements: 64, wrong: 0, max_abs_error: 0, worst_ratio: 0, row: 0, column: 0, value: 0, expected: 0, bound: 0 }, ...more });
  onmessage = ({ data }) => {
    if (data.kind === "probe") postMessage({ kind: "chosen", device });
    if (data.kind === "run") { for (const one of ${rows}) postMessage({ kind: "row", row: one }); postMessage(${end}); }
  };
  postMessage({ kind: "ready" });`;

test("a wrong result has no speed, says where it is wrong, and an error has its code", async () => {
  const wrong = "{ ok: false, elements: 64, wrong: 2, max_abs_error: 1, worst_ratio: 31, row: 3, column: 5, value: 7.5, expected: 6.5, bound: 0.001 }";
  const rows = `[row("webgpu", { verdict: ${wrong} }), { size: 8, backend: "webgl2", error: { code: "limit_exceeded", message: "9 > 8" } }, row("simd")]`;
  await visit({ worker: stub(rows, `{ kind: "finished", stopped: false, seconds: 1 }`) }, "", async (page) => {
    await ready(page);
    assert.match(await page.locator(".device").innerText(), /Test <b>GPU<\/b>/);
    await press_run(page);
    assert.match(await outcome(page), /2 measured, 1 wrong, 1 failed/);
    const judged = await row(page, 8, "webgpu").innerText();
    assert.match(judged, /✗ wrong[\s\S]*2 of 64 elements[\s\S]*row 3, column 5: 7.5, expected 6.5 ± 1.0e-3/);
    assert.deepEqual((await row(page, 8, "webgpu").locator("td").allInnerTexts()).slice(2, 5), ["–", "–", "–"], "no speed of any kind");
    assert.match(await row(page, 8, "webgl2").innerText(), /✗ error limit_exceeded: 9 > 8/);
    assert.equal(await page.locator(".bar rect").count(), 1);
    assert.match(await page.locator(".chart").innerText(), /✗ wrong, no speed/);
    assert.match(await page.locator("[data-notice=spread]").innerText(), /more than 20 %.*take more repeats/);
  });
});

test("a worker that dies in a run has failed that run, and what it had measured stays", async () => {
  const dying = stub(`[row("simd")]`, "").replace("postMessage();", `setTimeout(() => { throw new Error("out of room"); });`);
  await visit({ worker: dying }, "", async (page) => {
    await ready(page);
    await press_run(page);
    assert.match(await page.locator(".fault[data-stage=run]").innerText(), /The run failed[\s\S]*out of room[\s\S]*may have run out of memory/);
    assert.match(await row(page, 8, "simd").innerText(), /✓ correct/);
  });
});

test("small numbers keep three digits, and none is in powers of ten", async () => {
  const rows = `[row("simd", { median_ms: 0.0015, mad_ms: 7e-10, min_ms: 0.9996, max_ms: 999.6, gflops: 4.0e-5 })]`;
  await visit({ worker: stub(rows, `{ kind: "finished", stopped: false, seconds: 1 }`) }, "", async (page) => {
    await ready(page);
    await press_run(page);
    await outcome(page);
    const cells = await row(page, 8, "simd").locator("td").allInnerTexts();
    assert.match(cells[1], /^0\.00150 ± 0 ms\s+1\.00 to 1,000 ms$/);
    assert.equal(cells[2], "0.0000400");
  });
});

test("a run that fails as a whole keeps its rows", async () => {
  const end = `{ kind: "failed", stage: "run", error: { code: "out_of_memory", message: "no more" } }`;
  await visit({ worker: stub(`[row("simd")]`, end) }, "", async (page) => {
    await ready(page);
    await press_run(page);
    assert.match(await page.locator(".fault[data-stage=run]").innerText(), /The run failed[\s\S]*out_of_memory: no more[\s\S]*What to do/);
    assert.match(await row(page, 8, "simd").innerText(), /✓ correct/);

    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const exported = async () => {
      await page.getByRole("button", { name: "Copy JSON" }).click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      return JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    };
    const json = await exported();
    assert.deepEqual([json.failure, json.stopped, json.rows.length], [{ code: "out_of_memory", message: "no more" }, true, 1]);
    assert.ok(json.ended <= json.created);

    await page.getByRole("button", { name: "Start afresh" }).click();
    await ready(page);
    assert.equal(await page.locator(".fault").count(), 0);
    await page.getByRole("button", { name: "Copy JSON" }).waitFor();
    const later = await exported();
    assert.deepEqual([later.failure, later.ended], [json.failure, json.ended], "the rows are still of the run that failed");
  });
});

test("a device that never answers: after a while a run needs not wait for it", async () => {
  const worker = stub(`[row("simd")]`, `{ kind: "finished", stopped: false, seconds: 1 }`).replace(`kind: "chosen", device`, `kind: "ready"`);
  await visit({ worker }, "", async (page) => {
    await page.clock.install();
    await page.reload();
    const run = page.getByRole("button", { name: "Run", exact: true });
    const why = page.locator("#run-why");
    await page.clock.fastForward(9_000);
    assert.equal(await why.innerText(), "Opening the device…");
    assert.ok(await run.isDisabled());
    await page.clock.fastForward(2_000);
    assert.match(await why.innerText(), /has not answered/);
    assert.match(await page.locator(".device[aria-busy=true]").innerText(), /asking the browser for a device/);
    assert.ok(await run.isEnabled());
    await run.click();
    assert.match(await outcome(page), /1 measured, all correct/);
    assert.equal(await why.innerText(), "");
    assert.match(await page.locator(".device[aria-busy=false]").innerText(), /No device has been opened/);
  });
});

test("a tab that was in the background is told", async () => {
  const worker = stub("[]", `{ kind: "step", step: { done: 0, total: 1, fraction: 0.5, size: 8, backend: "simd", doing: "sample 1 of 1" } }`)
    .replace('postMessage({ kind: "ready" });', `setTimeout(() => postMessage({ kind: "row", row: row("simd") }), 700); setTimeout(() => postMessage({ kind: "finished", stopped: false, seconds: 1 }), 900); postMessage({ kind: "ready" });`);
  await visit({ worker }, "", async (page) => {
    await ready(page);
    await press_run(page);
    await page.locator("progress").waitFor();
    assert.equal(await page.title(), "50 % · lapidary");
    await page.evaluate(() => {
      Object.defineProperty(document, "hidden", { value: true, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    await outcome(page);
    assert.match(await page.locator("[data-notice=hidden]").innerText(), /in the background.*keep the tab in front/);
  });
});
