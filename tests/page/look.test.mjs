/** Small and large, light and dark: nothing is cut off, and every text stands out from its ground. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { NO_GPU, launch, open, outcome, press_run, ready } from "./browser.mjs";
import { serve } from "./server.mjs";

let browser, server;
before(async () => {
  [browser, server] = await Promise.all([launch(NO_GPU), serve()]);
});
after(async () => {
  await browser?.close();
  await server?.close();
});

const QUERY = "?sizes=16,600&repeats=2&backends=webgpu,simd,scalar&unknown=1";

async function results(options) {
  const opened = await open(browser, server.url + QUERY, options);
  await ready(opened.page);
  await press_run(opened.page);
  await outcome(opened.page);
  return opened;
}

/** Texts whose contrast is below WCAG AA, worked out from computed colours. Runs in the page. */
function low_contrast() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (ground, colour) => {
    canvas.globalCompositeOperation = "source-over";
    canvas.fillStyle = ground;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return `rgb(${r} ${g} ${b})`;
  };
  const luminance = (colour) => {
    const linear = colour.match(/\d+/g).map((byte) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const ground_of = (element) => (element ? over(ground_of(element.parentElement), getComputedStyle(element).backgroundColor) : "rgb(255 255 255)");
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest(".unseen, noscript, script")) continue;
    const style = getComputedStyle(element);
    const ground = ground_of(element);
    const [light, dark] = [luminance(ground), luminance(over(ground, style.color))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < (large ? 3 : 4.5)) low.push(`${contrast.toFixed(2)}: ${node.data.trim().slice(0, 40)}`);
  }
  return low;
}

for (const colorScheme of ["light", "dark"]) {
  test(`${colorScheme}: every text has AA contrast`, async () => {
    const { page, context, faults } = await results({ colorScheme });
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(ground, colorScheme === "dark" ? "rgb(18, 20, 26)" : "rgb(245, 245, 241)");
    assert.deepEqual(await page.evaluate(low_contrast), []);
    assert.deepEqual(faults, []);
    await context.close();
  });
}

test("the theme button turns the theme and is remembered", async () => {
  const { page, context } = await open(browser, server.url, { colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.getByRole("button", { name: "Use the dark theme" }).click();
  assert.equal(await ground(), "rgb(18, 20, 26)");
  await page.reload();
  assert.equal(await ground(), "rgb(18, 20, 26)");
  await page.getByRole("button", { name: "Use the light theme" }).click();
  assert.equal(await ground(), "rgb(245, 245, 241)");
  await context.close();
});

test("320 px wide on touch: nothing scrolls sideways but the table, and targets are 44 px", async () => {
  const { page, context } = await results({ viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true });
  const widths = await page.evaluate(() => {
    const table = document.querySelector(".table-scroll");
    return { page: document.documentElement.scrollWidth, table: table.scrollWidth > table.clientWidth };
  });
  assert.deepEqual(widths, { page: 320, table: true });
  const small = await page.evaluate(() =>
    [...document.querySelectorAll("button, .choice, input[type=text], input[type=range], summary")]
      .map((element) => ({ text: element.textContent || element.type, box: element.getBoundingClientRect() }))
      .filter(({ box }) => box.height < 44 || box.width < 44 || box.left < 0 || box.right > 320)
      .map(({ text, box }) => `${text} ${box.width} × ${box.height}`));
  assert.deepEqual(small, []);
  assert.ok(await page.locator("kbd").isHidden(), "no key is named");
  await context.close();
});

test("the table is a table: caption, column and row headers", async () => {
  const { page, context } = await results({});
  await page.getByRole("table", { name: /Times of one product, 2 repeats/ }).waitFor();
  assert.deepEqual(
    await page.evaluate(() => [...new Set([...document.querySelectorAll("th")].map((th) => th.scope))]),
    ["col", "rowgroup", "row"],
  );
  assert.equal(await page.locator("th:not([scope])").count(), 0);
  await context.close();
});
