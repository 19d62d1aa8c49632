/**
 * Two pages as plain files with relative addresses, to be served from any folder: the bench, and the frame in which it measures. Wasm
 * files of the peers are copied beside the scripts that name them.
 */
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const version = (name) => JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url), "utf8")).version;

const VERSIONS = {
  lapidary: version("lapidary"),
  tfjs: version("@tensorflow/tfjs-core"),
  ort: version("onnxruntime-web"),
  jax: version("@jax-js/jax"),
};

/** Cross-origin isolation: without it browsers round their clocks to 0.1 ms. */
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/**
 * TensorFlow.js starts its threads from the text of a function, which asks by `typeof` for a variable outside it. Minified, the question is
 * whether that is undefined, which throws in a worker; asked of `globalThis` it has the same answer.
 */
const threads_of_tfjs = {
  name: "threads-of-tfjs",
  transform(code, id) {
    if (!id.includes("tfjs-backend-wasm-threaded-simd.js")) return undefined;
    return code.replaceAll(/typeof _scriptDir !== "undefined" && _scriptDir/g, "globalThis._scriptDir");
  },
};

export default defineConfig({
  plugins: [threads_of_tfjs],
  base: "./",
  define: { __VERSIONS__: JSON.stringify(VERSIONS) },
  // Pre-bundling would move scripts away from their .wasm files.
  optimizeDeps: { exclude: ["lapidary", "onnxruntime-web"] },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 2000,
    rolldownOptions: { input: ["index.html", "frame.html"] },
  },
  server: { headers, fs: { allow: [".", "../../pkg"] } },
  preview: { headers },
});
