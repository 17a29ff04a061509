import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { millrace } from './cli.fixture.ts';

const page = (name: string): string => readFileSync(`docs/${name}`, 'utf8');

const PAGES = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.md'),
);

/** What a page shows below a command, without its indentation. */
function shown(name: string, command: string): string[] {
  const lines = page(name).split('\n');
  const start = lines.findIndex((line) => line.replace(/^ {4}(\$ )?(npx )?/, '') === command);
  expect(start, `${command} in ${name}`).toBeGreaterThanOrEqual(0);
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => line.startsWith('    $ ') || /^\S/.test(line));
  return rest
    .slice(0, end < 0 ? undefined : end)
    .map((line) => line.slice(4).trimEnd())
    .filter((line) => line !== '');
}

function argsOf(command: string): string[] {
  return [...command.replace(/^millrace /, '').matchAll(/'([^']*)'|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? plain ?? '',
  );
}

describe('what the docs show', () => {
  it.each([
    ['cli.md', 'millrace policy validate examples/policies/starter.yaml'],
    [
      'cli.md',
      `millrace policy explain examples/policies/starter.yaml --signals '{"sparsityRatio": 0.8, "predictedCostMs": 0.2}'`,
    ],
    ['cli.md', 'millrace model digest models/repository/ranker/2'],
    [
      'quick-start.md',
      'millrace policy explain examples/policies/starter.yaml --request examples/requests/ranker.json',
    ],
  ])('%s: %s prints it', async (name, command) => {
    const { out } = await millrace(argsOf(command));
    const printed = out.split('\n').filter((line) => line !== '');
    expect(printed).toEqual(shown(name, command));
  });

  it.each([
    ['cli.md', 'millrace score examples/requests/ranker.json --top 3'],
    ['quick-start.md', 'millrace score examples/requests/ranker.json'],
  ])('%s: %s ranks so', async (name, command) => {
    const { out } = await millrace(argsOf(command));
    const ranked = shown(name, command).filter((line) => /^ +\d+ +\d{4} /.test(line));
    expect(ranked.length).toBeGreaterThanOrEqual(3);
    for (const line of ranked) expect(out).toContain(line);
  });

  it.each(PAGES)('%s has the digest of the example policies', (name) => {
    for (const policy of ['starter', 'one-pool']) {
      const digest = createHash('sha256')
        .update(readFileSync(`examples/policies/${policy}.yaml`))
        .digest('hex');
      for (const [, start = ''] of page(name).matchAll(new RegExp(`${policy}@1 sha256:([0-9a-f]+)`, 'g')))
        expect(digest.slice(0, start.length)).toBe(start);
    }
  });

  it('names the policy wherever a page says to go back to the version before', () => {
    let told = 0;
    for (const name of PAGES)
      for (const [command] of page(name).matchAll(
        /(?<=`|^ {4}\$ )(millrace )?policy rollout rollback\b[^`\n]*/gm,
      )) {
        told += 1;
        expect(command, name).toMatch(/rollback (<name>|[a-z])/);
      }
    expect(told).toBeGreaterThan(4);
  });

  it('policy-language.md names the fleet that a policy is checked against where nothing else is said', async () => {
    const [, file = ''] = /by default `(examples\/fleets\/\S+)`/.exec(page('policy-language.md')) ?? [];
    const { out } = await millrace(['policy', 'validate', 'examples/policies/starter.yaml']);
    const fleet = /^name: (\S+)$/m.exec(readFileSync(file, 'utf8'))?.[1];
    expect(out).toContain(`on the fleet ${fleet}:`);
  });

  it('asks for the reason wherever a page says to end or hold a rollout', () => {
    for (const name of PAGES)
      for (const [command] of page(name).matchAll(
        /(?<=`|^ {4}\$ millrace )[^`\n]*policy rollout (abort|hold)\b[^`\n]*/gm,
      ))
        expect(command, name).toMatch(/--reason/);
  });

  it('says npx before the first command that leaves it out', () => {
    for (const name of ['cli.md', 'rollouts.md', 'models.md', 'quick-start.md']) {
      const before = page(name).split(/^ {4}.*(?<!npx )\bmillrace [a-z]/m)[0] ?? '';
      expect(before, name).toMatch(/npx millrace/);
    }
    const typed = page('quick-start.md').match(/^ {4}(\$ |[A-Z_]+=|millrace).*millrace .*/gm) ?? [];
    expect(typed.length).toBeGreaterThan(5);
    for (const line of typed) expect(line).toContain('npx millrace');
  });
});
