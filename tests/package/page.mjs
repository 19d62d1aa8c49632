/** Pages of a browser with WebGPU and WebGL2 in software, or with LAPIDARY_GPU=1 on this machine's GPU, each empty and with the package within reach. */
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { flags as flags_for } from "../../scripts/chrome.mjs";
import { launch, open } from "../page/browser.mjs";
import { serve } from "./server.mjs";

export const BACKENDS = ["webgpu", "webgl2", "simd", "scalar"];

/** A browser and a server for the tests of a file. */
export function pages({ flags = [] } = {}) {
  const own = {};
  before(async () => {
    own.server = await serve();
    own.browser = await launch([...flags_for({ gpu: process.env.LAPIDARY_GPU === "1" }), ...flags]);
  });
  after(async () => {
    await own.browser?.close();
    await own.server?.close();
  });

  /**
   * Calls `body` in a fresh page, with the package, the tools of the checks and `argument`, and gives what it gives. `prepare` runs
   * before the page's own scripts; what `expose` holds can be called from the page. The page must log no error, but those that
   * `expected` matches, and no warning that `refused` matches.
   */
  async function visit(body, { argument, prepare, expose = {}, url = own.server.url, expected, refused } = {}) {
    const { page, context, faults, warnings } = await open(own.browser, "about:blank");
    try {
      if (prepare) await page.addInitScript(prepare);
      for (const [name, call] of Object.entries(expose)) await page.exposeFunction(name, call);
      await page.goto(url);
      const call = `Promise.all([import("/package/index.js"), import("/checks/tools.mjs"), import("/checks/faults.mjs")])
        .then(([lapidary, tools, faults]) => (${body})({ lapidary, ...tools, ...faults }, ${JSON.stringify(argument)}))`;
      const result = await page.evaluate(call);
      assert.deepEqual(
        faults.filter((fault) => !expected?.test(fault)),
        [],
        "errors in the page",
      );
      assert.deepEqual(
        warnings.filter((warning) => refused?.test(warning)),
        [],
        "warnings in the page",
      );
      return result;
    } finally {
      await context.close();
    }
  }

  return { own, visit };
}

/** One subtest for each check that ran. */
export async function report(t, results) {
  assert.ok(results.length > 0, "nothing was checked");
  for (const { name, fault, skipped, ms } of results) {
    await t.test(`${name} (${Math.round(ms)} ms)`, { skip: skipped }, () => fault === null || assert.fail(fault));
  }
}
