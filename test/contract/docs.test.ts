import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DECODE_LIMITS } from '../../src/contracts/limits.ts';
import { OUTCOME_KINDS } from '../../src/contracts/records.ts';
import { TOPICS, topicNames } from '../../src/contracts/topics.ts';

/** The page, whatever a formatter makes of its tables. */
const page = readFileSync(new URL('../../docs/contracts.md', import.meta.url), 'utf8').replaceAll(/ +/g, ' ');
const names = topicNames();

describe('docs/contracts.md', () => {
  it.each(
    (Object.keys(TOPICS) as (keyof typeof TOPICS)[]).map((key) => [names.fixed(key), TOPICS[key].record]),
  )('has a line for %s with its record', (topic, record) => {
    const line = page.split('\n').find((text) => text.startsWith(`| \`${topic}\``));
    expect(line).toContain(`| ${record} |`);
  });

  it.each(OUTCOME_KINDS)('explains %s', (outcome) => {
    expect(page).toContain(`\`${outcome}\``);
  });

  it.each(['EMPTY_VALUE', 'NO_FRAME', 'UNKNOWN_SCHEMA', 'MALFORMED', 'TOO_LARGE'])('explains %s', (code) => {
    expect(page).toContain(`| \`${code}\` |`);
  });

  it('states the limits that are in force', () => {
    const grouped = (count: number): string => String(count).replace(/(?<=\d)(?=\d{3}$)/, ' ');
    expect(page).toContain(`| array items and map entries | ${grouped(DECODE_LIMITS.itemsMax)} `);
    expect(page).toContain(`| items that take no byte | ${grouped(DECODE_LIMITS.zeroByteItemsMax)} |`);
    expect(page).toContain(`| nesting of records, arrays and maps | ${DECODE_LIMITS.depthMax} |`);
    expect(page).toContain(`| ${DECODE_LIMITS.bytesMax / 1024 ** 2} MiB `);
    expect(page).toContain(`allow ${DECODE_LIMITS.envelopeBytesMax / 1024} KiB more`);
  });
});
