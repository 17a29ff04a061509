import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { settingVariables } from '../../../src/config/load-settings.ts';
import { ERROR_CODES } from '../../../src/core/errors.ts';
import { millrace } from './cli.fixture.ts';

function show(args: readonly string[], environment: Record<string, string> = {}) {
  return millrace(['config', 'show', ...args], { environment });
}

describe('millrace config show', () => {
  it('shows every setting with variable, value, source and meaning', async () => {
    const { out, exitCode } = await show([], { MILLRACE_KAFKA_BROKERS: 'a:1,b:2' });
    expect(exitCode).toBe(0);
    const lines = out.trim().split('\n');
    expect(lines).toHaveLength(settingVariables().length + 1);
    expect(out).toMatch(
      /^kafka\.brokers +a:1,b:2 +environment +MILLRACE_KAFKA_BROKERS +Brokers to start from/m,
    );
    expect(out).toMatch(/^topology +split +default +MILLRACE_TOPOLOGY /m);
  });

  it('shows them as JSON, with what is allowed', async () => {
    const shown = JSON.parse((await show(['--json'], { MILLRACE_TOPOLOGY: 'fused' })).out);
    expect(shown).toContainEqual({
      setting: 'topology',
      variable: 'MILLRACE_TOPOLOGY',
      value: 'fused',
      source: 'environment',
      default: 'split',
      allowed: 'split, fused',
      description: expect.any(String),
    });
  });

  it('masks secrets', async () => {
    const environment = {
      MILLRACE_KAFKA_SASL_PASSWORD: 'hunter2',
      MILLRACE_REGISTRY_URL: 'https://me:hunter2@registry/',
    };
    for (const args of [[], ['--json']]) expect((await show(args, environment)).out).not.toContain('hunter2');
  });

  it('refuses settings that are not valid', async () => {
    const { err, exitCode } = await show([], { MILLRACE_TRIES: 'x' });
    expect(exitCode).toBe(2);
    expect(err).toContain('MILLRACE_TRIES');
  });
});

describe('docs/configuration.md', () => {
  it('is what `millrace config show --markdown` prints', async () => {
    const { out } = await show(['--markdown'], { MILLRACE_TOPOLOGY: 'fused' });
    const page = readFileSync('docs/configuration.md', 'utf8');
    expect(page, 'run: node bin/millrace.js config show --markdown > docs/configuration.md').toBe(out);
  });
});

describe('docs/errors.md', () => {
  const rows = readFileSync('docs/errors.md', 'utf8')
    .split('\n')
    .flatMap((line) => {
      const match = /^\| `([A-Z_]+)` \| (yes|no) \| (.+) \| (.+) \|$/.exec(line);
      return match === null ? [] : [{ code: match[1], retry: match[2], meaning: match[3], advice: match[4] }];
    });

  it('has every code once, and no other', () => {
    expect(rows.map(({ code }) => code).sort()).toEqual(Object.keys(ERROR_CODES).sort());
  });

  it.each(Object.entries(ERROR_CODES))(
    'says of %s whether a retry helps, as the code does',
    (code, { retryable }) => {
      expect(rows.find((row) => row.code === code)?.retry).toBe(retryable ? 'yes' : 'no');
    },
  );
});
