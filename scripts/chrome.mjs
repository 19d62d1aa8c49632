#!/usr/bin/env node
// How the tests and the headless demo start Chrome: one list of flags for all of them.
//
// usage: scripts/chrome.mjs [--gpu]
//
// Prints a webdriver.json for wasm-bindgen-test-runner, with the browser that CHROME names.
import { pathToFileURL } from "node:url";

/** WebGPU and WebGL2 on the CPU, the same on every machine. */
const SOFTWARE = ["--use-webgpu-adapter=swiftshader", "--enable-unsafe-swiftshader"];

/** The machine's GPU. Without a display, Linux reaches it through Vulkan only. */
const HARDWARE = {
  linux: ["--use-angle=vulkan", "--enable-features=Vulkan", "--disable-vulkan-surface", "--ignore-gpu-blocklist"],
  darwin: ["--use-angle=metal"],
};

export function flags({ gpu = false } = {}) {
  return [
    "--headless=new",
    "--enable-unsafe-webgpu",
    ...(gpu ? (HARDWARE[process.platform] ?? []) : SOFTWARE),
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    // Containers and root have no sandbox and a small /dev/shm, and only our own pages are opened.
    ...(process.platform === "linux" ? ["--no-sandbox", "--disable-dev-shm-usage"] : []),
  ];
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const args = process.argv.slice(2);
  if (args.some((arg) => arg !== "--gpu")) {
    const help = args.includes("--help");
    console[help ? "log" : "error"]("usage: scripts/chrome.mjs [--gpu]   prints a webdriver.json");
    process.exit(help ? 0 : 2);
  }
  const options = { args: flags({ gpu: args.includes("--gpu") }) };
  if (process.env.CHROME) options.binary = process.env.CHROME;
  console.log(JSON.stringify({ "goog:chromeOptions": options }, null, 2));
}
