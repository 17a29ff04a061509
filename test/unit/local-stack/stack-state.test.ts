import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readStackState, removeStackState, writeStackState } from '../../../src/cli/stack-state.ts';
import { temporaryFolder } from './temporary-folder.ts';

const names = fc.string({ minLength: 1 });
const launches = fc.record(
  { command: names, arguments: fc.array(fc.string()), workingDirectory: names, logFile: names },
  { noNullPrototype: true },
);
const states = fc.record(
  {
    environment: fc.dictionary(
      names.filter((name) => name !== '__proto__'),
      fc.string(),
      { noNullPrototype: true },
    ),
    processes: fc.array(
      fc.record(
        { name: names, pid: fc.integer({ min: 1, max: 4_194_304 }), commandLine: names, launch: launches },
        { requiredKeys: ['name', 'pid', 'commandLine'], noNullPrototype: true },
      ),
      { maxLength: 5 },
    ),
    dir: fc.string(),
    project: fc.string(),
  },
  { requiredKeys: ['environment', 'processes'], noNullPrototype: true },
);

describe('the state of a stack', () => {
  it('is read as it was written, and leaves no other file', async () => {
    const file = join(await temporaryFolder(), 'run/stack.json');
    await fc.assert(
      fc.asyncProperty(states, async (state) => {
        await writeStackState(file, state);
        expect(await readStackState(file)).toEqual(state);
        expect(await readdir(dirname(file))).toEqual(['stack.json']);
      }),
      { numRuns: 50 },
    );
    await removeStackState(file);
    expect(await readStackState(file)).toBeUndefined();
  });

  it('stays as it was where it cannot be written, and leaves no other file', async () => {
    const file = join(await temporaryFolder(), 'run/stack.json');
    await mkdir(file, { recursive: true });
    await expect(writeStackState(file, { environment: {}, processes: [] })).rejects.toThrow(
      /what is up cannot be noted: it is a folder .*stack\.json/,
    );
    expect(await readdir(dirname(file))).toEqual(['stack.json']);
  });

  it('is none for any other text', async () => {
    const file = join(await temporaryFolder(), 'run/stack.json');
    await mkdir(dirname(file));
    const other = fc.oneof(fc.string(), fc.json(), fc.constant('{"environment":{},"processes":[{"pid":1}]}'));
    await fc.assert(
      fc.asyncProperty(other, async (text) => {
        await writeFile(file, text);
        expect(await readStackState(file)).toBeUndefined();
      }),
      { numRuns: 50 },
    );
  });
});
