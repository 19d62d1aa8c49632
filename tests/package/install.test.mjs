/** The package as others get it: packed, installed, bundled, and used in Node, in a page and in a worker. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import webpack from "webpack";
import { SOFTWARE_GPU, launch, open } from "../page/browser.mjs";
import { install, node, pack, run } from "./install.mjs";
import { BACKENDS } from "./page.mjs";
import { PACKAGE, list, serve } from "./server.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** What is loaded when it is first needed. */
const PARTS = ["operations", "cpu", "operations_cpu", "webgl2", "operations_webgl2", "matrix", "int8", "measure"].map((name) => `lapidary_${name}.wasm`);
const FIXTURE = fileURLToPath(new URL("./vite-app/", import.meta.url));

/** A tool's script, from the demo's packages. */
function tool(name, script) {
  const about = createRequire(join(ROOT, "demo", "package.json")).resolve(`${name}/package.json`);
  return join(dirname(about), script);
}

let browser, packed;
before(async () => {
  packed = await pack();
  browser = await launch(SOFTWARE_GPU);
});
after(async () => {
  await browser?.close();
  await packed?.remove();
});

/** Serves a folder and looks at a page of it, which must log no error. */
async function look(options, path, body, argument) {
  const server = await serve(options);
  const { page, context, faults } = await open(browser, server.url + path);
  try {
    const result = await page.evaluate(body, argument);
    assert.deepEqual(faults, [], "errors in the page");
    return result;
  } finally {
    await context.close();
    await server.close();
  }
}

test("what is packed is what is needed", () => {
  const { names } = packed;
  const needed = [
    ...["expr.d.ts", "expr.js", "index.d.ts", "index.js", "lapidary_core.js", "lapidary_core_bg.wasm", "node.js", "options.js", "package.json"],
    ...["source.js", "parts.js", "encode.js", "early.js", ...PARTS],
  ];
  assert.deepEqual(
    needed.filter((name) => !names.includes(name)),
    [],
    "missing",
  );
  const others = names.filter(
    (name) => !needed.includes(name) && !/^snippets\/.+\.js$/.test(name) && !/^(README\.md|LICENSE[\w-]*)$/.test(name),
  );
  assert.deepEqual(others, [], "of no use");

  const about = JSON.parse(readFileSync(join(PACKAGE, "package.json"), "utf8"));
  assert.equal(about.name, "lapidary");
  assert.equal(about.private, undefined);
  assert.match(about.version, /^\d+\.\d+\.\d+/);
  assert.equal(about.type, "module");
  assert.deepEqual([about.dependencies, about.scripts], [undefined, undefined]);
  const targets = (value) => (typeof value === "string" ? [value] : Object.values(value).flatMap(targets));
  for (const target of [...targets(about.exports), about.types])
    assert.ok(names.includes(target.replace(/^\.\//, "")), `${target} is not packed`);
  for (const name of names.filter((name) => name.endsWith(".wasm")))
    assert.equal(about.exports[`./${name}`], `./${name}`, `a bundler finds no ${name}`);
  assert.equal(Object.keys(about.exports["."])[0], "types", "types come first, or they are not found");
});

test("no file tells where it was built", () => {
  for (const name of list(PACKAGE)) {
    const text = readFileSync(join(PACKAGE, name), "latin1");
    for (const path of [ROOT, homedir() + "/", "/.cargo/registry/", "\\.cargo\\registry\\"])
      assert.ok(!text.includes(path), `${name} has ${path}`);
  }
});

test("Node", async () => {
  const project = await install(packed, "node");
  const script = `
    import assert from "node:assert/strict";
    import { readFileSync } from "node:fs";
    import * as lapidary from "lapidary";
    const { Gpu, init_gpu, matmul } = lapidary;
    const a = Float32Array.of(1, 2, 3, 4, 5, 6), b = Float32Array.of(1, 0, 0, 1, 1, 1);
    const options = { m: 2, k: 3, n: 2 };
    assert.deepEqual([...await matmul(a, b, options)], [4, 5, 10, 11]);
    const info = await lapidary.device_info();
    assert.equal(info.backend, "simd");
    for (const backend of ["simd", "scalar", "cpu"]) {
      const gpu = await Gpu.open({ backend });
      assert.deepEqual([...await gpu.matmul(a, b, options)], [4, 5, 10, 11]);
      gpu.free();
    }
    for (const backend of ["webgpu", "webgl2"]) {
      const is_right = (error) => error instanceof Error && error.code === "unavailable" && error.message.startsWith(backend);
      await assert.rejects(init_gpu({ backend }), is_right);
      assert.notEqual(info.others.find((one) => one.backend === backend).reason, "");
    }
    assert.deepEqual([...await matmul(a, b, options)], [4, 5, 10, 11]);
    const two = await Gpu.open({ backend: "simd", threads: 2 });
    const [x, y] = [1, 2].map((seed) => Float32Array.from({ length: 300 * 300 }, (_, i) => (i * seed) % 7 - 3));
    const square = { m: 300, k: 300, n: 300, report: true };
    const alone = await two.matmul(x, y, square);
    let both;
    for (let turn = 0; turn < 100 && !/2 threads/.test(both?.kernel); turn++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      both = await two.matmul(x, y, square);
    }
    assert.match(both.kernel, /, 2 threads$/);
    assert.deepEqual(both.data, alone.data);
    const read = (name) => readFileSync(new URL(import.meta.resolve("lapidary/" + name)));
    for (const name of ${JSON.stringify(["lapidary_core_bg.wasm", ...PARTS])}) assert.ok(WebAssembly.validate(read(name)), name);
    assert.equal(JSON.parse(read("package.json")).name, "lapidary");
    await assert.rejects(import("lapidary/lapidary_core.js"), { code: "ERR_PACKAGE_PATH_NOT_EXPORTED" });
    console.log(Object.keys(lapidary).sort().join());
  `;
  const names = (await node(project, "use.mjs", script)).trim();
  assert.equal(
    names,
    "Expr,Gpu,Reference,Tensor,benchmark,clear_tuning,device_info,evaluate,gpu_device,init_gpu,lazy,matmul,memory,random_matrix,reference,tensor,tune",
    "what is exported is what is documented",
  );
  assert.equal(
    (
      await node(project, "use.cjs", `import("lapidary").then(({ init_gpu }) => init_gpu()).then((info) => console.log(info.backend));`)
    ).trim(),
    "simd",
  );
  assert.equal(
    (
      await node(
        project,
        "worker.mjs",
        `
    import { Worker, isMainThread, parentPort } from "node:worker_threads";
    import { matmul } from "lapidary";
    if (isMainThread) new Worker(new URL(import.meta.url)).on("message", (text) => console.log(text));
    else parentPort.postMessage((await matmul(Float32Array.of(2), Float32Array.of(3), { m: 1, k: 1, n: 1 })).join());
  `,
      )
    ).trim(),
    "6",
  );
});

test("Vite and strict TypeScript, in the page and in a worker", async (t) => {
  const project = await install(packed, "app", FIXTURE);
  await t.test("tsc --noEmit", () => run(process.execPath, [tool("typescript", "bin/tsc"), "--noEmit"], { cwd: project }));
  await t.test("tsc with a library that has Float16Array", () =>
    run(process.execPath, [tool("typescript", "bin/tsc"), "--noEmit", "--lib", "ESNext,DOM"], { cwd: project }),
  );
  await t.test("tsc with Node's resolution, and with `using`", async () => {
    await writeFile(
      join(project, "src/using.mts"),
      `import { Gpu } from "lapidary";\nexport async function f() {\n  using gpu = await Gpu.open();\n  return gpu.info();\n}\n`,
    );
    const options = [
      "--noEmit",
      "--strict",
      "--target",
      "ES2022",
      "--lib",
      "ES2022,ESNext.Disposable,DOM",
      "--module",
      "NodeNext",
      "--moduleResolution",
      "NodeNext",
    ];
    await run(process.execPath, [tool("typescript", "bin/tsc"), ...options, "--ignoreConfig", "src/using.mts"], { cwd: project });
  });
  await run(process.execPath, [tool("vite", "bin/vite.js"), "build", "--base", "./", "--logLevel", "warn"], { cwd: project });
  const dist = join(project, "dist");
  assert.equal(list(dist).filter((name) => name.endsWith(".wasm")).length, 1 + PARTS.length, `one module and its parts: ${list(dist)}`);
  for (const place of ["page", "worker"]) {
    for (const backend of BACKENDS) {
      await t.test(`${backend} in the ${place}`, async () => {
        // Not at the root: nothing may rely on where it is served.
        const answer = await look(
          { mounts: { "/deep/folder/": dist } },
          "deep/folder/",
          ([backend, place]) => globalThis.run(backend, place),
          [backend, place],
        );
        assert.equal(answer, "");
      });
    }
  }
});

/** Gives what it computes, by one thread and then by the others too, and on what. */
const USE = `
  import { device_info, evaluate, lazy, matmul } from "lapidary";
  const identity = Float32Array.from({ length: 256 * 256 }, (_, i) => +(i % 257 === 0));
  for (let turn = 0; turn < 5; turn++) await matmul(identity, identity, { m: 256, k: 256, n: 256 });
  const [three] = await (await evaluate(lazy(1).add(2).reshape([1]))).toArray();
  const c = await matmul(Float32Array.of(1, 2, 3, 4, 5, 6), Float32Array.of(1, 0, 0, 1, 1, 1), { m: 2, k: 3, n: 2 });
  export const result = [(await device_info()).backend, three, ...c].join();
`;

test("Deno, which may read files and nothing else", async () => {
  const project = await install(packed, "deno");
  await writeFile(join(project, "use.mjs"), `${USE}\nconsole.log(result);`);
  const deno = join(ROOT, "tests/node_modules/.bin", process.platform === "win32" ? "deno.cmd" : "deno");
  assert.equal((await run(deno, ["run", "--no-prompt", "--allow-read", "use.mjs"], { cwd: project })).trim(), "simd,3,4,5,10,11");
});

test("webpack", async () => {
  const project = await install(packed, "webpack");
  await writeFile(join(project, "use.mjs"), `${USE}\nglobalThis.result = result;`);
  const path = join(project, "dist");
  const bundled = await new Promise((resolve, reject) => {
    webpack({ mode: "production", context: project, entry: "./use.mjs", output: { path } }, (error, stats) => (error ? reject(error) : resolve(stats)));
  });
  assert.equal(bundled.hasErrors(), false, bundled.toString("errors-only"));
  const html = '<!doctype html><meta charset="utf-8"><title>webpack</title><link rel="icon" href="data:,"><script src="main.js"></script>';
  await writeFile(join(path, "index.html"), html);
  const result = await look({ mounts: { "/deep/folder/": path } }, "deep/folder/", async () => {
    while (globalThis.result === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    return globalThis.result;
  });
  assert.match(result, /,3,4,5,10,11$/);
});

test("a script without a bundler", async () => {
  const html = `<!doctype html><meta charset="utf-8"><title>bare</title><link rel="icon" href="data:,">
    <script type="importmap">{ "imports": { "lapidary": "/package/index.js" } }</script>
    <script type="module">
      import { init_gpu, matmul } from "lapidary";
      const device = await init_gpu({ backend: "webgl2" });
      const c = await matmul(Float32Array.of(1, 2, 3, 4, 5, 6), Float32Array.of(1, 0, 0, 1, 1, 1), { m: 2, k: 3, n: 2 });
      globalThis.result = [device.backend, ...c].join();
    </script>`;
  const result = await look({ replace: { "/bare/index.html": html }, mounts: { "/package/": PACKAGE } }, "bare/", async () => {
    while (globalThis.result === undefined) await new Promise((resolve) => setTimeout(resolve, 10));
    return globalThis.result;
  });
  assert.equal(result, "webgl2,4,5,10,11");
});
