/** What the package does through its functions, on every backend in a page, and on the CPU in Node. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { run } from "./checks/tools.mjs";
import { BACKENDS, pages, report } from "./page.mjs";
import { PACKAGE } from "./server.mjs";

const SUBJECTS = ["input", "options", "arrays", "numbers", "reports", "lifetime", "memory", "queue", "halves", "int8", "expressions", "later", "fused", "reductions", "norms", "transforms", "windows", "buffers", "tuning"];
const { visit } = pages();

/** What Chrome says of a buffer whose copy for the host was made for nothing, or had to be waited for. */
const READBACK = /READ-usage buffer/;

for (const backend of BACKENDS) {
  test(`in a page on ${backend}`, async (t) => {
    const body = async ({ lapidary, run }, [subjects, backend]) => {
      const checks = await Promise.all(subjects.map((subject) => import(`/checks/${subject}.mjs`)));
      return run(Object.fromEntries(subjects.map((subject, i) => [subject, checks[i].default])), lapidary, backend);
    };
    await report(t, await visit(body, { argument: [SUBJECTS, backend], refused: READBACK }));
  });
}

for (const backend of ["simd", "scalar"]) {
  test(`in Node on ${backend}`, async (t) => {
    const lapidary = await import(pathToFileURL(join(PACKAGE, "node.js")));
    const checks = await Promise.all(SUBJECTS.map((subject) => import(`./checks/${subject}.mjs`)));
    await report(t, await run(Object.fromEntries(SUBJECTS.map((subject, i) => [subject, checks[i].default])), lapidary, backend));
  });
}

test("a process of Node's ends with its last call", () => {
  const script = `import { Gpu } from ${JSON.stringify(pathToFileURL(join(PACKAGE, "node.js")))};
    const gpu = await Gpu.open({ backend: "simd", threads: 1 });
    console.log(await gpu.matmul(new Float32Array([1, 2]), new Float32Array([3, 4]), { m: 1, k: 2, n: 1 }));`;
  const begun = performance.now();
  const said = execFileSync(process.execPath, ["--input-type=module", "--eval", script], { encoding: "utf8", timeout: 60_000 });
  assert.ok(said.length > 1, said);
  const seconds = (performance.now() - begun) / 1000;
  assert.ok(seconds < 15, `${seconds} s`);
});

test("the CPU holds no operand beyond its product", () => {
  const script = `import { Gpu, reference } from ${JSON.stringify(pathToFileURL(join(PACKAGE, "node.js")))};
    const gpu = await Gpu.open({ backend: "simd", threads: 1 });
    let b = new Float32Array(64 * 64).fill(1);
    await gpu.matmul(b, b, { m: 64, k: 64, n: 64 });
    (await reference(b, b, { m: 64, k: 64, n: 64 })).free();
    const held = new WeakRef(b);
    b = undefined;
    for (let turn = 0; turn < 20 && held.deref(); turn++) (await new Promise((resolve) => setTimeout(resolve, 10)), gc());
    console.log(held.deref() ? "held" : "let go");
    await reference(new Float32Array(), new Float32Array(), { m: 0, k: 0, n: 2 ** 32 - 1 });
    console.log("nothing is done for nothing");`;
  const said = execFileSync(process.execPath, ["--expose-gc", "--input-type=module", "--eval", script], { encoding: "utf8", timeout: 60_000 });
  assert.equal(said, "let go\nnothing is done for nothing\n");
});
