/** Runs on the CPU, where there is no GPU to wait for: the forced paths, what is left out, and stopping. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { NO_GPU, launch, measured, open, outcome, press_run, ready, row } from "./browser.mjs";
import { serve } from "./server.mjs";

let browser, server;
before(async () => {
  [browser, server] = await Promise.all([launch(NO_GPU), serve()]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

for (const backend of ["simd", "scalar"]) {
  test(`${backend} alone, when only it is asked for; nothing is posted`, async () => {
    const { page, context, faults } = await open(browser, `${server.url}?sizes=48&repeats=1&backends=${backend}`);
    await ready(page);
    await press_run(page);
    await outcome(page);
    await measured(page, [48], [backend]);
    assert.match(await row(page, 48, backend).innerText(), /baseline/);
    assert.ok(!server.requests.includes("/result"), "only machine mode posts");
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
  assert.match(await outcome(page, 8_000), /Stopped after/);
  assert.ok(Date.now() - began < 8_000);
  await page.getByLabel("4096", { exact: true }).uncheck();
  await press_run(page);
  assert.match(await outcome(page), /Done after .* 1 measured, all correct/);
  await context.close();
});
