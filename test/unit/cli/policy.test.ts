import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { millrace } from './cli.fixture.ts';
import { temporaryFolder } from './temporary-folder.ts';

const STARTER = 'examples/policies/starter.yaml';

/** The starter policy with a change. */
function changed(from: string | RegExp, to: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-policy-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'policy.yaml');
  const text = readFileSync(STARTER, 'utf8');
  const after = text.replace(from, to);
  expect(after).not.toBe(text);
  writeFileSync(file, after);
  return file;
}

describe('millrace policy validate', () => {
  it('finds the starter policy valid', async () => {
    const { out, exitCode } = await millrace(['policy', 'validate', STARTER]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /starter\.yaml: valid: starter@1, 8 leaves, 12 golden tests passed, on the fleet embedded: 0 errors, 0 warnings\nsha256:[0-9a-f]{64}\n/,
    );
  });

  it('says where a policy is wrong, what it has and what is allowed', async () => {
    const file = changed('kernel: sparse, memory: l2', 'kernel: sparce, memory: l2');
    const { out, exitCode } = await millrace(['policy', 'validate', file]);
    expect(exitCode).toBe(2);
    expect(out).toMatch(
      /error: tree\[0\]\.to\.kernel, line \d+, column \d+: .*"sparce".*dense, sparse.*Did you mean "sparse"/,
    );
    expect(out).toContain('not valid on the fleet embedded: 1 error,');
  });

  it('says it for a document that does not parse', async () => {
    const file = changed('when: nonZeroShare < 0.05', 'when: nonZeroShare <');
    const { out, exitCode } = await millrace(['policy', 'validate', file]);
    expect(exitCode).toBe(2);
    expect(out).toMatch(/error: tree\[0\]\.when, line \d+/);
  });

  it('says what is wrong with the targets of one that does not parse, in the order of the document', async () => {
    const file = changed('when: nonZeroShare < 0.05', 'when: nonZeroShare <');
    const text = readFileSync(file, 'utf8').replace(
      'kernel: attention, memory: hbm',
      'kernel: atention, memory: hbm',
    );
    writeFileSync(file, text);
    const { out: both, exitCode } = await millrace(['policy', 'validate', file]);
    expect(exitCode).toBe(2);
    expect(both).toMatch(
      /^error: tree\[0\]\.when, .*\nerror: tree\[2\]\.to\.kernel, .*"atention".*Did you mean "attention"/,
    );
    expect(both).toContain('not valid on the fleet embedded: 2 errors, 1 warning');
  });

  it('lists targets and signals beside what is wrong with the structure', async () => {
    const policy = `apiVersion: millrace/v1
kind: RoutingPolicy
name: 7
signals: {sparsityRatioo: double, zeros: double}
tree:
  - id: sparse
    when: sparsityRatioo >
    to: {accelerator: gpu-x100, memory: l2}
  - id: rest
    to: {accelerator: cpu, kernel: dens}
`;
    const file = temporaryFolder().write('p.yaml', policy);
    const { out } = await millrace(['policy', 'validate', file]);
    for (const told of [
      /^error: .*the field `version` is missing/m,
      /^error: name, line 3/m,
      /^warning: signals\.sparsityRatioo, .*Did you mean "sparsityRatio"\?/m,
      /^error: tree\[0\]\.when, /m,
      /^error: tree\[0\]\.to.*the field `kernel` is missing/m,
      /^error: tree\[0\]\.to\.accelerator, .*"gpu-x100"; allowed: /m,
      /^error: tree\[1\]\.to\.kernel, .*"dens".*Did you mean "dense"/m,
    ])
      expect(out).toMatch(told);
    expect(out).toContain('6 errors, 1 warning');
  });

  it.each([
    [
      'warns of a text that no request carries',
      'plan',
      /^warning: signals\.plan.*"plan".*limits\.contextKeys/m,
    ],
    ['takes the region of requests for a text', 'region', /0 errors, 1 warning/],
  ])('%s', async (_what, text, told) => {
    const file = changed('\nsignals:\n', `\nsignals:\n  ${text}: string\n`);
    const { out, exitCode } = await millrace(['policy', 'validate', file]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(told);
  });

  it('runs the golden tests beside what is wrong elsewhere', async () => {
    const kernel = changed('kernel: sparse, memory: l2', 'kernel: sparce, memory: l2');
    writeFileSync(kernel, readFileSync(kernel, 'utf8').replace(/leaf: few-non-zeros/, 'leaf: mostly-zeros'));
    const { out } = await millrace(['policy', 'validate', kernel]);
    expect(out).toMatch(
      /error: tree\[0\]\.to\.kernel, .*\n(warning: .*\n)*error: tests\[0\], line \d+.*a golden test fails/,
    );
    const rollout = changed('rollout: {shadow: 15m', 'rollout: {shadow: soon');
    writeFileSync(
      rollout,
      readFileSync(rollout, 'utf8').replace(/leaf: few-non-zeros/, 'leaf: mostly-zeros'),
    );
    const both = (await millrace(['policy', 'validate', rollout])).out;
    expect(both).toContain('error: rollout.shadow, line ');
    expect(both).toMatch(/error: tests\[\d+\], .*a golden test fails/);
  });

  it('leaves the tests out that cannot be read, and claims nothing of their leaves', async () => {
    const { out } = await millrace(['policy', 'validate', changed(/leaf: few-non-zeros/, 'leaf: few')]);
    expect(out).toContain('not valid on the fleet embedded: 1 error, 0 warnings');
  });

  it('says that no Prometheus was asked the queries, and what it would not parse of them', async () => {
    const queries = [
      '{name: ctr, query: "sum(rate(clicks[5m])) / sum(rate(views[5m]))", min: 0.01}',
      '{name: errors, query: "sum(rate(errors[5m]", max: 1}',
    ];
    const guardrails = `guardrails: {queries: [${queries.join(', ')}]}`;
    const file = changed('unit: bucketKey}', `unit: bucketKey, ${guardrails}}`);
    const { out, exitCode } = await millrace(['policy', 'validate', file]);
    expect(exitCode).toBe(0);
    expect(out).toMatch(
      /^warning: rollout\.guardrails\.queries\[1\]\.query, line \d+, column \d+: Prometheus would refuse the query errors: a bracket that is not closed by \), at character 9 /m,
    );
    expect(out).toMatch(
      /^warning: rollout\.guardrails\.queries, line \d+.*: the syntax of these queries was looked at, and nothing else: .*\(got "ctr, errors"\)\. Ask your Prometheus/m,
    );
    expect(out).toContain('0 errors, 2 warnings');
  });

  it('names a fleet that the environment or a flag chose', async () => {
    const fleet = 'examples/fleets/one-pool.yaml';
    const left = await millrace(['policy', 'validate', STARTER], { environment: { MILLRACE_FLEET: fleet } });
    expect(left.out).toContain(`not valid on the fleet one-pool (${fleet}, from MILLRACE_FLEET): `);
    const flagged = await millrace(['policy', 'validate', STARTER, '--fleet', fleet, '--json']);
    expect(JSON.parse(flagged.out)).toMatchObject({ fleet: 'one-pool', fleetFrom: '--fleet' });
    const explained = await millrace(
      ['policy', 'explain', 'examples/policies/one-pool.yaml', '--signals', '{}'],
      { environment: { MILLRACE_FLEET: fleet } },
    );
    expect(explained.out).toContain(`of the fleet one-pool (${fleet}, from MILLRACE_FLEET)`);
  });

  it('tells which variable names a fleet that cannot be read', async () => {
    const environment = { MILLRACE_FLEET: '/no/such-fleet.yaml' };
    for (const args of [
      ['validate', STARTER],
      ['explain', STARTER, '--signals', '{}'],
      ['diff', STARTER, STARTER],
    ]) {
      const { err, exitCode } = await millrace(['policy', ...args], { environment });
      expect(exitCode).toBe(2);
      expect(err).toMatch(
        /the fleet \/no\/such-fleet\.yaml, from MILLRACE_FLEET: .*none of this name.*Correct MILLRACE_FLEET, or name a fleet with --fleet/,
      );
    }
  });

  it('lets warnings pass', async () => {
    const file = changed(/ {2}- \{signals: \{\}, leaf: rest\}.*\n/, '');
    const without = changed(/tests:[\s\S]*?\n\n/, '\n');
    for (const each of [file, without])
      expect((await millrace(['policy', 'validate', each])).exitCode).toBe(0);
    expect((await millrace(['policy', 'validate', without])).out).toMatch(/^warning: tests/m);
  });

  it('checks against another fleet', async () => {
    const args = ['policy', 'validate', STARTER, '--fleet', 'examples/fleets/one-pool.yaml', '--json'];
    const { out, exitCode } = await millrace(args);
    expect(exitCode).toBe(2);
    const report = JSON.parse(out);
    expect(report).toMatchObject({ valid: false, name: 'starter', version: 1, fleet: 'one-pool' });
    expect(report.problems).toContainEqual(
      expect.objectContaining({ severity: 'error', path: 'tree[0].to.accelerator', value: 'gpu-a100' }),
    );
  });

  it('refuses a file that is not there', async () => {
    const { err, exitCode } = await millrace(['policy', 'validate', '/no/such.yaml']);
    expect(exitCode).toBe(2);
    expect(err).toContain('there is none of this name');
  });
});

describe('millrace policy explain', () => {
  const explain = (...args: readonly string[]) => millrace(['policy', 'explain', STARTER, ...args]);

  it('shows each step for given signals, and what is missing', async () => {
    const { out, exitCode } = await explain('--signals', '{"sparsityRatio": 0.8, "predictedCostMs": 0.2}');
    expect(exitCode).toBe(0);
    expect(out).toContain('few-non-zeros: nonZeroShare < 0.05 → unknown (nonZeroShare = missing)');
    expect(out).toMatch(/mostly-zeros: .*→ true \(sparsityRatio = 0\.8, predictedCostMs = 0\.2\)/);
    expect(out).toMatch(
      /\nleaf: mostly-zeros\ntarget: \S+, kernel sparse, memory \S+; pools \S.* of the fleet embedded; else \S+/,
    );
  });

  it('reads the signals off a request file', async () => {
    const { out, exitCode } = await explain('--request', 'examples/requests/ranker.json', '--json');
    expect(exitCode).toBe(0);
    const explained = JSON.parse(out);
    expect(explained).toMatchObject({
      policy: { name: 'starter', version: 1 },
      leaf: 'older-device',
      target: { kernel: 'dense' },
      pools: [expect.any(String)],
      fallback: expect.arrayContaining([expect.any(String)]),
      signals: { candidateCount: 8, sequenceLength: 4, conversionWeight: 2, surface: 'feed' },
    });
    expect(explained.steps.at(-1)).toMatchObject({ node: 'older-device', when: null });
  });

  it('takes texts for conditions on them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-policy-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'p.yaml');
    writeFileSync(
      file,
      `apiVersion: millrace/v1
kind: RoutingPolicy
name: by-surface
version: 1
signals: {surface: string}
tree:
  - {id: feed, when: 'surface == "feed"', to: {accelerator: cpu, kernel: dense}}
  - {id: rest, to: {accelerator: cpu, kernel: sparse}}
`,
    );
    const { out } = await millrace(['policy', 'explain', file, '--context', '{"surface": "feed"}']);
    expect(out).toContain('leaf: feed');
  });

  it.each([
    [[], '--request <file>'],
    [['--signals', '{"sparsityRato": 1}'], 'Did you mean "sparsityRatio"?'],
    [['--signals', '{'], '--signals is not JSON'],
    [['--signals', '{"sparsityRatio": "1"}'], '--signals is not valid at sparsityRatio'],
    [['--signals', '{"sparsityRatio": "1"}'], 'Write it without quotes'],
    [['--signals', '{"region": "eu"}'], `Texts go to --context: --context '{"region":"eu"}'`],
    [['--signals', '[1]'], 'allowed: a JSON object of numbers'],
    [['--signals', 'null'], 'allowed: a JSON object of numbers'],
    [['--context', '{"surface": 1}'], '--context is not valid at surface'],
    [['--context', '{"surface": 1}'], `go to --signals: --signals '{"surface":1}'`],
    [['--signals', '{}', '--request', 'examples/requests/ranker.json'], 'either --request, or --signals'],
    [['--request', '/no/such.json'], 'there is none of this name'],
  ])('%j is refused', async (args, message) => {
    const { out, err, exitCode } = await explain(...args);
    expect(exitCode).toBe(2);
    expect(out).toBe('');
    expect(err).toContain(message);
  });

  it('refuses a request as the pipeline would', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-policy-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'r.json');
    writeFileSync(file, '{"model": "rankr"}');
    const { err, exitCode } = await explain('--request', file);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/no such model.*Did you mean "ranker"/);
  });
});
