// How the tests and the headless demo start Chrome: one list of flags for all of them.

/** WebGPU and WebGL2 on the CPU, the same on every machine. */
const SOFTWARE = ["--use-webgpu-adapter=swiftshader", "--enable-unsafe-swiftshader"];

/** The machine's GPU. Without a display, Linux reaches it through Vulkan only. */
const HARDWARE = {
  linux: [
    "--use-angle=vulkan",
    "--enable-features=Vulkan",
    "--disable-vulkan-surface",
    "--ignore-gpu-blocklist",
    // Chromium withholds shader-f16, and with it matrix units, on NVIDIA's driver for Vulkan unless told otherwise.
    "--enable-dawn-features=vulkan_enable_f16_on_nvidia,allow_unsafe_apis",
  ],
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
