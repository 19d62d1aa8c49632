/**
 * The page is served as plain files from any folder, so addresses are relative and nothing is inlined that a strict
 * content security policy would refuse.
 */
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import lapidary from "./node_modules/lapidary/package.json" with { type: "json" };

/** Cross-origin isolation: without it browsers round their clocks to 0.1 ms, too coarse for small products. */
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** Only in the built page: the dev server's own client needs inline scripts. */
const policy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const contentSecurityPolicy: Plugin = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    { tag: "meta", attrs: { "http-equiv": "Content-Security-Policy", content: policy }, injectTo: "head-prepend" },
  ],
};

export default defineConfig({
  base: "./",
  plugins: [react(), contentSecurityPolicy],
  define: { __LAPIDARY_VERSION__: JSON.stringify(lapidary.version) },
  // Pre-bundling would move the package's JavaScript away from its .wasm file.
  optimizeDeps: { exclude: ["lapidary"] },
  worker: { format: "es" },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { headers, fs: { allow: [".", "../pkg"] } },
  preview: { headers },
});
