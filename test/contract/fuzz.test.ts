import { expect, it } from 'vitest';
import { runFuzzerCommand } from '../fuzz/run-fuzzer.ts';

/** Each fuzzer with what a run of it must have come by: an input that gets nowhere finds nothing. */
it.each([
  [
    'decoders',
    6_000,
    ['ok', 'read by the compiled reader', 'left to avsc', 'MALFORMED', 'TOO_LARGE', 'NO_FRAME'],
  ],
  ['policies', 1_500, ['accepted', 'refused by validation', 'refused by the parser', 'no document', 'child']],
  [
    'control',
    2_500,
    [
      'policy-published',
      'policy-tuned',
      'rollout-started',
      'rollout-advanced',
      'key-revoked',
      'command-refused',
      'leaders',
      'unreadable',
    ],
  ],
])('the fuzzer of %s finds nothing in a short run', async (name, inputs, outcomes) => {
  const summary = await runFuzzerCommand(name, inputs, 2);
  expect(summary).toMatchObject({ inputs, failures: [] });
  expect(summary.pastOuterLayer).toBeGreaterThan(inputs / 2);
  expect(Object.keys(summary.outcomes)).toEqual(expect.arrayContaining(outcomes));
});
