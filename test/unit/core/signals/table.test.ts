import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SIGNALS, SIGNALS_VERSION } from '../../../../src/core/signals/extract.ts';
import { COST_BUDGET_US_MAX } from '../../../../src/core/signals/signal.ts';

const GUIDE = readFileSync(join(import.meta.dirname, '../../../../docs/signals.md'), 'utf8');

describe('the signal table', () => {
  it('holds signals in the order of their names', () => {
    const names = SIGNALS.map(({ name }) => name);
    expect(names).toEqual([...names].sort());
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(SIGNALS)('$name keeps to the rules for signals', ({ name, version, unit, costBudgetUs, docs }) => {
    expect(name).toMatch(/^[a-z][A-Za-z0-9]*$/);
    expect(Number.isInteger(version) && version >= 1).toBe(true);
    expect(unit).not.toBe('');
    expect(costBudgetUs > 0 && costBudgetUs <= COST_BUDGET_US_MAX).toBe(true);
    expect(docs).toContain('NaN');
  });

  it('is what the guide says of the signals that it lists', () => {
    const rows = GUIDE.matchAll(/^\| `(\w+)` \| (\d+) \| (\w+) \| (\S+) \| (\d+) \|/gm);
    const listed = [...rows].map(([, name, version, type, unit, costBudgetUs]) => ({
      name,
      version: Number(version),
      type,
      unit,
      costBudgetUs: Number(costBudgetUs),
    }));
    expect(listed.length).toBeGreaterThan(0);
    for (const row of listed) expect(SIGNALS).toContainEqual(expect.objectContaining(row));
  });

  it('has a version that fits the record', () => {
    expect(Number.isInteger(SIGNALS_VERSION) && SIGNALS_VERSION >= 0 && SIGNALS_VERSION < 2 ** 31).toBe(true);
  });
});
