import { describe, expect, it } from 'vitest';
import { failWith } from '../../../src/cli/fail.ts';
import { ERROR_CODES, type ErrorCode, MillraceError } from '../../../src/core/errors.ts';
import { parsePolicy } from '../../../src/core/policy/parse.ts';
import { CapturedOutput, millrace } from './cli.fixture.ts';

function failed(error: unknown, verbose = false): { err: string; exitCode: number } {
  const stderr = new CapturedOutput();
  const context = { stderr, exitCode: 0 };
  failWith(context as unknown as Parameters<typeof failWith>[0], error, verbose);
  return { err: stderr.text, exitCode: context.exitCode };
}

describe('an error', () => {
  const codes = Object.keys(ERROR_CODES) as ErrorCode[];

  it.each(codes)('%s has exit code 2 where the user can correct it', (code) => {
    const correctable = !ERROR_CODES[code].retryable && code !== 'CLOSED';
    expect(failed(new MillraceError(code, 'what was wrong')).exitCode).toBe(correctable ? 2 : 1);
  });

  it('is told in one line, with its stack trace and causes only where asked for', () => {
    const error = new MillraceError('INVALID_CONFIG', 'what was wrong', { cause: new Error('deeper') });
    expect(failed(error).err).toBe('millrace: what was wrong\n');
    const verbose = failed(error, true).err;
    expect(verbose).toContain('fail.test.ts');
    expect(verbose).toContain('Caused by Error: deeper');
  });

  it('that nobody foresaw says how to learn more', () => {
    expect(failed(new TypeError('x is not a function'))).toEqual({
      err: 'millrace: x is not a function\nThis was not foreseen: with --verbose it comes with its stack trace.\n',
      exitCode: 1,
    });
    expect(failed('a text')).toEqual({ err: 'millrace: a text\n', exitCode: 1 });
  });

  it('of a document tells everything that is wrong in it', () => {
    let error: unknown;
    try {
      parsePolicy('apiVersion: millrace/v1\nkind: RoutingPolicy\nname: x\nversion: a\ntree: 7\n');
    } catch (thrown) {
      error = thrown;
    }
    const { err, exitCode } = failed(error);
    expect(exitCode).toBe(2);
    expect(err).toMatch(/^millrace: \d+ problems\n {2}error: /);
    expect(err).toContain('version');
    expect(err).toContain('tree');
  });

  it('comes with its stack trace after --verbose, wherever that stands', async () => {
    for (const args of [
      ['--verbose', 'score', '/no/such.json'],
      ['score', '/no/such.json', '--verbose'],
    ])
      expect((await millrace(args)).err).toContain('    at ');
    expect((await millrace(['score', '/no/such.json'])).err).not.toContain('    at ');
  });
});
