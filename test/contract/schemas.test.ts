import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { incompatibilities } from '../../src/contracts/compatibility.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import { definitionOf, RECORD_NAMES } from './fixture.ts';

const FOLDER = new URL('../../schemas/', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, FOLDER), 'utf8');

interface Field {
  name: string;
  type: unknown;
  doc?: string;
  default?: unknown;
}
interface Named {
  type: 'record' | 'enum';
  name: string;
  doc?: string;
  fields?: Field[];
  symbols?: string[];
  default?: string;
}

/** Every record and enum inside a schema, itself included. */
function namedIn(schema: unknown): Named[] {
  if (Array.isArray(schema)) return schema.flatMap(namedIn);
  if (typeof schema !== 'object' || schema === null) return [];
  const inner = Object.values(schema).flatMap(namedIn);
  const named = schema as Named;
  return named.type === 'record' || named.type === 'enum' ? [named, ...inner] : inner;
}

describe.each(RECORD_NAMES)('schema of %s', (record) => {
  const { schema: file } = definitionOf(record);
  const text = read(`${file}.avsc`);
  const named = namedIn(JSON.parse(text));

  it('is FULL_TRANSITIVE with what was released', () => {
    expect(incompatibilities(text, [read(`released/${file}.avsc`)], 'FULL_TRANSITIVE')).toEqual([]);
  });

  it('lies in the namespace millrace.v1 under its own name', () => {
    expect(JSON.parse(text)).toMatchObject({ name: record, namespace: 'millrace.v1' });
  });

  it('documents every record, enum and field', () => {
    const parts = named.flatMap((part) => [part, ...(part.fields ?? [])]);
    expect(parts.filter(({ doc }) => doc === undefined || doc === '').map(({ name }) => name)).toEqual([]);
  });

  it('has no union but of null and one type', () => {
    const types = named.flatMap(({ fields = [] }) => fields.map(({ type }) => type));
    for (const type of types.filter(Array.isArray)) {
      expect(type).toHaveLength(2);
      expect(type[0]).toBe('null');
    }
  });

  it('names fields in camelCase, and symbols in UPPER_SNAKE with a default for readers that do not know one', () => {
    for (const { fields = [], symbols, default: fallback } of named) {
      for (const field of fields) expect(field.name).toMatch(/^[a-z][a-zA-Z0-9]*$/);
      for (const symbol of symbols ?? []) expect(symbol).toMatch(/^[A-Z][A-Z0-9_]*$/);
      if (symbols !== undefined) expect(symbols).toContain(fallback);
    }
  });
});

it('schemas/ holds the schema of each record, and no other', () => {
  const files = RECORD_NAMES.map((record) => `${definitionOf(record).schema}.avsc`).sort();
  for (const folder of [FOLDER, new URL('released/', FOLDER)]) {
    expect(
      readdirSync(folder)
        .filter((name) => name.endsWith('.avsc'))
        .sort(),
    ).toEqual(files);
  }
});

describe('the check of compatibility', () => {
  type Change = (schema: { name: string; namespace: string; fields: Field[] }) => void;
  const changed = (change: Change): string => {
    const schema = JSON.parse(SCHEMAS.ScoreRequest) as Parameters<Change>[0];
    change(schema);
    return JSON.stringify(schema);
  };
  const field = (schema: Parameters<Change>[0], name: string): Field => {
    const found = schema.fields.find((candidate) => candidate.name === name);
    if (found === undefined) throw new Error(`no field ${name}`);
    return found;
  };

  it.each<[string, Change]>([
    ['a new field without default', (schema) => schema.fields.push({ name: 'extra', type: 'int' })],
    ['a field without default removed', (schema) => schema.fields.shift()],
    [
      'a field renamed',
      (schema) => {
        field(schema, 'model').name = 'family';
      },
    ],
    [
      'another type',
      (schema) => {
        field(schema, 'model').type = 'int';
      },
    ],
    [
      'a wider type, which old readers cannot take back',
      (schema) => {
        field(schema, 'priority').type = 'long';
      },
    ],
    [
      'null made possible',
      (schema) => {
        field(schema, 'requestId').type = ['null', 'string'];
      },
    ],
    [
      'another type inside a map',
      (schema) => {
        field(schema, 'hints').type = { type: 'map', values: 'string' };
      },
    ],
    [
      'the record renamed',
      (schema) => {
        schema.name = 'Request';
      },
    ],
    [
      'another namespace',
      (schema) => {
        schema.namespace = 'millrace.v2';
      },
    ],
  ])('refuses %s', (_, change) => {
    expect(incompatibilities(changed(change), [SCHEMAS.ScoreRequest], 'FULL_TRANSITIVE')).not.toEqual([]);
  });

  it.each<[string, Change]>([
    ['nothing changed', () => undefined],
    [
      'a new field with a default',
      (schema) => schema.fields.push({ name: 'extra', type: 'int', default: 0 }),
    ],
    [
      'a field with a default removed',
      (schema) => {
        schema.fields = schema.fields.filter(({ name }) => name !== 'pin');
      },
    ],
    ['another order of fields', (schema) => schema.fields.unshift(...schema.fields.splice(1, 1))],
    [
      'a new symbol of an enum with a default',
      (schema) => {
        field(schema, 'optOut').type = {
          type: 'array',
          items: {
            type: 'enum',
            name: 'OptOut',
            symbols: ['UNKNOWN', 'RMA', 'SBM', 'EXPLORE', 'HEDGE'],
            default: 'UNKNOWN',
          },
        };
      },
    ],
    [
      'another default',
      (schema) => {
        field(schema, 'priority').default = 6;
      },
    ],
    [
      'another doc',
      (schema) => {
        field(schema, 'priority').doc = 'Other words.';
      },
    ],
  ])('accepts %s', (_, change) => {
    expect(incompatibilities(changed(change), [SCHEMAS.ScoreRequest], 'FULL_TRANSITIVE')).toEqual([]);
  });

  it('BACKWARD looks only one way', () => {
    const wider = changed((schema) => {
      field(schema, 'priority').type = 'long';
    });
    expect(incompatibilities(wider, [SCHEMAS.ScoreRequest], 'BACKWARD')).toEqual([]);
    expect(incompatibilities(SCHEMAS.ScoreRequest, [wider], 'BACKWARD')).not.toEqual([]);
  });
});
