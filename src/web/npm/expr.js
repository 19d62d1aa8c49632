// Expressions: what is to be computed, told first and computed as a whole. One is a tree of the objects below and nothing else: there is
// nothing to free. `encode` writes it as numbers, of which src/web/expr.rs makes the same in Rust; what is wrong with it is said there.

import { leaf, set_encode, tensor_number } from "./encode.js";
import { ACTIVATIONS, COMPUTED, DTYPES, fault, flag, invalid_type_of, known, number, one_of, place, whole, wholes } from "./options.js";

/** Along axes. */
const REDUCTIONS = "sum mean prod amax amin argmax argmin normL1 normL2 logSumExp any all count".split(" ");

const POOLS = ["maxPool", "maxPoolIndices", "averagePool", "globalMaxPool", "globalAveragePool"];

const SOFTMAXES = ["softmax", "logSoftmax"];

const TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "fftOfReal"];

/** In the order of the numbers by which src/web/expr.rs knows them. */
const PARTS = (
  "tensor number index select cast reshape transpose broadcastTo slice flip pad concat gelu clamp matmul randomBits randomUniform randomNormal " +
  "var std"
)
  .split(" ")
  .concat(REDUCTIONS, "conv", POOLS, SOFTMAXES, "layerNorm", "rmsNorm", "batchNorm", TRANSFORMS);

/** In the order of the table in src/ops/elementwise/function.rs, behind the others; those with a plus have a second operand. */
const FUNCTIONS = (
  "add+ sub+ mul+ div+ rem+ modulo+ pow+ min+ max+ negative abs sign square reciprocal sqrt exp log sin cos tan asin acos atan sinh cosh tanh " +
  "asinh acosh atanh sigmoid silu geluTanh relu softplus erf floor ceil round trunc roundToF16 equal+ notEqual+ less+ lessEqual+ greater+ greaterEqual+ isNan isInf " +
  "and+ or+ xor+ not shiftLeft+ shiftRight+"
).split(" ");
const FIRST_FUNCTION = 64;

/** What norms add to a variance if they are not told. */
const EPSILON = 1e-5;

/** Only this file makes expressions. */
const ours = Symbol();

const part = (name, inputs, numbers) => new Expr(ours, PARTS.indexOf(name), inputs, numbers);

/** What an operand may be, as an expression. */
function operand(name, value) {
  if (Expr.is(value)) return value;
  const [code, number] = leaf(name, value);
  // A tensor is held, so as not to be collected before.
  return new Expr(ours, code, code === 0 ? [value] : [], [number]);
}

const listed = (list) => [list.length, ...list];

/** What a convolution and a pool are told of their windows, and whether the last may reach over the edge. */
function windows(told) {
  const is_same = SAME.indexOf(told.pads) + 1;
  const { strides: apart = [], dilations: spread = [], pads: around = [] } = told;
  const lists = [apart, spread, is_same > 0 ? [] : pairs("pads", around)];
  const [strides, dilations, pads] = lists.map((list, i) => listed(wholes(["strides", "dilations", "pads"][i], list)));
  return [is_same, ...strides, ...dilations, ...pads, Number(flag("ceil_mode", told.ceil_mode))];
}

/** In the order of the numbers by which src/web/expr.rs knows them, behind pads that are told. */
const SAME = ["same_upper", "same_lower"];
const WINDOWS = ["strides", "dilations", "pads"];

function pairs(name, value) {
  // What is left out of an array counts as undefined.
  if (!Array.isArray(value) || Array.from(value).some((pair) => !Array.isArray(pair) || pair.length !== 2)) {
    throw invalid_type_of(name, `an array of pairs, [before, behind] for each dimension${name === "pads" ? `, or ${SAME.join(" or ")}` : ""}`, value);
  }
  return value.flatMap((pair) => Array.from(pair));
}

const random = (name, shape, seed) => part(name, [], [whole("seed", seed), ...wholes("shape", shape)]);

/** In the order of the numbers by which src/web/expr.rs knows them. */
const AROUND = [undefined, "edge", "reflect", "wrap"];

/** Axes, of which one may stand by itself; of no word on them Rust is told by a 0. */
const axes_of = (axes) => (axes === undefined ? [0] : [1, ...wholes("axes", typeof axes === "number" ? [axes] : axes, true)]);

/** What a reduction is told but by what a variance is corrected. */
const reduced = (axes, keep) => [Number(flag("keep", keep)), ...axes_of(axes)];

export class Expr {
  #code;
  /** Expressions; of a tensor the Tensor, which is not to be collected before. */
  #inputs;
  #numbers;

  constructor(key, code, inputs, numbers = []) {
    if (key !== ours) throw fault("invalid_type", "an Expr is not made by its constructor; use lazy");
    this.#code = code;
    this.#inputs = inputs;
    this.#numbers = numbers;
  }

  static is(value) {
    return typeof value === "object" && value !== null && #code in value;
  }

  /**
   * The parts of an expression, each once and after those that it is made of: its code, its inputs by their places, its numbers; of tensors those of
   * what `hold` gives for them.
   */
  static encode(expr, hold = (value) => value) {
    const places = new Map();
    const out = [];
    // Without calls within calls, for which a deep one leaves no room.
    const left = [operand("expr", expr)];
    while (left.length > 0) {
      const next = left.at(-1);
      const is_tensor = next.#code === 0;
      const inputs = is_tensor || places.has(next) ? [] : next.#inputs;
      const missing = inputs.filter((input) => !places.has(input));
      if (missing.length > 0) {
        for (const input of missing.reverse()) left.push(input);
        continue;
      }
      left.pop();
      if (places.has(next)) continue;
      const numbers = is_tensor ? [tensor_number(hold(next.#inputs[0]))] : next.#numbers;
      places.set(next, places.size);
      out.push(next.#code, inputs.length);
      for (const input of inputs) out.push(places.get(input));
      out.push(numbers.length, ...numbers);
    }
    return out;
  }

  static index(shape) {
    return part("index", [], wholes("shape", shape));
  }

  static randomBits(shape, seed) {
    return random("randomBits", shape, seed);
  }

  static randomUniform(shape, seed) {
    return random("randomUniform", shape, seed);
  }

  static randomNormal(shape, seed) {
    return random("randomNormal", shape, seed);
  }

  static concat(parts, axis = 0) {
    if (!Array.isArray(parts)) throw invalid_type_of("parts", "an array of expressions", parts);
    return part("concat", Array.from(parts, (value) => operand("a part", value)), [whole("axis", axis, true)]);
  }

  matmul(b) {
    return part("matmul", [this, operand("b", b)]);
  }

  conv(filters, options) {
    const told = known(options, [...WINDOWS, "groups", "bias", "activation"]);
    const inputs = [this, operand("filters", filters)];
    if (told.bias !== undefined) inputs.push(operand("bias", told.bias));
    const groups = told.groups === undefined ? 1 : whole("groups", told.groups);
    return part("conv", inputs, [groups, place("activation", told.activation, ACTIVATIONS), ...windows(told)]);
  }

  maxPool(sizes, options) {
    return this.#pool("maxPool", sizes, known(options, [...WINDOWS, "ceil_mode"]));
  }

  maxPoolIndices(sizes, options) {
    return this.#pool("maxPoolIndices", sizes, known(options, [...WINDOWS, "ceil_mode"]));
  }

  averagePool(sizes, options) {
    return this.#pool("averagePool", sizes, known(options, [...WINDOWS, "ceil_mode", "count_include_pad"]));
  }

  #pool(name, sizes, told) {
    const counts = Number(flag("count_include_pad", told.count_include_pad));
    return part(name, [this], [counts, ...listed(wholes("sizes", sizes)), ...windows(told)]);
  }

  globalMaxPool() {
    return part("globalMaxPool", [this]);
  }

  globalAveragePool() {
    return part("globalAveragePool", [this]);
  }

  layerNorm(axes, options) {
    return this.#norm("layerNorm", axes, ["scale", "bias"], known(options, ["scale", "bias", "epsilon"]));
  }

  rmsNorm(axes, options) {
    return this.#norm("rmsNorm", axes, ["scale"], known(options, ["scale", "epsilon"]));
  }

  /** A norm with the operands of those names, so far as they are told. */
  #norm(name, axes, names, told) {
    const [is_told, ...list] = axes_of(axes);
    if (!is_told) throw invalid_type_of("axes", "an axis or an array of them", axes);
    const beside = names.filter((name) => told[name] !== undefined);
    const inputs = [this, ...beside.map((name) => operand(name, told[name]))];
    return part(name, inputs, [number("epsilon", told.epsilon, EPSILON), ...names.map((name) => Number(beside.includes(name))), ...list]);
  }

  batchNorm(scale, bias, mean, variance, epsilon) {
    const beside = Object.entries({ scale, bias, mean, variance }).map(([name, value]) => operand(name, value));
    return part("batchNorm", [this, ...beside], [number("epsilon", epsilon, EPSILON)]);
  }

  fft2() {
    return this.fft().fft(-2);
  }

  ifft2() {
    return this.ifft().ifft(-2);
  }

  rfft2() {
    return this.rfft().fft(-2);
  }

  irfft2(length) {
    return this.ifft(-2).irfft(-1, length);
  }

  gelu() {
    return part("gelu", [this]);
  }

  select(yes, no) {
    return part("select", [this, operand("yes", yes), operand("no", no)]);
  }

  clamp(least, most) {
    return part("clamp", [this, operand("least", least), operand("most", most)]);
  }

  cast(dtype) {
    return part("cast", [this], [DTYPES.indexOf(one_of("dtype", dtype ?? null, DTYPES, COMPUTED.join(", ")))]);
  }

  reshape(shape) {
    return part("reshape", [this], wholes("shape", shape, true));
  }

  transpose(axes) {
    return part("transpose", [this], axes_of(axes));
  }

  broadcastTo(shape) {
    return part("broadcastTo", [this], wholes("shape", shape));
  }

  slice(axis, start, end, step = 1) {
    return part("slice", [this], [whole("axis", axis, true), whole("start", start, true), whole("end", end, true), whole("step", step, true)]);
  }

  flip(axes) {
    return part("flip", [this], axes_of(axes));
  }

  pad(widths, value = 0) {
    const numbers = wholes("widths", pairs("widths", widths));
    const is_number = typeof value === "number";
    const mode = is_number ? 0 : AROUND.indexOf(one_of("value", value, AROUND, "a number, edge, reflect or wrap"));
    return part("pad", [this], [mode, is_number ? value : 0, ...numbers]);
  }
}

for (const name of REDUCTIONS) {
  Expr.prototype[name] = function (axes, keep) {
    return part(name, [this], [0, ...reduced(axes, keep)]);
  };
}

for (const name of ["var", "std"]) {
  Expr.prototype[name] = function (axes, keep, correction = 0) {
    if (typeof correction !== "number") throw invalid_type_of("correction", "a number", correction);
    return part(name, [this], [correction, ...reduced(axes, keep)]);
  };
}

for (const name of SOFTMAXES) {
  Expr.prototype[name] = function (axis = -1) {
    return part(name, [this], [whole("axis", axis, true)]);
  };
}

for (const name of TRANSFORMS) {
  Expr.prototype[name] = function (axis = -1, length) {
    return part(name, [this], [whole("axis", axis, true), ...(length === undefined ? [] : [whole("length", length)])]);
  };
}

FUNCTIONS.forEach((name, index) => {
  const [method, second] = name.split("+");
  Expr.prototype[method] = function (b) {
    return new Expr(ours, FIRST_FUNCTION + index, second === undefined ? [this] : [this, operand("b", b)]);
  };
});

export const lazy = (value) => operand("value", value);

set_encode(Expr.encode);
