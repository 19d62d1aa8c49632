/** ONNX models of one node, in the protobuf encoding of onnx.proto: onnxruntime computes models only. */

const text = new TextEncoder();

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value & 127) | 128);
  return [...bytes, value];
}

const number = (field, value) => [...varint(field << 3), ...varint(value)];
const bytes = (field, value) => [...varint((field << 3) | 2), ...varint(value.length), ...value];
const string = (field, value) => bytes(field, text.encode(value));

const FLOAT = 1;
const IR_VERSION = 8;
const OPSET = 17;

/** What inputs are called. */
export const INPUTS = ["A", "B", "D"];

/** ValueInfoProto: a name, and a tensor type with its shape. */
function value_info(name, dims) {
  const shape = dims.flatMap((dim) => bytes(1, number(1, dim)));
  const tensor = [...number(1, FLOAT), ...bytes(2, shape)];
  return [...string(1, name), ...bytes(2, bytes(1, tensor))];
}

const INT = 2;
const INTS = 7;
const FLOAT_ATTRIBUTE = 1;

/** AttributeProto of a whole number, of a list of them, or, with a fraction, of a float. */
function attribute(name, value) {
  if (Array.isArray(value)) return [...string(1, name), ...value.flatMap((one) => number(8, one)), ...number(20, INTS)];
  if (Number.isInteger(value)) return [...string(1, name), ...number(3, value), ...number(20, INT)];
  return [...string(1, name), ...varint((2 << 3) | 5), ...new Uint8Array(new Float32Array([value]).buffer), ...number(20, FLOAT_ATTRIBUTE)];
}

const INT64 = 7;

/** TensorProto of whole numbers. */
const whole_numbers = (name, values) => [
  ...number(1, values.length), ...number(2, INT64), ...values.flatMap((value) => number(7, value)), ...string(8, name),
];

/**
 * ModelProto with one node: its operator, the shapes of its inputs, which are called as `INPUTS` has it, that of its output, C, its attributes,
 * and a list of whole numbers that is an input behind the others.
 */
export function model(operator, inputs, output, attributes = {}, axes = undefined) {
  const names = inputs.map((_, i) => INPUTS[i]);
  const node = [
    ...[...names, ...(axes ? ["axes"] : [])].flatMap((name) => string(1, name)),
    ...string(2, "C"),
    ...string(4, operator),
    ...Object.entries(attributes).flatMap(([name, value]) => bytes(5, attribute(name, value))),
  ];
  const graph = [
    ...bytes(1, node),
    ...string(2, operator),
    ...(axes ? bytes(5, whole_numbers("axes", axes)) : []),
    ...inputs.flatMap((dims, i) => bytes(11, value_info(names[i], dims))),
    ...bytes(12, value_info("C", output)),
  ];
  const opset = [...string(1, ""), ...number(2, OPSET)];
  return Uint8Array.from([...number(1, IR_VERSION), ...bytes(7, graph), ...bytes(8, opset)]);
}
