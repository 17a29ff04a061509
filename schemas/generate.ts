/**
 * Writes src/contracts/records.ts (types and constructors) and src/contracts/schemas.ts (the schemas' texts) from schemas/*.avsc.
 *
 *     node schemas/generate.ts           writes both
 *     node schemas/generate.ts --check   changes nothing; fails where either is out of date
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

type Schema =
  | string
  | Schema[]
  | NamedSchema
  | { type: 'array'; items: Schema }
  | { type: 'map'; values: Schema }
  | { type: string };
type NamedSchema = RecordSchema | EnumSchema;
interface RecordSchema {
  type: 'record';
  name: string;
  doc: string;
  fields: FieldSchema[];
}
interface EnumSchema {
  type: 'enum';
  name: string;
  doc: string;
  symbols: string[];
  default: string;
}
interface FieldSchema {
  name: string;
  type: Schema;
  doc: string;
  default?: unknown;
}

const SCALARS: Readonly<Record<string, string>> = {
  null: 'null',
  boolean: 'boolean',
  int: 'number',
  long: 'number',
  float: 'number',
  double: 'number',
  string: 'string',
  bytes: 'Buffer',
};

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HEADING =
  '// Written by schemas/generate.ts from schemas/*.avsc. To change it, change a schema and run `node schemas/generate.ts`.';

/** Every named type of all schemas, in the order of their definitions. A type that several schemas define must be the same in each. */
function collectNamed(schemas: readonly RecordSchema[]): Map<string, NamedSchema> {
  const found = new Map<string, NamedSchema>();
  const visit = (schema: Schema): void => {
    if (typeof schema === 'string') return;
    if (Array.isArray(schema)) {
      for (const branch of schema) visit(branch);
      return;
    }
    if (isRecord(schema)) for (const field of schema.fields) visit(field.type);
    if ('items' in schema) visit(schema.items);
    if ('values' in schema) visit(schema.values);
    if (isRecord(schema) || isEnum(schema)) add(schema);
  };
  const add = (schema: NamedSchema): void => {
    const known = found.get(schema.name);
    if (
      known !== undefined &&
      JSON.stringify(stripNamespace(known)) !== JSON.stringify(stripNamespace(schema))
    ) {
      throw new Error(`${schema.name} is defined twice, and not alike`);
    }
    if (known === undefined) found.set(schema.name, schema);
  };
  for (const schema of schemas) visit(schema);
  return found;
}

const isRecord = (schema: Schema): schema is RecordSchema =>
  typeof schema === 'object' && 'type' in schema && schema.type === 'record';
const isEnum = (schema: Schema): schema is EnumSchema =>
  typeof schema === 'object' && 'type' in schema && schema.type === 'enum';
const stripNamespace = (schema: NamedSchema): object => ({ ...schema, namespace: undefined });

function typeOf(schema: Schema): string {
  if (typeof schema === 'string') return SCALARS[schema] ?? schema;
  if (Array.isArray(schema)) {
    const names = schema.map(typeOf);
    return [...names.filter((name) => name !== 'null'), ...names.filter((name) => name === 'null')].join(
      ' | ',
    );
  }
  if (isRecord(schema) || isEnum(schema)) return schema.name;
  if ('items' in schema) return `${typeOf(schema.items)}[]`;
  if ('values' in schema) return `Record<string, ${typeOf(schema.values)}>`;
  const scalar = SCALARS[schema.type];
  if (scalar === undefined) throw new Error(`no TypeScript type for ${JSON.stringify(schema)}`);
  return scalar;
}

/** The TypeScript expression of a field's Avro default. */
function defaultOf(field: FieldSchema): string {
  if (typeOf(field.type) === 'Buffer') {
    if (field.default !== '') throw new Error(`${field.name}: a default of bytes must be empty`);
    return 'EMPTY';
  }
  if (typeof field.default === 'string') return `'${field.default}'`;
  return JSON.stringify(field.default);
}

const constantName = (name: string): string => {
  const upper = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
  return upper.endsWith('S') ? `${upper}ES` : `${upper}S`;
};

function emitEnum(schema: EnumSchema): string {
  const constant = constantName(schema.name);
  return `export const ${constant} = [${schema.symbols.map((symbol) => `'${symbol}'`).join(', ')}] as const;
/** ${schema.doc} */
export type ${schema.name} = (typeof ${constant})[number];`;
}

function emitRecord(schema: RecordSchema): string {
  const { name, fields } = schema;
  const withDefault = fields.filter((field) => field.default !== undefined);
  const members = fields
    .map((field) => `/** ${field.doc} */\n${field.name}: ${typeOf(field.type)};`)
    .join('\n');
  const keys = withDefault.map((field) => `'${field.name}'`).join(' | ');
  const input = withDefault.length === 0 ? name : `WithDefaults<${name}, ${keys}>`;
  const values = fields.map((field) =>
    field.default === undefined
      ? `${field.name}: fields.${field.name},`
      : `${field.name}: fields.${field.name} === undefined ? ${defaultOf(field)} : fields.${field.name},`,
  );
  return `/** ${schema.doc} */
export interface ${name} {
${members}
}

/** Any ${name}, its fields in the schema's order; what has a default may be left out. */
export function make${name}(fields: ${input}): ${name} {
return {
${values.join('\n')}
};
}`;
}

function emitRecords(schemas: readonly RecordSchema[]): string {
  const named = [...collectNamed(schemas).values()];
  return `${HEADING}

/** T, with the fields K optional. */
type WithDefaults<T, K extends keyof T> = Omit<T, K> & { [P in K]?: T[P] | undefined };

const EMPTY = Buffer.alloc(0);

${named.map((schema) => (schema.type === 'enum' ? emitEnum(schema) : emitRecord(schema))).join('\n\n')}

/** The TypeScript type of each record that travels on a topic. */
export interface Records {
${schemas.map(({ name }) => `${name}: ${name};`).join('\n')}
}
`;
}

function emitTexts(schemas: readonly RecordSchema[]): string {
  const entries = schemas.map((schema) => `${schema.name}: ${quote(JSON.stringify(schema))},`);
  return `${HEADING}
import type { RecordName } from './topics.ts';

/** The Avro schema of each record, as JSON text: what millrace registers, writes and reads. */
export const SCHEMAS: Readonly<Record<RecordName, string>> = {
${entries.join('\n')}
};
`;
}

const quote = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function format(path: string, text: string): string {
  return execFileSync(`${ROOT}node_modules/.bin/biome`, ['format', `--stdin-file-path=${path}`], {
    input: text,
    cwd: ROOT,
    encoding: 'utf8',
  });
}

function main(): void {
  const check = process.argv.includes('--check');
  const files = readdirSync(`${ROOT}schemas`)
    .filter((file) => file.endsWith('.avsc'))
    .sort();
  const schemas = files.map(
    (file) => JSON.parse(readFileSync(`${ROOT}schemas/${file}`, 'utf8')) as RecordSchema,
  );
  const outputs = {
    'src/contracts/records.ts': emitRecords(schemas),
    'src/contracts/schemas.ts': emitTexts(schemas),
  };
  for (const [path, text] of Object.entries(outputs)) {
    const formatted = format(path, text);
    if (!check) writeFileSync(ROOT + path, formatted);
    else if (readFileSync(ROOT + path, 'utf8') !== formatted) {
      console.error(`${path} is not what schemas/*.avsc say. Run: node schemas/generate.ts`);
      process.exitCode = 1;
    }
  }
}

main();
