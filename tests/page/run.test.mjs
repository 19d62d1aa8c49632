/** Runs with real devices. WebGPU and WebGL2 must be there: a skipped row is a failure here. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, measured, open, outcome, press_run, ready, row } from "./browser.mjs";
import { serve } from "./server.mjs";

const QUERY = "?sizes=24,96&repeats=3&backends=webgpu,webgl2,simd,scalar&seed=5";

let browser, server;
/** One run, which the first tests look at. */
let page, context, faults, said;
const foreign = [];

before(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
  ({ page, context, faults } = await open(browser, server.url + QUERY));
  page.on("request", (request) => request.url().startsWith(server.url) || foreign.push(request.url()));
  await ready(page);
  await press_run(page);
  said = await outcome(page);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

test("every backend is measured and every element is judged", async () => {
  assert.match(said, /Done after [\d.]+ s: 8 measured, all correct\./);
  await measured(page, [24, 96], ["webgpu", "webgl2", "simd", "scalar"]);
  assert.notEqual(await page.locator(".chosen strong").innerText(), "");
  assert.match(await row(page, 96, "webgpu").innerText(), /9,216 elements/);
  assert.match(await row(page, 96, "webgpu").innerText(), /software GPU/);
  assert.match(await row(page, 96, "simd").innerText(), /baseline/);
  assert.match(await page.locator("[data-notice=software]").innerText(), /Turn on graphics acceleration/);
  assert.match(await page.title(), /^Done/);
  assert.equal(await page.locator(".bar rect").count(), 8);
  await page.getByRole("radio", { name: "Kernel alone" }).check();
  assert.equal(await page.locator(".bar rect").count(), 4, "only GPUs have a kernel of their own");
  assert.deepEqual(faults, []);
  assert.deepEqual(foreign, [], "nothing is asked of other hosts");
});

test("the exported files hold what the page shows, with every sample", async () => {
  const saved = async (name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    assert.match(download.suggestedFilename(), /^lapidary-.*\.(json|csv)$/);
    return readFile(await download.path(), "utf8");
  };

  const json = JSON.parse(await saved("Download JSON"));
  assert.equal(json.schema, 1);
  assert.deepEqual([json.stopped, json.failure], [false, null]);
  assert.ok(json.ended <= json.created && Date.now() - Date.parse(json.ended) < 3_600_000);
  assert.match(json.user_agent, /Chrome/);
  assert.deepEqual(json.settings, { sizes: [24, 96], seed: 5, repeats: 3, backends: ["webgpu", "webgl2", "simd", "scalar"], scalar_all: false });
  assert.deepEqual(json.devices.map(({ backend }) => backend).sort(), ["scalar", "simd", "webgl2", "webgpu"]);
  assert.deepEqual(
    json.rows.map(({ size, backend }) => `${size} ${backend}`),
    [24, 96].flatMap((size) => ["webgpu", "webgl2", "simd", "scalar"].map((backend) => `${size} ${backend}`)),
  );
  for (const one of json.rows) {
    assert.equal(one.samples_ms.length, 3);
    assert.equal(one.median_ms, [...one.samples_ms].sort((x, y) => x - y)[1]);
    assert.ok(one.verdict.ok && one.verdict.elements === one.size ** 2);
    assert.ok(one.min_ms <= one.median_ms && one.median_ms <= one.max_ms);
    assert.ok(Math.abs(one.gflops - (2 * one.size ** 3) / (one.median_ms * 1e6)) < 1e-9);
    assert.ok(one.kernel !== "" && one.speedup > 0 && one.speedup_over === "simd");
    assert.equal(one.kernel_gflops > 0, one.software, "the GPUs here are software, and only GPUs have a kernel of their own");
  }

  const [head, ...lines] = (await saved("Download CSV")).trimEnd().split("\r\n");
  assert.match(head, /^size,m,k,n,backend,adapter,/);
  assert.equal(lines.length, 8);
  assert.match(lines[0], /^24,24,24,24,webgpu,/);

  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy JSON" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.deepEqual(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).rows, json.rows);
  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("### "));
  await context.close();
});

for (const backend of ["webgl2", "webgpu"]) {
  test(`${backend} alone, when only it is asked for`, async () => {
    const { page, context, faults } = await open(browser, `${server.url}?sizes=48&repeats=1&backends=${backend}`);
    await ready(page);
    await press_run(page);
    await outcome(page);
    await measured(page, [48], [backend]);
    assert.deepEqual(faults, []);
    await context.close();
  });
}
