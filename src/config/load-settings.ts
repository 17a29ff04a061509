import { readFileSync } from 'node:fs';
import * as v from 'valibot';
import { parse as parseYaml } from 'yaml';
import { MillraceError, shorten } from '../core/errors.ts';
import { isUnknownKey, keysOf } from '../core/json-values.ts';
import { nearestSetting } from './nearest-setting.ts';
import { type Settings, SettingsSchema } from './settings.ts';
import { fileError } from './user-file.ts';

/** One setting: where it lives, its environment variable, and how its text is read. */
export interface SettingVariable {
  path: readonly string[];
  variable: string;
  description: string;
  /** How its text is read; a list is separated by commas. */
  type: ScalarType | 'list';
  /** Of a list's items. */
  itemType: ScalarType | undefined;
  /** In words. */
  allowed: string;
  defaultValue: unknown;
}

type ScalarType = 'string' | 'number' | 'boolean';

/** A part of a schema as the library keeps it, as far as settings are made of such parts. */
interface SchemaPart {
  type: string;
  /** Of an object. */
  entries?: Readonly<Record<string, SchemaPart>>;
  /** What may be left out. */
  wrapped?: SchemaPart;
  default?: unknown;
  /** Of a list. */
  item?: SchemaPart;
  /** Of a choice. */
  options?: readonly unknown[];
  /** What is asked of it beside its type, and what is said about it. */
  pipe?: readonly SchemaPart[];
  requirement?: unknown;
  title?: unknown;
  description?: unknown;
}

/** All settings in order; `kafka.saslUsername` is MILLRACE_KAFKA_SASL_USERNAME. */
export function settingVariables(): SettingVariable[] {
  return walk(SettingsSchema, []);
}

function walk(schema: SchemaPart, path: readonly string[]): SettingVariable[] {
  const parts = partsOf(schema);
  const entries = parts.find((part) => part.entries !== undefined)?.entries;
  if (entries !== undefined)
    return Object.entries(entries).flatMap(([key, child]) => walk(child, [...path, key]));
  const items = parts.find((part) => part.item !== undefined)?.item;
  return [
    {
      path,
      variable: `MILLRACE_${path.map(upperSnake).join('_')}`,
      description: String(parts.find((part) => part.type === 'description')?.description ?? ''),
      type: items === undefined ? scalarType(parts) : 'list',
      itemType: items === undefined ? undefined : scalarType(partsOf(items)),
      allowed: allowedBy(parts),
      defaultValue: parts.find((part) => part.type === 'optional')?.default,
    },
  ];
}

/** A schema, what it wraps, and what is in their pipes. */
function partsOf(schema: SchemaPart): SchemaPart[] {
  const { pipe, wrapped } = schema;
  // Before its pipe, which begins with the schema: a piped one has that one's fields too.
  if (pipe !== undefined) return pipe.flatMap(partsOf);
  return wrapped === undefined ? [schema] : [schema, ...partsOf(wrapped)];
}

function scalarType(parts: readonly SchemaPart[]): ScalarType {
  if (parts.some(({ type }) => type === 'number')) return 'number';
  return parts.some(({ type }) => type === 'boolean') ? 'boolean' : 'string';
}

function allowedBy(parts: readonly SchemaPart[]): string {
  const the = (type: string): SchemaPart | undefined => parts.findLast((part) => part.type === type);
  const items = the('array')?.item;
  if (items !== undefined) return `a list of: ${allowedBy(partsOf(items))}`;
  const options = the('picklist')?.options;
  if (options !== undefined) return options.join(', ');
  if (the('boolean') !== undefined) return 'true, false';
  if (the('number') !== undefined) {
    const numbers = the('integer') === undefined ? 'numbers' : 'whole numbers';
    return `${numbers} ${the('min_value')?.requirement} … ${the('max_value')?.requirement}`;
  }
  const pattern = the('regex')?.requirement;
  const inWords = pattern instanceof RegExp ? `text that matches ${pattern.source}` : 'any text';
  return String(the('title')?.title ?? inWords);
}

function upperSnake(camel: string): string {
  return camel.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase();
}

export type SettingSource = 'default' | 'file' | 'environment' | 'override';

export interface LoadedSettings {
  settings: Settings;
  /** Where each setting came from, by its dotted path. */
  sources: ReadonlyMap<string, SettingSource>;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Defaults, then the YAML file that MILLRACE_CONFIG names, then the environment, then `overrides` (flags), by dotted path.
 * @throws MillraceError INVALID_CONFIG naming the setting, its source, the value and what is allowed; unknown variables of the MILLRACE_ family too.
 */
export function loadSettings(
  environment: Environment,
  overrides: Readonly<Record<string, unknown>> = {},
): LoadedSettings {
  const variables = settingVariables();
  const raw: Record<string, unknown> = Object.create(null);
  const sources = new Map<string, SettingSource>();
  const put = (path: readonly string[], value: unknown, source: SettingSource): void => {
    setPath(raw, path, value);
    sources.set(path.join('.'), source);
  };
  readFile(environment['MILLRACE_CONFIG'], variables, put);
  for (const variable of variables) {
    const text = environment[variable.variable];
    if (text !== undefined && text !== '') put(variable.path, fromText(variable, text), 'environment');
  }
  refuseUnknownVariables(environment, variables);
  for (const [path, value] of Object.entries(overrides))
    if (value !== undefined) put(path.split('.'), value, 'override');
  const parsed = v.safeParse(SettingsSchema, raw);
  if (!parsed.success) throw invalid(parsed.issues, raw, variables, sources);
  for (const variable of variables)
    if (!sources.has(variable.path.join('.'))) sources.set(variable.path.join('.'), 'default');
  return { settings: parsed.output, sources };
}

/** Variables of the family that are no settings: of the file loader and the local stack. */
const OTHER_VARIABLES = new Set(['MILLRACE_CONFIG', 'MILLRACE_STACK_CACHE']);

function refuseUnknownVariables(environment: Environment, variables: readonly SettingVariable[]): void {
  const known = new Set(variables.map((variable) => variable.variable));
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('MILLRACE_') || known.has(name) || OTHER_VARIABLES.has(name)) continue;
    throw new MillraceError(
      'INVALID_CONFIG',
      `the environment variable ${name} is not a setting of millrace`,
      {
        advice: [
          ...meant(name, known),
          'See `millrace config show` for all of them; unset it, or correct its name',
        ].join(' '),
      },
    );
  }
}

function readFile(
  file: string | undefined,
  variables: readonly SettingVariable[],
  put: (path: readonly string[], value: unknown, source: SettingSource) => void,
): void {
  if (file === undefined || file === '') return;
  const content = parseFile(file);
  if (content === null || content === undefined) return;
  if (typeof content !== 'object' || Array.isArray(content))
    throw new MillraceError('INVALID_CONFIG', 'the file that MILLRACE_CONFIG names holds no settings', {
      value: file,
      allowed: 'a YAML mapping, such as `topology: fused`',
    });
  for (const [path, value] of flatten(content, variables, [])) put(path, value, 'file');
}

function parseFile(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw fileError('the file that MILLRACE_CONFIG names cannot be read', file, error, 'read');
  }
  try {
    return parseYaml(text, { maxAliasCount: 0, logLevel: 'error' });
  } catch (error) {
    throw new MillraceError(
      'INVALID_CONFIG',
      `the file that MILLRACE_CONFIG names cannot be read: it is not YAML: ${firstLine(error)}`,
      { value: file, allowed: 'a YAML mapping, such as `topology: fused`' },
    );
  }
}

/** What follows the first line of a YAML error quotes the file, which may hold secrets. */
function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}

function* flatten(
  node: unknown,
  variables: readonly SettingVariable[],
  path: readonly string[],
): Generator<[readonly string[], unknown]> {
  const isGroup =
    path.length === 0 ||
    variables.some(
      (variable) => variable.path.length > path.length && path.every((part, i) => variable.path[i] === part),
    );
  if (isGroup && typeof node === 'object' && node !== null && !Array.isArray(node)) {
    for (const [key, value] of Object.entries(node)) yield* flatten(value, variables, [...path, key]);
  } else {
    yield [path, node];
  }
}

function setPath(root: Record<string, unknown>, path: readonly string[], value: unknown): void {
  let at = root;
  for (const part of path.slice(0, -1)) {
    const next = at[part];
    const child =
      typeof next === 'object' && next !== null
        ? (next as Record<string, unknown>)
        : (Object.create(null) as Record<string, unknown>);
    at[part] = child;
    at = child;
  }
  const last = path.at(-1);
  if (last !== undefined) at[last] = value;
}

function fromText(variable: SettingVariable, text: string): unknown {
  switch (variable.type) {
    case 'list': {
      const parts = text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== '');
      return variable.itemType === 'number' ? parts.map(numberFromText) : parts;
    }
    case 'number':
      return numberFromText(text);
    case 'boolean':
      return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
    case 'string':
      return text;
    default:
      return variable.type satisfies never;
  }
}

/** What is no number stays text, for the schema to refuse it. */
function numberFromText(text: string): number | string {
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

function invalid(
  issues: readonly v.BaseIssue<unknown>[],
  raw: unknown,
  variables: readonly SettingVariable[],
  sources: ReadonlyMap<string, SettingSource>,
): MillraceError {
  const lines = issues.map((issue) => {
    const path = keysOf(issue).map(String);
    const variable = variables.find((each) => each.path.every((part, index) => path[index] === part));
    if (variable === undefined) return unknownSettings(issue, path, raw, variables);
    const setting = variable.path.join('.');
    const name = sources.get(setting) === 'environment' ? variable.variable : path.join('.');
    // A rule between settings says itself what it allows.
    const allowed = issue.type === 'check' ? issue.message : variable.allowed;
    return `${name} is not valid (got ${shorten(masked(setting, valueAt(raw, path)))}; allowed: ${allowed})`;
  });
  return new MillraceError('INVALID_CONFIG', lines.join('; '), {
    advice: 'See `millrace config show --help` for where settings come from',
  });
}

/** All that are unknown of a group: the issue is about the first. */
function unknownSettings(
  issue: v.BaseIssue<unknown>,
  path: readonly string[],
  raw: unknown,
  variables: readonly SettingVariable[],
): string {
  if (!isUnknownKey(issue)) return `${path.join('.')}: ${issue.message}`;
  const group = path.slice(0, -1);
  const settings = variables.map((variable) => variable.path.join('.'));
  return Object.keys(valueAt(raw, group) ?? {})
    .map((key) => [...group, key].join('.'))
    .filter((name) => !settings.some((setting) => setting === name || setting.startsWith(`${name}.`)))
    .map((name) => [`${shorten(name)} is not a setting of millrace`, ...meant(name, settings)].join('. '))
    .join('; ');
}

function meant(name: string, known: Iterable<string>): string[] {
  const near = nearestSetting(name, known);
  return near === undefined ? [] : [`Did you mean "${near}"?`];
}

function valueAt(root: unknown, path: readonly string[]): unknown {
  let at = root;
  for (const part of path)
    at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[part] : undefined;
  return at;
}

const SECRET = /password|secret|token/i;
const CREDENTIALS_OF_URL = /^([a-z][a-z0-9+.-]*:\/\/)[^/@]*@/i;

/** A setting's value as it may be shown: secrets are masked, and so are user and password within a URL. */
export function shownValue(variable: SettingVariable, settings: Settings): unknown {
  return masked(variable.path.join('.'), valueAt(settings, variable.path));
}

function masked(setting: string, value: unknown): unknown {
  if (value === '' || value === undefined) return value;
  if (SECRET.test(setting)) return '***';
  if (Array.isArray(value)) return value.map((item) => masked(setting, item));
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return typeof value === 'string' ? value.replace(CREDENTIALS_OF_URL, '$1***@') : value;
}
