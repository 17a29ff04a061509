import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFirstResultFilter } from '../../../../src/core/outcome/first-result-filter.ts';

describe('createFirstResultFilter', () => {
  it('passes the first of an identity and no other', () => {
    const isFirst = createFirstResultFilter({ identitiesMax: 100 });
    expect(['a', 'b', 'a', 'a', 'c', 'b'].map(isFirst)).toEqual([true, true, false, false, true, false]);
  });

  it('forgets an identity after as many others as it may remember', () => {
    const isFirst = createFirstResultFilter({ identitiesMax: 10 });
    isFirst('a');
    for (let i = 0; i < 10; i++) isFirst(`other-${i}`);
    expect(isFirst('a')).toBe(true);
  });

  it('remembers an identity again from its last duplicate on', () => {
    const isFirst = createFirstResultFilter({ identitiesMax: 10 });
    isFirst('a');
    for (let i = 0; i < 100; i++) {
      if (i % 4 === 0) expect(isFirst('a')).toBe(false);
      isFirst(`other-${i}`);
    }
  });

  it('is right about every identity that came within half of what it may remember', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 20 }), fc.array(fc.nat({ max: 30 })), (identitiesMax, stream) => {
        const isFirst = createFirstResultFilter({ identitiesMax });
        stream.forEach((identity, i) => {
          const passed = isFirst(`${identity}`);
          const before = stream.slice(0, i);
          if (!before.includes(identity)) expect(passed).toBe(true);
          const since = new Set(before.slice(before.lastIndexOf(identity) + 1));
          if (before.includes(identity) && since.size < Math.floor(identitiesMax / 2))
            expect(passed).toBe(false);
        });
      }),
      { numRuns: 300 },
    );
  });
});
