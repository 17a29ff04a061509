import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { memorySchemaRegistry } from '../../src/adapters/memory/schema-registry.ts';
import { parseType } from '../../src/contracts/avro-type.ts';
import { compileWalker } from '../../src/contracts/bounded.ts';
import { DECODE_LIMITS } from '../../src/contracts/limits.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import { arbitraryRecord } from './arbitraries.ts';
import { EXAMPLES } from './examples.ts';
import { definitionOf, framed, RECORD_NAMES, registeredCodecs } from './fixture.ts';
import { canonical, fromJson, goldenFiles, readGolden } from './golden.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('golden bytes', () => {
  it.each(goldenFiles())('%s', async (file) => {
    const golden = readGolden(file);
    const value = fromJson(golden.value);
    const registry = memorySchemaRegistry();
    const writerId = await registry.register('golden-value', golden.writerSchema, 'FULL_TRANSITIVE');
    const codecs = await registeredCodecs({ registry });
    await codecs.learn({ schemaId: writerId });
    const decoded = codecs.for(golden.record).decode(framed(writerId, Buffer.from(golden.body, 'hex')));
    expect(decoded).toMatchObject({ status: 'ok', value });
    if (golden.writerSchema !== canonical(SCHEMAS[golden.record])) return;
    const encoded = codecs.for(golden.record).encode(value as never);
    expect(encoded.subarray(5).toString('hex')).toBe(golden.body);
    expect(decoded).toEqual({ status: 'ok', value });
  });

  it.each(RECORD_NAMES)(
    'the present version of %s has some (node test/contract/write-golden.ts)',
    (record) => {
      const present = canonical(SCHEMAS[record]);
      expect(goldenFiles().map((file) => readGolden(file).writerSchema)).toContain(present);
    },
  );

  it.each(RECORD_NAMES)('the example of %s sets every field to something else than its default', (record) => {
    const { fields } = JSON.parse(SCHEMAS[record]) as { fields: { name: string; default?: unknown }[] };
    const example: Record<string, unknown> = { ...EXAMPLES[record] };
    const left = fields.filter(
      ({ name, default: value }) => JSON.stringify(example[name]) === JSON.stringify(value),
    );
    expect(left.map(({ name }) => name)).toEqual([]);
  });
});

describe('generated types', () => {
  it('are what the schemas say (node schemas/generate.ts)', () => {
    const check = (): string =>
      execFileSync(process.execPath, ['schemas/generate.ts', '--check'], {
        cwd: ROOT,
        encoding: 'utf8',
        stdio: 'pipe',
      });
    expect(check).not.toThrow();
  });
});

describe.each(RECORD_NAMES)('%s', (record) => {
  const type = parseType(SCHEMAS[record]);
  const walk = compileWalker(type, DECODE_LIMITS);

  it('decodes to what was encoded', async () => {
    const codec = (await registeredCodecs()).for(record);
    fc.assert(
      fc.property(arbitraryRecord(record), (value) => {
        expect(codec.decode(codec.encode(value as never))).toEqual({ status: 'ok', value });
      }),
      { numRuns: 200 },
    );
  });

  it('is walked to its end, exactly, wherever it can be decoded', () => {
    fc.assert(
      fc.property(arbitraryRecord(record), fc.nat({ max: 7 }), (value, start) => {
        const body = type.toBuffer(value);
        const bytes = Buffer.concat([Buffer.alloc(start, 0xff), body]);
        const { refusal, end } = walk(bytes, start);
        expect({ refusal, end }).toEqual({ refusal: undefined, end: bytes.length });
      }),
      { numRuns: 200 },
    );
  });

  it('is refused with a byte more, and with any number of bytes less', () => {
    fc.assert(
      fc.property(arbitraryRecord(record), fc.nat(), (value, cut) => {
        const body = type.toBuffer(value);
        expect(walk(Buffer.concat([body, Buffer.alloc(1)]), 0).refusal?.code).toBe('MALFORMED');
        expect(walk(body.subarray(0, cut % body.length), 0).refusal?.code).toBe('MALFORMED');
      }),
      { numRuns: 200 },
    );
  });

  it('never crashes on changed bytes, whose reading costs no more than they are long', async () => {
    const codec = (await registeredCodecs()).for(record);
    const mutation = fc.record({
      at: fc.nat(),
      byte: fc.nat({ max: 255 }),
      remove: fc.nat({ max: 3 }),
      insert: fc.uint8Array({ maxLength: 4 }),
    });
    fc.assert(
      fc.property(
        arbitraryRecord(record),
        fc.array(mutation, { minLength: 1, maxLength: 4 }),
        (value, mutations) => {
          let bytes = codec.encode(value as never);
          for (const { at, byte, remove, insert } of mutations) {
            const place = 5 + (at % Math.max(1, bytes.length - 5));
            bytes = Buffer.concat([
              bytes.subarray(0, place),
              Buffer.of(byte),
              insert,
              bytes.subarray(place + remove),
            ]);
          }
          const { steps, items, end } = walk(bytes, 5);
          expect(steps).toBeLessThanOrEqual(4 * bytes.length + 64);
          expect(items).toBeLessThanOrEqual(bytes.length);
          expect(end).toBeLessThanOrEqual(bytes.length + 1);
          expect(['ok', 'unreadable']).toContain(codec.decode(bytes).status);
          expect(({} as Record<string, unknown>).polluted).toBeUndefined();
        },
      ),
      { numRuns: 300 },
    );
  });

  it('is named by the topic that carries it', () => {
    expect(definitionOf(record).schema).toMatch(/^[a-z-]+\.v1$/);
  });
});
