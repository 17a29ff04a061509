/**
 * Writes test/contract/golden/<schema>.json for each schema version that has none yet: a value, and the bytes that it must encode to for ever.
 * Run it after a schema gained fields; what is there already is never overwritten.
 *
 *     node test/contract/write-golden.ts
 */
import { createHash } from 'node:crypto';
import { existsSync, writeFileSync } from 'node:fs';
import { parseType } from '../../src/contracts/avro-type.ts';
import { SCHEMAS } from '../../src/contracts/schemas.ts';
import { EXAMPLES } from './examples.ts';
import { definitionOf, RECORD_NAMES } from './fixture.ts';
import { canonical, type Golden, goldenFiles, readGolden, toJson } from './golden.ts';

for (const record of RECORD_NAMES) {
  const { schema } = definitionOf(record);
  const writerSchema = canonical(SCHEMAS[record]);
  if (goldenFiles().some((file) => readGolden(file).writerSchema === writerSchema)) continue;
  const value = EXAMPLES[record];
  const golden: Golden = {
    record,
    value: toJson(value),
    body: parseType(writerSchema).toBuffer(value).toString('hex'),
    writerSchema,
  };
  const first = new URL(`golden/${schema}.json`, import.meta.url);
  const fingerprint = createHash('sha256').update(writerSchema).digest('hex').slice(0, 8);
  const file = existsSync(first) ? new URL(`golden/${schema}-${fingerprint}.json`, import.meta.url) : first;
  writeFileSync(file, `${JSON.stringify(golden, null, 2)}\n`, { flag: 'wx' });
  console.log(`wrote ${file.pathname}`);
}
