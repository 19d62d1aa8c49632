/** What the package does in Node, on the CPU. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { run, without_collector } from "./checks/tools.mjs";
import { report } from "./page.mjs";
import { PACKAGE } from "./server.mjs";
import { all_checks } from "./subjects.mjs";

for (const backend of ["simd", "scalar"]) {
  test(`in Node on ${backend}`, async (t) => {
    without_collector();
    const lapidary = await import(pathToFileURL(join(PACKAGE, "node.js")));
    await report(t, await run(await all_checks(), lapidary, backend));
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

test("what is forgotten is freed", () => {
  const script = `import { Gpu, lazy } from ${JSON.stringify(pathToFileURL(join(PACKAGE, "node.js")))};
    const gpu = await Gpu.open({ backend: "simd", threads: 1 });
    const made = async () => gpu.evaluate(lazy(await gpu.tensor(new Float32Array(1000), [1000])).add(1));
    await made();
    const held = gpu.memory().used_bytes;
    for (let turn = 0; turn < 20 && gpu.memory().used_bytes; turn++) (await new Promise((resolve) => setTimeout(resolve, 10)), gc());
    console.log(held > 0, gpu.memory().used_bytes);`;
  const said = execFileSync(process.execPath, ["--expose-gc", "--input-type=module", "--eval", script], { encoding: "utf8", timeout: 60_000 });
  assert.equal(said, "true 0\n");
});
