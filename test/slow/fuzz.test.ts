import { expect, it } from 'vitest';
import { runFuzzerCommand } from '../fuzz/run-fuzzer.ts';

it.each(['decoders', 'policies', 'control'])(
  'the fuzzer of %s finds nothing in 100 000 inputs',
  async (name) => {
    const summary = await runFuzzerCommand(name, 100_000, 100);
    expect(summary).toMatchObject({ inputs: 100_000, failures: [] });
  },
);
