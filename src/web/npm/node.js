// Node reads the module from the package's folder; its fetch does not.
import { readFile } from "node:fs/promises";
import { set_source } from "./source.js";

set_source(() => readFile(new URL("./lapidary_core_bg.wasm", import.meta.url)));

export * from "./index.js";
