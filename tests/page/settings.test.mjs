/** The address holds the settings, both ways, and everything works without a mouse. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
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

const chosen = (page) =>
  page.evaluate(() => [...document.querySelectorAll(".controls .choice")].filter((label) => label.control.checked).map((label) => label.textContent));

const search = (page) => page.evaluate(() => location.search);
/** What the page says of a run, from its first moment on; empty if there was none. */
const said = (page) => page.locator(".progress p[aria-live]").innerText();
const custom = (page) => page.getByRole("textbox", { name: "Custom size" });

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
  const query = await search(page);
  assert.equal(query, "?sizes=77,128&seed=43&repeats=9&backends=webgpu,simd,scalar&scalar=all");

  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, server.url + query);

  await page.goto(link);
  assert.deepEqual(await chosen(page), ["77", "128", "WebGPU", "CPU, SIMD", "CPU, scalar", "Scalar above 512 too"]);
  await context.close();
});

test("what the address asks for in vain is named and ignored", async () => {
  const query = "?sizes=64,0,abc,0,5000&seed=-1&repeats=1.5&backends=simd,cuda&colour=red&scalar=maybe&seed=3";
  const { page, context } = await open(browser, server.url + query);
  const notice = await page.locator("[data-notice=parameters]").innerText();
  for (const named of ["“0”", "“abc”", "“5000”", "seed: “-1”", "repeats: “1.5”", "“cuda”", "“colour”", "scalar: “maybe”", "“seed” is given twice"]) {
    assert.ok(notice.includes(named), `${named} in: ${notice}`);
  }
  assert.equal(notice.split("“0”").length, 2, "it is named once");
  assert.deepEqual(await chosen(page), ["64", "CPU, SIMD"]);
  assert.equal(await page.getByLabel("Repeats").inputValue(), "5");
  await page.getByRole("button", { name: "Dismiss" }).click();
  assert.equal(await page.locator(".notice").count(), 0);
  assert.equal(await page.evaluate(() => document.activeElement.localName), "main", "the focus stays in the page");
  await context.close();
});

test("scripts/demo refuses what the page would leave out, and takes the rest", async () => {
  const many = (count) => Array.from({ length: count }, (_, index) => index + 1).join();
  const given = [
    ["sizes", ["1", "4096", "64,128", many(16)], ["0", "4097", "99999999", "64,x", many(17)]],
    ["backends", ["webgpu,webgl2,simd,scalar", "simd"], ["webgpux", "simd,cuda"]],
    ["repeats", ["1", "100"], ["0", "101", "x"]],
  ];
  const serve_script = fileURLToPath(new URL("../../scripts/serve.mjs", import.meta.url));
  const script = (...rest) => spawnSync(process.execPath, [serve_script, "--check", ...rest], { encoding: "utf8" });
  const { page, context } = await open(browser, server.url);
  for (const [name, taken, refused] of given) {
    for (const value of [...taken, ...refused]) {
      await page.goto(`${server.url}?${name}=${value}`);
      const { status, stderr } = script("--headless", `--${name}`, value);
      assert.equal(status, refused.includes(value) ? 2 : 0, `${name}=${value}: ${stderr}`);
      if (status !== 0) assert.ok(stderr.includes(`--${name}`), stderr);
      assert.equal(await page.locator("[data-notice=parameters]").count(), refused.includes(value) ? 1 : 0, `${name}=${value} on the page`);
    }
  }
  await context.close();
  for (const rest of [["--gpu"], ["--sizes", "64"], ["--backends", "simd"]]) {
    const { status, stderr } = script(...rest);
    assert.equal(status, 2);
    assert.match(stderr, new RegExp(`${rest[0]} does nothing without --headless`));
  }
});

test("the bench of peers refuses what its page would leave out", () => {
  const run = fileURLToPath(new URL("../peers/run.mjs", import.meta.url));
  const script = (...rest) => spawnSync(process.execPath, [run, "--check", ...rest], { encoding: "utf8" });
  assert.equal(script("--sizes", "64", "--only", "resident,queue", "--samples", "2", "--min-ms", "5").status, 0);
  for (const [name, value] of [["only", "residnet"], ["sizes", "foo"], ["samples", "x"], ["min-ms", "0"], ["json", "/nope/x"], ["timeout", "0"]]) {
    const { status, stderr } = script(`--${name}`, value);
    assert.equal(status, 2, `${name}=${value}`);
    assert.ok(stderr.includes(`--${name}`), stderr);
  }
});

test("a number counts when it is all there: no part of it changes the settings or runs", async () => {
  const { page, context, faults } = await open(browser, `${server.url}?sizes=16&seed=1&repeats=3&backends=simd`);
  await ready(page);
  const before = await search(page);
  for (const [label, typed, range, last] of [["Repeats", "500", /from 1 to 100/, "50"], ["Seed", "99999999999", /from 0 to 4294967295/, "99"]]) {
    const field = page.getByLabel(label);
    await field.fill("");
    await field.pressSequentially(typed);
    assert.match(await page.locator(".field-wrong").innerText(), range);
    assert.equal(await field.getAttribute("aria-invalid"), "true");
    assert.equal(await search(page), before, `${label} while it is typed`);

    // The browser refuses, and takes who asked to the field, from wherever that was.
    await field.press("Enter");
    assert.equal(await said(page), "");
    await press_run(page);
    assert.equal(await said(page), "");
    assert.ok(await field.evaluate((input) => input === document.activeElement && input.matches(":invalid")), `the focus is in ${label}`);
    assert.equal(await field.inputValue(), typed);
    assert.equal(await search(page), before, `${label} after Enter and Run`);

    await field.fill(last);
    assert.equal(await page.locator(".field-wrong").count(), 0);
    assert.equal(await search(page), before, `${label} before it is left`);
    await field.blur();
    assert.match(await search(page), new RegExp(`${label.toLowerCase()}=${last}\\b`));
    await field.fill(label === "Repeats" ? "3" : "1");
    await field.blur();
    assert.equal(await search(page), before);
  }
  assert.deepEqual(faults, []);
  await context.close();
});

test("Enter in a number field takes the number and runs with it, and so does a click on Run", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=16&repeats=3&backends=simd`);
  await ready(page);
  const repeats = page.getByLabel("Repeats");
  await repeats.fill("007");
  await repeats.press("Enter");
  assert.match(await outcome(page), /1 measured, all correct/);
  await page.getByRole("table", { name: /, 7 repeats/ }).waitFor();
  assert.match(await search(page), /repeats=7&/);
  assert.equal(await repeats.inputValue(), "7");

  await repeats.fill("8");
  await press_run(page);
  await page.getByRole("table", { name: /, 8 repeats/ }).waitFor();
  await outcome(page);
  await context.close();
});

test("Enter in a field leaves the focus there, where nothing can be changed during the run", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=512&repeats=100&backends=scalar`);
  await ready(page);
  const before = await search(page);
  for (const field of [page.getByLabel("Repeats"), page.getByLabel("Seed"), page.getByLabel("CPU, scalar")]) {
    const stays = () => field.evaluate((input) => input === document.activeElement);
    await field.press("Enter");
    await page.locator("progress").waitFor();
    assert.ok(await stays(), "the focus during the run");
    assert.ok(await field.isDisabled());
    const value = await field.inputValue();
    await field.press("7");
    await field.press("Space");
    assert.equal(await field.inputValue(), value);
    assert.equal(await search(page), before);
    await page.keyboard.press("Escape");
    await outcome(page);
    assert.ok(await stays(), "the focus after the run");
    assert.ok(await field.isEnabled());
  }
  await context.close();
});

test("one of a thing has no s", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=1&repeats=1&backends=simd`);
  await ready(page);
  await press_run(page);
  await outcome(page);
  await page.getByRole("table", { name: /, 1 repeat after/ }).waitFor();
  assert.match(await row(page, 1, "simd").innerText(), /\b1 element,/);
  await context.close();
});

test("Enter in either custom size adds it and does not run", async () => {
  const { page, context } = await open(browser, `${server.url}?sizes=16&repeats=1&backends=simd`);
  await ready(page);
  await custom(page).fill("24");
  await custom(page).press("Enter");
  assert.match(await search(page), /sizes=16,24&/);
  await page.getByRole("slider", { name: "Custom size" }).press("ArrowRight");
  assert.equal(await custom(page).inputValue(), "25");
  await page.getByRole("slider", { name: "Custom size" }).press("Enter");
  assert.match(await search(page), /sizes=16,24,25&/);

  await custom(page).fill("");
  await custom(page).pressSequentially("5000");
  const add = page.getByRole("button", { name: /^Add/ });
  assert.equal(await add.innerText(), "Add");
  assert.ok(await add.isDisabled(), "what is no size is not added");
  await custom(page).press("Enter");
  assert.match(await search(page), /sizes=16,24,25&/);
  assert.equal(await custom(page).inputValue(), "5000");
  await page.getByRole("slider", { name: "Custom size" }).press("ArrowLeft");
  assert.equal(await custom(page).inputValue(), "499", "the slider stayed at the last size that was one");
  assert.equal(await said(page), "");

  await press_run(page);
  await outcome(page);
  await measured(page, [16, 24, 25], ["simd"]);
  await context.close();
});

test("a run takes 16 sizes, however they are chosen", async () => {
  const sizes = Array.from({ length: 15 }, (_, index) => index + 1);
  const { page, context } = await open(browser, `${server.url}?sizes=${sizes}&repeats=1&backends=simd`);
  await ready(page);
  const choice = (size) => page.getByLabel(String(size), { exact: true });
  const why = page.locator("#sizes-full");
  assert.equal(await why.count(), 0);
  await choice(128).check();
  assert.match(await why.innerText(), /16 sizes at most/);
  assert.ok(await choice(256).isDisabled());
  assert.ok(await choice(128).isEnabled(), "what is chosen can be switched off");
  await custom(page).fill("77");
  await custom(page).press("Enter");
  assert.ok(await page.getByRole("button", { name: "No more sizes" }).isDisabled());
  assert.match(await search(page), new RegExp(`sizes=${sizes},128&`));
  assert.equal(await said(page), "");

  // The link is one that the page takes as it is.
  await page.reload();
  await ready(page);
  assert.equal(await page.locator(".notice").count(), 0);
  assert.ok(await choice(256).isDisabled());
  await choice(1).uncheck();
  assert.equal(await why.count(), 0);
  await choice(256).check();
  assert.ok(await choice(1).isDisabled());
  assert.match(await search(page), new RegExp(`sizes=${sizes.slice(1)},128,256&`));
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
