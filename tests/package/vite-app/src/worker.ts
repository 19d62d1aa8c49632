import type { Backend } from "lapidary";
import { multiply, tell } from "./multiply";

self.onmessage = async ({ data }: MessageEvent<Backend>) => {
  postMessage(await multiply(data).catch(tell));
};
