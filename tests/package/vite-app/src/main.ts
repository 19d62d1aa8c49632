import type { Backend } from "lapidary";
import { multiply, tell } from "./multiply";

/** The test calls this: in the page, or in a module worker. */
async function run(backend: Backend, place: "page" | "worker"): Promise<string> {
  if (place === "page") return multiply(backend).catch(tell);
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const answer = await new Promise<string>((resolve) => {
    worker.onmessage = ({ data }: MessageEvent<string>) => resolve(data);
    worker.onerror = ({ message }) => resolve(`the worker failed: ${message}`);
    worker.postMessage(backend);
  });
  worker.terminate();
  return answer;
}

Object.assign(globalThis, { run });
