/** Runs with real devices. WebGPU and WebGL2 must be there: a skipped row is a failure here. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch, open, outcome, press_run, ready, row } from "./browser.mjs";
import { serve } from "./server.mjs";

let browser, server;
before(async () => {
  [browser, server] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

async function measured(page, sizes, backends) {
  for (const size of sizes) {
    for (const backend of backends) {
      const text = await row(page, size, backend).innerText();
      assert.match(text, /✓ correct/, `${backend} at ${size}: ${text}`);
    }
  }
  assert.equal(await page.locator("tbody tr").count(), sizes.length * backends.length);
}

test("every backend is measured and every element is judged", async () => {
  const { page, context, faults } = await open(browser, `${server.url}?sizes=32,96&repeats=2&backends=webgpu,webgl2,simd,scalar&seed=7`);
  const foreign = [];
  page.on("request", (request) => request.url().startsWith(server.url) || foreign.push(request.url()));
  await ready(page);
  assert.notEqual(await page.locator(".chosen strong").innerText(), "");
  await press_run(page);
  assert.match(await outcome(page), /Done after [\d.]+ s: 8 measured, all correct\./);
  await measured(page, [32, 96], ["webgpu", "webgl2", "simd", "scalar"]);
  assert.match(await row(page, 96, "webgpu").innerText(), /9,216 elements/);
  assert.match(await row(page, 96, "webgpu").innerText(), /software GPU/);
  assert.match(await row(page, 96, "simd").innerText(), /baseline/);
  assert.match(await page.locator("[data-notice=software]").innerText(), /Turn on graphics acceleration/);
  assert.equal(await page.locator(".bar rect").count(), 8);
  await page.getByRole("radio", { name: "Kernel alone" }).check();
  assert.equal(await page.locator(".bar rect").count(), 4, "only GPUs have a kernel of their own");
  assert.match(await page.title(), /^Done/);
  assert.deepEqual(faults, []);
  assert.deepEqual(foreign, []);
  await context.close();
});

for (const backends of [["webgl2"], ["webgpu"], ["simd"], ["scalar"]]) {
  test(`${backends} alone, when only it is asked for`, async () => {
    const { page, context, faults } = await open(browser, `${server.url}?sizes=48&repeats=1&backends=${backends}`);
    await ready(page);
    await press_run(page);
    await outcome(page);
    await measured(page, [48], backends);
    assert.deepEqual(faults, []);
    await context.close();
  });
}

test("scalar code is off above 512 and says so", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=513&repeats=1&backends=scalar`);
  await ready(page);
  await press_run(page);
  assert.match(await outcome(page), /0 measured, 1 skipped/);
  assert.match(await row(page, 513, "scalar").innerText(), /skipped: Scalar code is off above 512/);
  await context.close();
});

test("Escape stops between two products, and the page can run again", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=16,256&repeats=100&backends=simd,scalar`);
  await ready(page);
  await press_run(page);
  await row(page, 16, "scalar").waitFor();
  await page.keyboard.press("Escape");
  assert.match(await outcome(page, 5_000), /Stopped after .* measured/);
  assert.match(await page.title(), /^Stopped/);
  await page.getByLabel("256", { exact: true }).uncheck();
  await page.getByLabel("Repeats").fill("1");
  await press_run(page);
  assert.match(await outcome(page), /Done after .* 2 measured, all correct/);
  await context.close();
});

test("Stop ends a product that does not end by itself", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=16,4096&repeats=1&backends=scalar&scalar=all`);
  await ready(page);
  await press_run(page);
  await row(page, 16, "scalar").waitFor();
  await page.locator(".progress p", { hasText: "warming up" }).waitFor({ timeout: 10_000 });
  const began = Date.now();
  await page.getByRole("button", { name: /^Stop/ }).click();
  assert.match(await outcome(page, 6_000), /Stopped after/);
  assert.ok(Date.now() - began < 5_000);
  await page.getByLabel("4096", { exact: true }).uncheck();
  await press_run(page);
  assert.match(await outcome(page), /Done after .* 1 measured, all correct/);
  await context.close();
});

test("the exported files hold what the page shows, with every sample", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=24,40&repeats=3&backends=webgl2,simd&seed=5`);
  await ready(page);
  await press_run(page);
  await outcome(page);

  const saved = async (name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
    assert.match(download.suggestedFilename(), /^lapidary-.*\.(json|csv)$/);
    return readFile(await download.path(), "utf8");
  };

  const json = JSON.parse(await saved("Download JSON"));
  assert.equal(json.schema, 1);
  assert.match(json.user_agent, /Chrome/);
  assert.deepEqual(json.settings, { sizes: [24, 40], seed: 5, repeats: 3, backends: ["webgl2", "simd"], scalar_all: false });
  assert.deepEqual(json.devices.map(({ backend }) => backend).sort(), ["simd", "webgl2"]);
  assert.deepEqual(json.rows.map(({ size, backend }) => `${size} ${backend}`), ["24 webgl2", "24 simd", "40 webgl2", "40 simd"]);
  for (const one of json.rows) {
    assert.equal(one.samples_ms.length, 3);
    assert.equal(one.median_ms, [...one.samples_ms].sort((x, y) => x - y)[1]);
    assert.ok(one.verdict.ok && one.verdict.elements === one.size ** 2);
    assert.ok(one.min_ms <= one.median_ms && one.median_ms <= one.max_ms);
    assert.ok(Math.abs(one.gflops - (2 * one.size ** 3) / (one.median_ms * 1e6)) < 1e-9);
    if (one.backend === "webgl2") assert.ok(one.kernel_gflops > 0 && one.kernel !== "" && one.speedup > 0);
    else assert.equal(one.speedup, 1);
  }

  const [head, ...lines] = (await saved("Download CSV")).trimEnd().split("\r\n");
  assert.match(head, /^size,m,k,n,backend,adapter,/);
  assert.equal(lines.length, 4);
  assert.match(lines[0], /^24,24,24,24,webgl2,/);

  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy JSON" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.deepEqual(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).rows, json.rows);
  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("### "));
  await context.close();
});
