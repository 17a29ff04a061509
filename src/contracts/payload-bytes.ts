import avro from 'avsc';

/**
 * Compiles a function that adds up the lengths of all `bytes` fields of a value: nearly all of what a record with tensors takes, and
 * quick to know beforehand, so that it is written into one buffer of the right size.
 */
export function compilePayloadBytes(type: avro.Type): (value: unknown) => number {
  return compile(type) ?? (() => 0);
}

type PayloadBytes = (value: unknown) => number;

/** undefined where the type holds no bytes. */
function compile(type: avro.Type): PayloadBytes | undefined {
  if (type.typeName === 'bytes') return lengthOf;
  if (type instanceof avro.types.RecordType) return compileRecord(type);
  if (type instanceof avro.types.ArrayType) return compileArray(type);
  if (type instanceof avro.types.UnwrappedUnionType) return compileUnion(type);
  return undefined;
}

function lengthOf(value: unknown): number {
  return value instanceof Uint8Array ? value.length : 0;
}

function compileRecord(type: avro.types.RecordType): PayloadBytes | undefined {
  const fields: { name: string; bytes: PayloadBytes }[] = [];
  for (const field of type.fields) {
    const bytes = compile(field.type);
    if (bytes !== undefined) fields.push({ name: field.name, bytes });
  }
  if (fields.length === 0) return undefined;
  return (value) => {
    if (typeof value !== 'object' || value === null) return 0;
    let total = 0;
    for (const { name, bytes } of fields) total += bytes((value as Record<string, unknown>)[name]);
    return total;
  };
}

function compileArray(type: avro.types.ArrayType): PayloadBytes | undefined {
  const bytes = compile(type.itemsType);
  if (bytes === undefined) return undefined;
  return (value) => {
    if (!Array.isArray(value)) return 0;
    let total = 0;
    for (const item of value) total += bytes(item);
    return total;
  };
}

/** Our unions are a type or null. */
function compileUnion(type: avro.types.UnwrappedUnionType): PayloadBytes | undefined {
  for (const branch of type.types) {
    const bytes = compile(branch);
    if (bytes !== undefined) return bytes;
  }
  return undefined;
}
