import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it('the fuzzer of the decoders finds nothing in a short run', () => {
  const output = execFileSync(
    process.execPath,
    ['test/fuzz/decoders.ts', '--records', '20000', '--seed', '7'],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  expect(output).toMatch(/records 20000, seed 7/);
});
