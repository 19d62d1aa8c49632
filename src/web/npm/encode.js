// How a value to compute is written as numbers. A page that imports no expressions has no other values than tensors and numbers.

import { invalid_type_of } from "./options.js";

/** The number by which Rust knows a tensor; undefined for what is none. */
export let tensor_number;

export function set_tensor_number(of) {
  tensor_number = of;
}

/** What a tensor or a number is in src/web/expr.rs: the code of its part, and its number. */
export function leaf(name, value) {
  if (typeof value === "number") return [1, value];
  const tensor = tensor_number(value);
  if (tensor === undefined) throw invalid_type_of(name, "an expression, a Tensor or a number", value);
  return [0, tensor];
}

/** A value as numbers, with what `hold` gives for its tensors; expr.js, if it is there, puts its own in its place. */
export let encode = (value, hold = (value) => value) => {
  const [code, number] = leaf("expr", hold(value));
  return [code, 0, 1, number];
};

export function set_encode(other) {
  encode = other;
}
