/** Settings live in the address, so that a link repeats a run. What is not understood is named, and left out. */

export const MEASURES = [
  ...["first", "resident", "end_to_end", "batch", "vector", "queue", "f16", "f16x3", "operations", "conv", "fft"],
  ...["neighbours", "tuned", "f16_computed", "int8"],
];
export const BACKENDS = ["webgpu", "webgl2", "wasm"];
export const LIBRARIES = ["lapidary", "tfjs", "ort", "jax"];

const LARGEST = 32768;

const DEFAULTS = {
  sizes: "512,1024,2048,4096",
  shapes: "",
  only: MEASURES.join(","),
  backends: BACKENDS.join(","),
  samples: "5",
  min_ms: "50",
};

/** The settings of an address, whether a script opened it, and one sentence for each thing ignored. */
export function parse(search) {
  const query = { ...DEFAULTS };
  const ignored = [];
  let headless = false;
  for (const [key, value] of new URLSearchParams(search)) {
    if (key === "headless") headless = value === "1";
    else if (key in query) query[key] = value;
    else ignored.push(`“${key}” is no setting`);
  }
  const list = (key, read) => {
    const values = query[key].split(",").map((text) => text.trim().toLowerCase()).filter(Boolean);
    const known = values.map((text) => [text, read(text)]);
    for (const [text, value] of known) if (value === null) ignored.push(`${key}: “${text}” was not understood`);
    return known.map(([, value]) => value).filter((value) => value !== null);
  };
  const side = (text) => (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= LARGEST ? Number(text) : null);
  const shape = (text) => {
    const sides = text.split(/[x×]/).map((part) => side(part.trim()));
    return sides.length === 3 && !sides.includes(null) ? { m: sides[0], k: sides[1], n: sides[2] } : null;
  };
  const one_of = (names) => (text) => (names.includes(text) ? text : null);
  const number = (key, least, most) => {
    const value = Number(query[key]);
    if (Number.isInteger(value) && value >= least && value <= most) return value;
    ignored.push(`${key}: “${query[key]}” is not a whole number from ${least} to ${most}`);
    return Number(DEFAULTS[key]);
  };
  const settings = {
    sizes: [...new Set(list("sizes", side))].sort((x, y) => x - y),
    shapes: list("shapes", shape),
    only: list("only", one_of(MEASURES)),
    backends: list("backends", one_of(BACKENDS)),
    samples: number("samples", 1, 100),
    min_ms: number("min_ms", 1, 10_000),
  };
  return { settings, headless, ignored };
}

/** The values of the page's form. Commas stay commas: people read and edit them. */
export function texts({ sizes, shapes, only, backends }) {
  return {
    sizes: sizes.join(","),
    shapes: shapes.map(({ m, k, n }) => `${m}x${k}x${n}`).join(","),
    only: only.join(","),
    backends: backends.join(","),
  };
}
