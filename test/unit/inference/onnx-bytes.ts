/** Writes small ONNX models by hand (onnx.proto3, in protobuf's wire format), so that tests need no Python. */

type Field = Uint8Array;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) + 128);
  }
}

export function numberField(field: number, value: number): Field {
  return Buffer.concat([varint(field * 8), varint(value)]);
}

export function bytesField(field: number, contents: Uint8Array | string): Field {
  const bytes = Buffer.from(contents);
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
}

export function message(field: number, ...fields: Field[]): Field {
  return bytesField(field, Buffer.concat(fields));
}

export const FLOAT = 1;
export const INT64 = 7;

/** A graph input (field 11) or output (12); a text dimension is free. */
export function valueInfo(
  field: 11 | 12,
  name: string,
  elementType: number,
  dims: (number | string)[],
): Field {
  const dimensions = dims.map((dim) =>
    message(1, typeof dim === 'string' ? bytesField(2, dim) : numberField(1, dim)),
  );
  return message(
    field,
    bytesField(1, name),
    message(2, message(1, numberField(1, elementType), message(2, ...dimensions))),
  );
}

export function intAttribute(name: string, value: number): Field {
  return message(5, bytesField(1, name), numberField(3, value), numberField(20, 2));
}

export function node(operator: string, inputs: string[], output: string, ...attributes: Field[]): Field {
  return message(
    1,
    ...inputs.map((input) => bytesField(1, input)),
    bytesField(2, output),
    bytesField(4, operator),
    ...attributes,
  );
}

export function initializer(
  name: string,
  elementType: number,
  dims: number[],
  contents: Uint8Array,
  ...rest: Field[]
): Field {
  const shape = dims.map((dim) => numberField(1, dim));
  return message(
    5,
    ...shape,
    numberField(2, elementType),
    bytesField(8, name),
    bytesField(9, contents),
    ...rest,
  );
}

export function model(...graph: Field[]): Buffer {
  const opset = message(8, numberField(2, 17));
  return Buffer.concat([numberField(1, 8), message(7, ...graph, bytesField(2, 'toy')), opset]);
}
