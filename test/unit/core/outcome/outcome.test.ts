import { describe, expect, it } from 'vitest';
import { OUTCOME_KINDS as SYMBOLS_OF_SCHEMA } from '../../../../src/contracts/records.ts';
import { OUTCOME_KINDS, outcomeKind, outcomeSymbol } from '../../../../src/core/outcome/outcome.ts';

describe('outcomes', () => {
  it('go to their symbol and back', () => {
    expect(OUTCOME_KINDS.map(outcomeSymbol)).toEqual([
      'SCORED',
      'DEGRADED',
      'EXPIRED',
      'REJECTED',
      'DEAD_LETTERED',
    ]);
    expect(OUTCOME_KINDS.map((kind) => outcomeKind(outcomeSymbol(kind)))).toEqual(OUTCOME_KINDS);
  });

  it('are all the symbols of the schema but UNKNOWN', () => {
    expect(SYMBOLS_OF_SCHEMA).toEqual(['UNKNOWN', ...OUTCOME_KINDS.map(outcomeSymbol)]);
  });

  it.each(['UNKNOWN', 'scored', '', 'constructor'])('do not include %j', (symbol) => {
    expect(outcomeKind(symbol)).toBeUndefined();
  });
});
