import { expect, it } from 'vitest';
import { runFuzzerCommand } from '../fuzz/run-fuzzer.ts';

it.each(['decoders', 'policies', 'control'])(
  'the fuzzer of %s finds nothing in 30 000 inputs',
  async (name) => {
    const summary = await runFuzzerCommand(name, 30_000, 100);
    expect(summary).toMatchObject({ inputs: 30_000, failures: [] });
  },
);
