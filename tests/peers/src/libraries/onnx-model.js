/** The ONNX model of one product, C = A · B, in the protobuf encoding of onnx.proto: onnxruntime computes models only. */

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
const OPSET = 13;

/** ValueInfoProto: a name, and a tensor type with its shape. */
function value_info(name, dims) {
  const shape = dims.flatMap((dim) => bytes(1, number(1, dim)));
  const tensor = [...number(1, FLOAT), ...bytes(2, shape)];
  return [...string(1, name), ...bytes(2, bytes(1, tensor))];
}

/** ModelProto with one MatMul, for operands and a result of these shapes. */
export function matmul_model(a, b, c) {
  const node = [...string(1, "A"), ...string(1, "B"), ...string(2, "C"), ...string(4, "MatMul")];
  const graph = [
    ...bytes(1, node),
    ...string(2, "matmul"),
    ...bytes(11, value_info("A", a)),
    ...bytes(11, value_info("B", b)),
    ...bytes(12, value_info("C", c)),
  ];
  const opset = [...string(1, ""), ...number(2, OPSET)];
  return Uint8Array.from([...number(1, IR_VERSION), ...bytes(7, graph), ...bytes(8, opset)]);
}
