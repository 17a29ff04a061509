import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import * as v from 'valibot';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadSettings, settingVariables, shownValue } from '../../../src/config/load-settings.ts';
import { SettingsSchema } from '../../../src/config/settings.ts';
import { MillraceError } from '../../../src/core/errors.ts';

function variable(path: string) {
  const found = settingVariables().find((each) => each.path.join('.') === path);
  if (found === undefined) throw new Error(`no setting ${path}`);
  return found;
}

function configFile(content: string): { MILLRACE_CONFIG: string } {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-settings-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'millrace.yaml');
  writeFileSync(file, content);
  return { MILLRACE_CONFIG: file };
}

describe('settings', () => {
  it('have defaults that they themselves allow, and a description each', () => {
    const { settings } = loadSettings({});
    expect(v.is(SettingsSchema, settings)).toBe(true);
    for (const { path, description, allowed } of settingVariables()) {
      expect(description, path.join('.')).not.toBe('');
      expect(allowed, path.join('.')).not.toContain('undefined');
    }
  });

  it('refuse a token that no header can carry, without saying it', () => {
    const load = (token: string) => loadSettings({ MILLRACE_CONTROLLER_PROMETHEUS_TOKEN: token });
    expect(load('secret\n').settings.controller.prometheusToken).toBe('secret');
    expect(() => load('se\ncret')).toThrow(/visible ASCII characters/);
    expect(() => load('se\ncret')).not.toThrow(/cret/);
  });

  it('have one variable each', () => {
    const names = settingVariables().map((each) => each.variable);
    expect(new Set(names).size).toBe(names.length);
    expect(variable('kafka.saslUsername').variable).toBe('MILLRACE_KAFKA_SASL_USERNAME');
    expect(variable('slotsPerPool').variable).toBe('MILLRACE_SLOTS_PER_POOL');
  });

  it.each([
    ['MILLRACE_TOPOLOGY', 'fused', 'topology', 'fused'],
    ['MILLRACE_KAFKA_BROKERS', 'a:1, b:2', 'kafka.brokers', ['a:1', 'b:2']],
    ['MILLRACE_WORKER_SLOTS', '0,3', 'worker.slots', [0, 3]],
    ['MILLRACE_TENANTS', '7,acme', 'tenants', ['7', 'acme']],
    ['MILLRACE_TENANTS', '12', 'tenants', ['12']],
    ['MILLRACE_KAFKA_TLS', '1', 'kafka.tls', true],
    ['MILLRACE_KAFKA_TLS', 'false', 'kafka.tls', false],
    ['MILLRACE_TRIES', '5', 'tries', 5],
    ['MILLRACE_LIMITS_REQUEST_BYTES_MAX', '1048576', 'limits.requestBytesMax', 1_048_576],
    ['MILLRACE_KAFKA_SASL_PASSWORD', '0123', 'kafka.saslPassword', '0123'],
  ])('%s=%s sets %s', (name, text, path, value) => {
    const { settings, sources } = loadSettings({ [name]: text });
    const at = path
      .split('.')
      .reduce<unknown>((node, part) => (node as Record<string, unknown>)[part], settings);
    expect(at).toEqual(value);
    expect(sources.get(path)).toBe('environment');
  });

  it('take an empty variable for none', () => {
    const { settings, sources } = loadSettings({ MILLRACE_TOPOLOGY: '' });
    expect(settings.topology).toBe('split');
    expect(sources.get('topology')).toBe('default');
  });

  it('come from the default, the file, the environment, the flags, the later the stronger', () => {
    const file = configFile('topology: fused\ntries: 4\nkafka: {partitions: 6, replication: 3}\n');
    const environment = { ...file, MILLRACE_TRIES: '5', MILLRACE_KAFKA_PARTITIONS: '7' };
    const { settings, sources } = loadSettings(environment, { 'kafka.partitions': 8, policy: undefined });
    expect(settings).toMatchObject({ topology: 'fused', tries: 5, kafka: { partitions: 8, replication: 3 } });
    const sourceOf = (path: string) => sources.get(path);
    expect(
      ['topology', 'tries', 'kafka.partitions', 'kafka.replication', 'policy', 'windowMs'].map(sourceOf),
    ).toEqual(['file', 'environment', 'override', 'file', 'default', 'default']);
  });

  it('take an empty file for none', () => {
    expect(loadSettings(configFile('# nothing yet\n')).settings).toEqual(loadSettings({}).settings);
  });

  it.each([
    [
      'a value that is none of the allowed',
      { MILLRACE_TOPOLOGY: 'splitt' },
      /MILLRACE_TOPOLOGY.*"splitt".*split, fused/,
    ],
    ['a number out of bounds', { MILLRACE_TRIES: '0' }, /MILLRACE_TRIES.*got 0.*1 … 100/],
    [
      'an address with a path where gRPC has none',
      {
        MILLRACE_OPEN_INFERENCE_PROTOCOL: 'grpc',
        MILLRACE_OPEN_INFERENCE_URL: 'http://host:1/path',
      },
      /MILLRACE_OPEN_INFERENCE_URL.*"http:\/\/host:1\/path".*without a path/,
    ],
    ['a number that is none', { MILLRACE_TRIES: 'many' }, /MILLRACE_TRIES.*"many"/],
    ['one item of a list', { MILLRACE_KAFKA_BROKERS: 'a:1,b' }, /MILLRACE_KAFKA_BROKERS.*"b".*host:port/],
    [
      'a misspelt variable',
      { MILLRACE_TOPOLGY: 'split' },
      /MILLRACE_TOPOLGY.*Did you mean "MILLRACE_TOPOLOGY"/,
    ],
    [
      'a variable without its group',
      { MILLRACE_KEYS: 'keys.yaml' },
      /MILLRACE_KEYS is not a setting.*Did you mean "MILLRACE_CONTROLLER_KEYS"\? See `millrace config show`/,
    ],
    ['an unknown variable', { MILLRACE_XYZZY_PLUGH: '1' }, /MILLRACE_XYZZY_PLUGH.*config show/],
    [
      'a file that is not there',
      { MILLRACE_CONFIG: '/no/such/file.yaml' },
      /MILLRACE_CONFIG.*no\/such\/file/,
    ],
  ])('refuse %s by its name', (_name, environment, message) => {
    expect(() => loadSettings(environment)).toThrow(MillraceError);
    expect(() => loadSettings(environment)).toThrow(message);
  });

  it.each([
    ['an unknown key', 'topolgy: split', /topolgy.*Did you mean "topology"/],
    [
      'an unknown key of a group',
      'kafka: {partition: 3}',
      /kafka\.partition.*Did you mean "kafka.partitions"/,
    ],
    ['a key without its group', 'brokers: [a:1]', /"brokers" is not.*Did you mean "kafka.brokers"/],
    ['a value', 'kafka: {partitions: 0}', /kafka\.partitions.*got 0/],
    ['all unknown keys of a group', 'kafka: {partition: 3, tsl: true}', /kafka\.partition.*kafka\.tsl/],
    ['a group that is none', 'kafka: 7', /kafka: must be an object/],
    ['a list for a group', 'kafka: []', /kafka: must be an object/],
    ['something else than settings', '- a\n- b', /holds no settings/],
    ['a file that is no YAML', 'a: [', /cannot be read/],
  ])('refuse %s of the file by its path', (_name, content, message) => {
    const environment = configFile(content);
    expect(() => loadSettings(environment)).toThrow(message);
  });

  it('never show secrets: not in what is shown, not in a message', () => {
    const environment = {
      MILLRACE_KAFKA_SASL_PASSWORD: 'hunter2',
      MILLRACE_REDIS_URL: 'redis://me:hunter2@host:6379/1',
    };
    const { settings } = loadSettings(environment);
    expect(shownValue(variable('kafka.saslPassword'), settings)).toBe('***');
    expect(shownValue(variable('redisUrl'), settings)).toBe('redis://***@host:6379/1');
    expect(shownValue(variable('kafka.saslPassword'), loadSettings({}).settings)).toBe('');
    for (const content of [
      'kafka: {saslPassword: [hunter2]}',
      'redisUrl: {a: redis://me:hunter2@host}',
      'a: [hunter2',
    ]) {
      const wrong = configFile(content);
      expect(() => loadSettings(wrong)).toThrow(MillraceError);
      expect(() => loadSettings(wrong)).not.toThrow(/hunter2/);
    }
  });

  it('give settings, or INVALID_CONFIG that names the variable, for any text of any variable', () => {
    const anyText = fc.oneof(
      fc.string(),
      fc.string({ unit: 'grapheme' }),
      fc.integer().map(String),
      fc.double().map(String),
      fc.constantFrom('true', 'false', 'null', ',', '0x10', '1e9', ' 7 ', '-1', '[]', '__proto__'),
    );
    fc.assert(
      fc.property(fc.constantFrom(...settingVariables()), anyText, ({ variable: name }, text) => {
        try {
          const { settings } = loadSettings({ [name]: text });
          expect(v.is(SettingsSchema, settings)).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(MillraceError);
          expect(error).toMatchObject({ code: 'INVALID_CONFIG', message: expect.stringContaining(name) });
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('give settings or INVALID_CONFIG for any file', () => {
    const anyContent = fc.oneof(
      fc.string(),
      fc.json(),
      fc.object().map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(anyContent, (content) => {
        const folder = mkdtempSync(join(tmpdir(), 'millrace-settings-'));
        try {
          writeFileSync(join(folder, 'millrace.yaml'), content);
          loadSettings({ MILLRACE_CONFIG: join(folder, 'millrace.yaml') });
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_CONFIG' });
        } finally {
          rmSync(folder, { recursive: true, force: true });
        }
      }),
    );
  });
});
