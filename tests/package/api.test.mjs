/** What the package does through its functions, on every backend in a page, and on the CPU in Node. */
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { BACKENDS, pages, report } from "./page.mjs";
import { PACKAGE } from "./server.mjs";

const SUBJECTS = ["input", "arrays", "numbers", "lifetime", "memory"];
const { visit } = pages();

for (const subject of SUBJECTS) {
  for (const backend of BACKENDS) {
    test(`${subject} in a page on ${backend}`, async (t) => {
      const body = async ({ lapidary, run }, [subject, backend]) => run((await import(`/checks/${subject}.mjs`)).default, lapidary, backend);
      await report(t, await visit(body, { argument: [subject, backend] }));
    });
  }
}

for (const subject of SUBJECTS) {
  for (const backend of ["simd", "scalar"]) {
    test(`${subject} in Node on ${backend}`, async (t) => {
      const [lapidary, { run }, { default: checks }] = await Promise.all([
        import(pathToFileURL(join(PACKAGE, "node.js"))),
        import("./checks/tools.mjs"),
        import(`./checks/${subject}.mjs`),
      ]);
      await report(t, await run(checks, lapidary, backend));
    });
  }
}
