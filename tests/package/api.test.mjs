/** What the package does through its functions, on every backend in a page; see also parts.test.mjs and node.test.mjs. */
import { test } from "node:test";
import { BACKENDS, pages, report } from "./page.mjs";
import { check, others_on } from "./subjects.mjs";

const { visit } = pages();

for (const backend of BACKENDS) {
  test(`in a page on ${backend}`, async (t) => report(t, await check(visit, others_on(backend), backend)));
}
