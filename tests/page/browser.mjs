/** A real Chromium: with WebGPU and WebGL2 in software, or with no GPU path at all. `CHROME` names the binary. */
import assert from "node:assert/strict";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";
import { flags } from "../../scripts/chrome.mjs";

export const SOFTWARE_GPU = flags();
export const NO_GPU = [
  ...SOFTWARE_GPU.filter((flag) => !/gpu|swiftshader/.test(flag)),
  "--disable-gpu",
  "--disable-3d-apis",
  "--disable-software-rasterizer",
];

function find_chrome() {
  if (process.env.CHROME) return process.env.CHROME;
  for (const name of ["chromium", "chromium-browser", "google-chrome", "chrome"]) {
    for (const folder of (process.env.PATH ?? "").split(delimiter)) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not in this folder.
      }
    }
  }
  throw new Error("no Chromium on PATH: set CHROME to its path");
}

export function launch(args = SOFTWARE_GPU) {
  return chromium.launch({ executablePath: find_chrome(), args });
}

/** Opens the page in a context of its own; what it logs as an error or throws gathers in `faults`, and what it warns of in `warnings`. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  const [faults, warnings] = [[], []];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
    if (message.type() === "warning") warnings.push(message.text());
  });
  await page.goto(url);
  return { page, context, faults, warnings };
}

/** The page is ready when the device card has a device. */
export const ready = (page) => page.locator(".device[aria-busy=false]").waitFor({ timeout: 30_000 });

export const press_run = (page) => page.getByRole("button", { name: "Run", exact: true }).click();

/** The last line of a run: "Done after …" or "Stopped after …". */
export async function outcome(page, timeout = 60_000) {
  const line = page.locator(".progress p[aria-live]", { hasText: /(Done|Stopped) after/ });
  await line.waitFor({ timeout });
  return line.innerText();
}

export const row = (page, size, backend) => page.locator(`tr[data-size="${size}"][data-backend="${backend}"]`);

/** The table has a row for each of these, none else, and all are right. */
export async function measured(page, sizes, backends) {
  for (const size of sizes) {
    for (const backend of backends) {
      const text = await row(page, size, backend).innerText();
      assert.match(text, /✓ correct/, `${backend} at ${size}: ${text}`);
    }
  }
  assert.equal(await page.locator("tbody tr").count(), sizes.length * backends.length);
}
