/** The address holds the settings, both ways, and everything works without a mouse. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { NO_GPU, launch, open, outcome, ready } from "./browser.mjs";
import { serve } from "./server.mjs";

let browser, server;
before(async () => {
  [browser, server] = await Promise.all([launch(NO_GPU), serve()]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

const chosen = (page) =>
  page.evaluate(() => [...document.querySelectorAll(".controls .choice")].filter((label) => label.control.checked).map((label) => label.textContent));

test("settings go from the address to the page and back", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=300,128&seed=42&repeats=9&backends=simd,webgpu`);
  assert.deepEqual(await chosen(page), ["128", "300", "WebGPU", "CPU, SIMD"]);
  assert.equal(await page.getByLabel("Seed").inputValue(), "42");
  assert.equal(await page.getByLabel("Repeats").inputValue(), "9");
  assert.equal(await page.locator(".notice").count(), 0);

  await page.getByLabel("Seed").fill("43");
  await page.getByLabel("300", { exact: true }).uncheck();
  await page.getByLabel("CPU, scalar").check();
  await page.getByLabel("Scalar above 512 too").check();
  await page.getByRole("textbox", { name: "Custom size" }).fill("77");
  await page.getByRole("button", { name: "Add 77" }).click();
  const search = await page.evaluate(() => location.search);
  assert.equal(search, "?sizes=77,128&seed=43&repeats=9&backends=webgpu,simd,scalar&scalar=all");

  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, server.url + search);

  await page.goto(link);
  assert.deepEqual(await chosen(page), ["77", "128", "WebGPU", "CPU, SIMD", "CPU, scalar", "Scalar above 512 too"]);
  await context.close();
});

test("what the address asks for in vain is named and ignored", async () => {
  const query = "?sizes=64,0,abc,5000&seed=-1&repeats=1.5&backends=simd,cuda&colour=red&scalar=maybe&seed=3";
  const { page, context } = await open(browser, server.url + query);
  const notice = await page.locator("[data-notice=parameters]").innerText();
  for (const named of ["“0”", "“abc”", "“5000”", "seed: “-1”", "repeats: “1.5”", "“cuda”", "“colour”", "scalar: “maybe”", "“seed” is given twice"]) {
    assert.ok(notice.includes(named), `${named} in: ${notice}`);
  }
  assert.deepEqual(await chosen(page), ["64", "CPU, SIMD"]);
  assert.equal(await page.getByLabel("Repeats").inputValue(), "5");
  await page.getByRole("button", { name: "Dismiss" }).click();
  assert.equal(await page.locator(".notice").count(), 0);
  await context.close();
});

test("a half-typed number neither changes the settings nor the address", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=64&repeats=3`);
  await page.getByLabel("Repeats").fill("1000");
  assert.match(await page.locator(".field-wrong").innerText(), /from 1 to 100/);
  assert.equal(await page.getByLabel("Repeats").getAttribute("aria-invalid"), "true");
  assert.match(page.url(), /repeats=3/);
  await page.getByLabel("Seed").focus();
  assert.equal(await page.getByLabel("Repeats").inputValue(), "3");
  await context.close();
});

test("without a size or a backend Run says what is missing", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=128&backends=simd`);
  await ready(page);
  await page.getByLabel("128", { exact: true }).uncheck();
  const run = page.getByRole("button", { name: "Run", exact: true });
  assert.equal(await run.getAttribute("aria-disabled"), "true");
  assert.equal(await page.locator("#run-why").innerText(), "Choose a size first.");
  await run.click({ force: true });
  assert.equal(await page.locator("progress").count(), 0);
  await context.close();
});

test("a run by keyboard alone, focus always in sight", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=128&repeats=1&backends=simd`);
  await ready(page);
  const names = [];
  for (let presses = 0; presses < 40; presses += 1) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const element = document.activeElement;
      const outlined = element.closest(".choice") ?? element;
      return {
        name: element.getAttribute("aria-label") ?? element.labels?.[0]?.textContent ?? element.textContent,
        outline: getComputedStyle(outlined).outlineStyle !== "none" && parseFloat(getComputedStyle(outlined).outlineWidth) >= 2,
      };
    });
    names.push(focus.name);
    assert.ok(focus.outline, `${focus.name} shows its focus`);
    if (focus.name === "128" || focus.name === "256") await page.keyboard.press("Space");
    if (focus.name === "Run") break;
  }
  for (const name of ["Use the dark theme", "Copy link", "4096", "Custom size", "WebGL2", "Repeats", "Seed", "Run"]) {
    assert.ok(names.includes(name), `${name} among ${names.join(", ")}`);
  }
  assert.match(page.url(), /sizes=256&/);
  await page.keyboard.press("Enter");
  assert.match(await outcome(page), /1 measured, all correct/);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Run", "the focus stays on Run");
  await page.locator(".table-scroll").focus();
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "region");
  await context.close();
});
