import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../src/core/errors.ts';
import {
  checked,
  closedObject,
  finite,
  mapping,
  problemsIn,
  recordOf,
  timeWithZone,
  whole,
} from '../../../src/core/json-values.ts';

const numbers = recordOf(v.string(), finite);
const point = closedObject({ x: finite, y: v.optional(finite, 0) });
const anything = closedObject({ note: v.optional(v.string()) });

/** Every problem of what a text of JSON holds. */
function problems(schema: v.GenericSchema<unknown, unknown>, json: string): string {
  const parsed = v.safeParse(schema, JSON.parse(json));
  return parsed.success ? '' : problemsIn(parsed.issues);
}

describe('values of JSON', () => {
  it.each<[string, v.GenericSchema<unknown, unknown>, string, unknown]>([
    ['a number', finite, '-1.5e-3', -0.0015],
    ['the largest whole number', whole, '9007199254740991', 9007199254740991],
    ['an object', mapping, '{"a": [1]}', { a: [1] }],
    ['what is left out', point, '{"x": 1}', { x: 1, y: 0 }],
    ['numbers by name', numbers, '{"toString": 1, "b": 2}', { toString: 1, b: 2 }],
    ['a leap day', timeWithZone, '"2028-02-29T23:59:59.25+05:30"', '2028-02-29T23:59:59.25+05:30'],
  ])('%s is taken', (_, schema, json, value) => {
    expect(v.parse(schema, JSON.parse(json))).toEqual(value);
  });

  it.each<[string, v.GenericSchema<unknown, unknown>, string, RegExp]>([
    ['a number beyond all', finite, '1e999', /^must be a finite number, not Infinity$/],
    [
      'a whole number that may have lost digits',
      whole,
      '9007199254740992',
      /^must be a whole number .*, not 9007199254740992$/,
    ],
    ['a fraction', whole, '1.5', /^must be a whole number/],
    ['a list for an object', mapping, '[]', /^must be an object with named fields, not Array$/],
    ['null for an object', mapping, 'null', /^must be an object with named fields, not null$/],
    ['a list for an object of which all may be left out', anything, '[]', /^must be an object/],
    ['a list for a record', numbers, '[1]', /^must be an object with named fields, not Array$/],
    ['another value in a record', numbers, '{"a": "x"}', /^a: .*number but received "x"$/],
    ['a name that no record has', numbers, '{"constructor": 1}', /^must have none of.*constructor/],
    ['another, that is the prototype', numbers, '{"__proto__": 1}', /^must have none of.*__proto__/],
    ['all unknown keys', point, '{"x": 1, "a": 2, "y": 3, "b": 4}', /^unknown key a, b; allowed: x, y$/],
    [
      'an unknown key that all have',
      point,
      '{"x": 1, "__proto__": 2}',
      /^unknown key __proto__; allowed: x, y$/,
    ],
    ['a missing key', point, '{"y": 1}', /^x: it is missing, expected number$/],
    ['a missing object', closedObject({ inner: anything }), '{}', /^inner: it is missing$/],
    ['a day that is not', timeWithZone, '"2026-02-30T00:00:00Z"', /^must be a time with its zone/],
    ['a leap day of another year', timeWithZone, '"2027-02-29T00:00:00Z"', /^must be a time with its zone/],
    ['a time without its zone', timeWithZone, '"2026-02-28T00:00:00"', /^must be a time with its zone/],
    ['a time without its seconds', timeWithZone, '"2026-02-28T00:00Z"', /^must be a time with its zone/],
  ])('%s is refused', (_, schema, json, message) => {
    expect(problems(schema, json)).toMatch(message);
  });

  it('are refused by their path, each in one line', () => {
    const schema = v.object({ points: v.array(point) });
    expect(problems(schema, '{"points": [{"x": 1, "z": 2}, {"x": "1", "y": []}]}')).toBe(
      'points[0]: unknown key z; allowed: x, y; ' +
        'points[1].x: Invalid type: Expected number but received "1"; ' +
        'points[1].y: Invalid type: Expected number but received Array',
    );
  });

  it('are shortened and escaped in messages', () => {
    const text = `\u001b[31m${'a'.repeat(1_000)}`;
    const said = problems(finite, JSON.stringify(text));
    expect(said).toMatch(/^Invalid type: Expected number but received "\\u001b\[31ma+…$/);
    expect(said.length).toBeLessThan(200);
  });

  it('are named where they are refused', () => {
    expect(checked('the file', point, { x: 1 })).toEqual({ x: 1, y: 0 });
    expect(() => checked('the file', point, { x: null })).toThrow(
      new MillraceError('MALFORMED', 'the file: x: Invalid type: Expected number but received null'),
    );
  });
});
