/** A real Chromium: with WebGPU and WebGL2 in software, or with no GPU path at all. `CHROME` names the binary. */
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const COMMON = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const SOFTWARE_GPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-unsafe-swiftshader"];
export const NO_GPU = ["--disable-gpu", "--disable-3d-apis", "--disable-software-rasterizer"];

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

export function launch(flags = SOFTWARE_GPU) {
  return chromium.launch({
    executablePath: find_chrome(),
    // Chromium's sandbox refuses to run as root, as containers do.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [...COMMON, ...flags],
  });
}

/** Opens the page and fails the test later if the page logged an error or threw. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(message.text());
  });
  await page.goto(url);
  return { page, context, faults };
}

/** The page is ready when the device card has a device. */
export const ready = (page) => page.locator(".device[aria-busy=false]").waitFor({ timeout: 20_000 });

export const press_run = (page) => page.getByRole("button", { name: "Run", exact: true }).click();

/** The last line of a run: "Done after …" or "Stopped after …". */
export async function outcome(page, timeout = 40_000) {
  const line = page.locator(".progress p[aria-live]", { hasText: /(Done|Stopped) after/ });
  await line.waitFor({ timeout });
  return line.innerText();
}

export const row = (page, size, backend) => page.locator(`tr[data-size="${size}"][data-backend="${backend}"]`);
