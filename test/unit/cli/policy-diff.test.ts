import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const STARTER = 'examples/policies/starter.yaml';

const CORPUS = [
  { signals: { sparsityRatio: 0.8, predictedCostMs: 0.2 } },
  { signals: { sparsityRatio: 0.6, predictedCostMs: 0.2 } },
  { signals: { sparsityRatio: 0.6, predictedCostMs: 0.2 }, context: { surface: 'feed' } },
  { signals: { sparsityRatio: 0.1, predictedCostMs: 5, nonZeroShare: null } },
];

/** The starter with a lower floor for the sparse branch, and a corpus of four requests, of which two change. */
function files(change: (policy: string) => string = (policy) => policy) {
  const folder = temporaryFolder();
  const starter = readFileSync(STARTER, 'utf8');
  const lower = starter
    .replace('"sparse-floor", 0.7, ', '"sparse-floor", 0.55, ')
    .replace(/tests:[\s\S]*?\n\n/, '\n');
  expect(lower).not.toBe(starter);
  return {
    after: folder.write('after.yaml', change(lower)),
    corpus: folder.write('corpus.jsonl', `${CORPUS.map((line) => JSON.stringify(line)).join('\n')}\n\n`),
    folder,
  };
}

describe('millrace policy diff', () => {
  it('shows from where to where requests go', async () => {
    const { after, corpus } = files();
    const { out, exitCode } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus]);
    expect(exitCode).toBe(0);
    expect(out).toContain('starter@1 → starter@1, 4 requests of');
    expect(out).toContain('2 of 4 (50.0 %) get another target or variant');
    expect(out).toMatch(/gpu-a100 \(a100\) .*\n/);
    expect(out).toMatch(
      /from leaf +to leaf +from target +to target +requests +share\n\S+ +mostly-zeros +gpu-a100\/dense\/l2 +gpu-v100\/sparse\/l2 +2 +50\.0 %\n\nleaf /,
    );
  });

  it('prints JSON', async () => {
    const { after, corpus } = files();
    const { out } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus, '--json']);
    expect(JSON.parse(out)).toMatchObject({
      before: 'starter@1',
      fleet: 'embedded',
      requests: 4,
      changed: 2,
      changedShare: 0.5,
      changedLeaves: { 'mostly-zeros': 2 },
      pools: { 'gpu-a100': ['a100'] },
      unexpected: [],
    });
  });

  it('shows another kernel, memory or variant, on the accelerator that it was on', async () => {
    const { corpus, folder } = files();
    const starter = readFileSync(STARTER, 'utf8');
    const other = starter
      .replace(/(id: mostly-zeros[\s\S]*?kernel: )sparse/, '$1dense')
      .replace(/tests:[\s\S]*?\n\n/, '\n');
    const after = folder.write('kernel.yaml', other);
    const args = ['policy', 'diff', STARTER, after, '--corpus', corpus];
    const { out } = await millrace(args);
    expect(out).toContain('1 of 4 (25.0 %) get another target or variant\n');
    expect(out).toContain('target of mostly-zeros: gpu-v100/sparse/l2 → gpu-v100/dense/l2\n');
    expect(out).toMatch(
      /from leaf +to leaf +from target +to target +requests +share\nmostly-zeros +mostly-zeros +gpu-v100\/sparse\/l2 +gpu-v100\/dense\/l2 +1 +25\.0 %\n/,
    );
    expect(out).not.toContain('from ↓');
    const target = { accelerator: 'gpu-v100', memory: 'l2', variant: null };
    expect(JSON.parse((await millrace([...args, '--json'])).out)).toMatchObject({
      changedTargets: [
        {
          leaf: { from: 'mostly-zeros', to: 'mostly-zeros' },
          from: { ...target, kernel: 'sparse' },
          to: { ...target, kernel: 'dense' },
          ...{ requests: 1, share: 0.25 },
        },
      ],
    });
  });

  it('names a target that differs where no request of the corpus meets it', async () => {
    const { folder } = files();
    const corpus = folder.write('none.jsonl', '{"signals": {"sparsityRatio": 0.1, "predictedCostMs": 5}}\n');
    const other = readFileSync(STARTER, 'utf8')
      .replace(/(id: mostly-zeros[\s\S]*?kernel: )sparse/, '$1dense')
      .replace(/tests:[\s\S]*?\n\n/, '\n');
    const after = folder.write('kernel.yaml', other);
    const { out } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus]);
    expect(out).toContain('no target changes: all 1 go where they went\n');
    expect(out).toContain('target of mostly-zeros: gpu-v100/sparse/l2 → gpu-v100/dense/l2\n');
  });

  it('says that nothing changes', async () => {
    const { corpus } = files();
    const { out } = await millrace(['policy', 'diff', STARTER, STARTER, '--corpus', corpus]);
    expect(out).toContain('nothing changes: all 4 go where they went');
  });

  it('shows the shares of the leaves by both policies, also where nothing changes', async () => {
    const { after, corpus } = files();
    const { out } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus]);
    expect(out).toMatch(/\nleaf +before +share +after +share\n/);
    expect(out).toMatch(/\nmostly-zeros +1 +25\.0 % +3 +75\.0 %\n/);
    expect(out).toMatch(/\nand \d that no request ends in\n$/);
    const same = await millrace(['policy', 'diff', STARTER, STARTER, '--corpus', corpus]);
    expect(same.out).toMatch(/\nmostly-zeros +1 +25\.0 % +1 +25\.0 %\n/);
    const { leafShares } = JSON.parse(
      (await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus, '--json'])).out,
    );
    expect(leafShares).toContainEqual({ leaf: 'mostly-zeros', before: 1, after: 3 });
  });

  it('shows leaves that took another’s place without changing a target', async () => {
    const { corpus, folder } = files();
    const renamed = folder.write(
      'renamed.yaml',
      readFileSync(STARTER, 'utf8').replaceAll('mostly-zeros', 'sparse'),
    );
    const { out } = await millrace(['policy', 'diff', STARTER, renamed, '--corpus', corpus]);
    expect(out).toContain('no target changes: all 4 go where they went');
    expect(out).toMatch(/from leaf +to leaf +requests +share\nmostly-zeros +sparse +1 +25\.0 %/);
    expect(out).toMatch(/\nmostly-zeros +1 +25\.0 % +– +–\n/);
    expect(out).toMatch(/\nsparse +– +– +1 +25\.0 %\n/);
  });

  it('shows model versions and fallbacks that differ, where no target changes', async () => {
    const { corpus, folder } = files();
    const starter = readFileSync(STARTER, 'utf8');
    const other = starter
      .replace(/^tree:/m, 'models: {ranker: "2", ads: {enhanced: "7"}}\n\ntree:')
      .replace(/fallback: \[cpu\]/, 'fallback: [gpu-a100, cpu]');
    const after = folder.write('models.yaml', other);
    const args = ['policy', 'diff', STARTER, after, '--corpus', corpus];
    const { out } = await millrace(args);
    expect(out).toContain('no target changes: all 4 go where they went\n');
    expect(out).toContain('model of ads enhanced: none named → 7\n');
    expect(out).toContain(
      'model of ranker baseline: none named → 2\nmodel of ranker enhanced: none named → 2\n',
    );
    expect(out).toMatch(/\nfallback of \S+: cpu → gpu-a100, cpu\n/);
    expect(out).toContain('a model version answers every request of its family that names none');
    expect(JSON.parse((await millrace([...args, '--json'])).out).documentChanges).toContainEqual({
      ...{ what: 'model', of: 'ranker baseline', before: null, after: '2' },
    });
  });

  it('compares on the golden tests without a corpus, and says what that is worth', async () => {
    const { after } = files();
    const { out, exitCode } = await millrace(['policy', 'diff', STARTER, after]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /12 requests of the golden tests of both \(no --corpus: these say nothing about shares of real traffic\)/,
    );
    const none = await millrace(['policy', 'diff', after, after]);
    expect(none).toMatchObject({ exitCode: 2, err: expect.stringContaining('allowed: --corpus <file>') });
  });

  it.each([
    ['expect: {changedShare: [0.4, 0.6], leaves: [mostly-zeros]}', 0, /as the policy expects/],
    [
      'expect: {changedShare: [0, 0.1]}',
      1,
      /not as expected: 50\.0 % of requests change, not 0\.0 % … 10\.0 %/,
    ],
    [
      'expect: {leaves: [rest]}',
      1,
      /not as expected: 50\.0 % of requests change to leaf mostly-zeros, which was not declared/,
    ],
  ])('holds the policy to %s', async (expectation, code, message) => {
    const { after, corpus } = files((policy) => `${policy}\n${expectation}\n`);
    const { out, exitCode } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus]);
    expect(exitCode).toBe(code);
    expect(out).toMatch(message);
  });

  it('compares policies that read different signals', async () => {
    const { after, corpus } = files((policy) =>
      policy.replace(/ +biasMax: .*\n/, '').replace(/ {2}- id: large-bias\n[\s\S]*?\n\n/, '\n'),
    );
    const { out, exitCode, err } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus]);
    expect({ err, exitCode }).toEqual({ err: '', exitCode: 0 });
    expect(out).toContain('2 of 4');
  });

  it.each([
    ['{', /corpus\.jsonl, line 1: it is not JSON/],
    ['{"signals": {}}\n[]', /line 2: it is no request .*one JSON object per line/],
    ['{"signals": {"a": [1]}}', /line 1: signals\.a is not allowed/],
    ['', /holds no request/],
    [
      '{"signals": {"sparsityRato": 1}}',
      /no request has a signal that the policies declare \(got "sparsityRato"; .*Did you mean "sparsityRatio"/,
    ],
  ])('refuses the corpus %j', async (text, message) => {
    const { after, folder } = files();
    const corpus = folder.write('corpus.jsonl', text);
    const { err, exitCode } = await millrace(['policy', 'diff', STARTER, after, '--corpus', corpus]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
  });

  it('names the policy that is not valid', async () => {
    const { folder } = files();
    const bad = folder.write('bad.yaml', 'kind: x');
    const { err, exitCode } = await millrace(['policy', 'diff', STARTER, bad]);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/bad\.yaml: .*millrace policy validate/);
  });
});
