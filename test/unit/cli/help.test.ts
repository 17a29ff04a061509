import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { processContext } from '../../../src/cli/context.ts';
import { program } from '../../../src/cli/program.ts';
import { DEAD_LETTER_RETENTION_MS, TOPICS } from '../../../src/contracts/topics.ts';
import { millrace } from './cli.fixture.ts';

/** Every command that does something, by its words; `profile` does, and has commands of its own. */
function leaves(command: Command, words: readonly string[] = []): string[][] {
  if (command.commands.length === 0) return [[...words]];
  const own = words.length > 0 && command.options.length > 0 ? [[...words]] : [];
  return [...own, ...command.commands.flatMap((child) => leaves(child, [...words, child.name()]))];
}

const commands = leaves(program(processContext()));

describe('the help', () => {
  it('finds every command', () => {
    expect(commands.map((words) => words.join(' ')).sort()).toEqual([
      'capture',
      'config show',
      'control events',
      'control replay',
      'control send',
      'dlq list',
      'dlq replay',
      'items build',
      'model compile',
      'model digest',
      'model history',
      'model init',
      'model publish',
      'model status',
      'policy diff',
      'policy explain',
      'policy history',
      'policy keygen',
      'policy publish',
      'policy rollout abort',
      'policy rollout hold',
      'policy rollout promote',
      'policy rollout rollback',
      'policy rollout start',
      'policy rollout status',
      'policy sign',
      'policy validate',
      'profile',
      'profile refit',
      'replay',
      'results',
      'score',
      'simulate',
      'stack down',
      'stack status',
      'stack up',
      'start',
      'topics apply',
      'up',
    ]);
  });

  it.each(commands.map((words) => [words.join(' '), words] as const))(
    'of %s shows an example, and offers JSON',
    async (name, words) => {
      const { out, err, exitCode } = await millrace([...words, '--help']);
      expect(exitCode).toBe(0);
      expect(err).toBe('');
      expect(out).toContain('--json');
      expect(out).toMatch(/Examples?:\n {2}\S/);
      expect(out).toContain(`millrace ${name}`);
    },
  );

  it('shows defaults as a person writes them', async () => {
    for (const words of commands) {
      const { out } = await millrace([...words, '--help']);
      expect([words.join(' '), out.match(/\(default: [{[].*/g)]).toEqual([words.join(' '), null]);
    }
    expect((await millrace(['items', 'build', '--help'])).out).toContain('(default: mean)');
  });

  it('names no time that records are kept for but what a topic keeps them for', async () => {
    const kept = new Set<number>([
      DEAD_LETTER_RETENTION_MS,
      ...Object.values(TOPICS).map((topic) => topic.retentionMs),
    ]);
    const helps = await Promise.all(
      commands.map(async (words) => (await millrace([...words, '--help'])).out),
    );
    const named = helps.flatMap((out) => [
      ...out.replace(/\s+/g, ' ').matchAll(/\bkept\b[^.;]{0,20}?(\d+) (h|days?)\b/g),
    ]);
    expect(named.map(([words]) => words)).toEqual(['kept (1 h']);
    for (const [, many, unit] of named)
      expect(kept).toContain(Number(many) * (unit === 'h' ? 1 : 24) * 3_600_000);
  });

  it.each([
    ['policy', 'history'],
    ['model', 'history'],
    ['control', 'events'],
  ])('of %s %s says that the log of decisions is kept for ever', async (...words) => {
    expect(TOPICS['control-events'].retentionMs).toBe(Infinity);
    expect((await millrace([...words, '--help'])).out.replace(/\s+/g, ' ')).toContain('kept for ever');
  });

  it('of the whole says where to begin', async () => {
    const { out, exitCode } = await millrace(['--help']);
    expect(exitCode).toBe(0);
    expect(out).toContain('millrace score examples/requests/ranker.json');
  });

  it.each([
    [['frobnicate', '--help'], /unknown command 'frobnicate'\nCommands of millrace: start, score, /],
    [['--help', 'frobnicate'], /unknown command 'frobnicate'/],
    [['scor', '-h'], /Did you mean "score"\?/],
    [['policy', 'frobnicate', '--help'], /Commands of millrace policy: validate, explain, /],
    [['policy', 'rollout', 'promot', '--help'], /Did you mean "promote"\?/],
    [['help', 'frobnicate'], /Usage: millrace/],
  ])('%j is refused with what there is', async (args, message) => {
    const { out, err, exitCode } = await millrace(args);
    expect(exitCode).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(message);
  });

  it('of a command is shown whatever its arguments are called', async () => {
    expect(await millrace(['score', 'frobnicate', '--help'])).toMatchObject({ exitCode: 0 });
    expect(await millrace(['policy', 'rollout', 'hold', 'x', '--help'])).toMatchObject({ exitCode: 0 });
  });

  it('tells the version', async () => {
    expect(await millrace(['--version'])).toMatchObject({
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      exitCode: 0,
    });
  });
});

describe('flags', () => {
  it.each([
    [['start', '--rate', 'abc'], '--rate', 'a number above 0'],
    [['start', '--rate', '0'], '--rate', 'a number above 0'],
    [['start', '--rate', 'Infinity'], '--rate', 'a number above 0'],
    [['start', '--rate', ''], '--rate', 'a number above 0'],
    [['start', '--seed', '1.5'], '--seed', 'a whole number from 0'],
    [['start', '--seed', '-1'], '--seed', 'a whole number from 0'],
    [['start', '--duration', '15'], '--duration', 'such as 15s'],
    [['start', '--duration', '0s'], '--duration', 'a number above 0 with ms, s, m or h, such as 15s'],
    [['results', '--timeout', '0ms'], '--timeout', 'a number above 0'],
    [['start', '--deadline', 'soon'], '--deadline', 'such as 15s'],
    [['replay', '--requests', '0'], '--requests', 'a whole number from 1'],
    [['replay', '--requests', '1e400'], '--requests', 'a whole number from 1'],
    [['replay', '--tokens-per-candidate', '-2'], '--tokens-per-candidate', 'a number above 0'],
    [['replay', '--drain', 'x'], '--drain', 'such as 15s'],
    [['up', '--workers', '0x2'], '--workers', 'a whole number from 1'],
    [['up', '--routers', 'two'], '--routers', 'a whole number from 1'],
    [['results', '--max', '1.5'], '--max', 'a whole number from 1'],
    [['dlq', 'list', '--max', '0'], '--max', 'a whole number from 1'],
    [['score', 'x.json', '--top', 'all'], '--top', 'a whole number from 1'],
  ])('%j is refused with what is allowed', async (args, flag, allowed) => {
    const { out, err, exitCode } = await millrace(args);
    expect(exitCode).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(new RegExp(`^millrace: option '${flag} .*is invalid.*${allowed}`));
    expect(err).not.toContain('    at ');
  });

  it.each([
    [['strat'], 'start'],
    [['score', 'x.json', '--jsn'], '--json'],
    [['dlq', 'lst'], 'list'],
  ])('%j is refused with what was probably meant', async (args, meant) => {
    const { err, exitCode } = await millrace(args);
    expect(exitCode).toBe(2);
    expect(err).toContain(`Did you mean ${meant}?`);
  });

  it('refuses more workers than slots', async () => {
    const { err, exitCode } = await millrace(['up', '--workers', '5']);
    expect(exitCode).toBe(2);
    expect(err).toContain('--workers 1 … 4');
  });

  it.each(['results', 'replay'])('%s says what it lacks where there is no installation', async (command) => {
    const { err, exitCode } = await millrace([command]);
    expect(exitCode).toBe(2);
    expect(err).toContain('MILLRACE_KAFKA_BROKERS is not set');
  });
});
