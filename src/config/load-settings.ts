import { readFileSync } from 'node:fs';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { MillraceError } from '../core/errors.ts';
import { type Settings, SettingsSchema } from './settings.ts';

/** One setting: where it lives, its environment variable, and how its text is read. */
export interface SettingVariable {
  path: readonly string[];
  variable: string;
  description: string;
  /** JSON schema type of the setting. */
  type: 'string' | 'number' | 'boolean' | 'list';
  defaultValue: unknown;
}

const SECRET = /password|secret|token/i;

interface JsonSchemaNode {
  type?: string;
  properties?: Record<string, JsonSchemaNode>;
  description?: string;
  default?: unknown;
  items?: JsonSchemaNode;
}

/** All settings in order; `kafka.saslUsername` is MILLRACE_KAFKA_SASL_USERNAME. */
export function settingVariables(): SettingVariable[] {
  const root = z.toJSONSchema(SettingsSchema, { io: 'output' }) as JsonSchemaNode;
  return walk(root, []);
}

function walk(node: JsonSchemaNode, path: readonly string[]): SettingVariable[] {
  return Object.entries(node.properties ?? {}).flatMap(([key, child]) => {
    const childPath = [...path, key];
    if (child.properties !== undefined) return walk(child, childPath);
    return [
      {
        path: childPath,
        variable: `MILLRACE_${childPath.map(upperSnake).join('_')}`,
        description: child.description ?? '',
        type: typeOf(child),
        defaultValue: child.default,
      },
    ];
  });
}

function typeOf(node: JsonSchemaNode): SettingVariable['type'] {
  if (node.type === 'array') return 'list';
  if (node.type === 'integer' || node.type === 'number') return 'number';
  return node.type === 'boolean' ? 'boolean' : 'string';
}

function upperSnake(camel: string): string {
  return camel.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase();
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
  const parsed = SettingsSchema.safeParse(raw);
  if (!parsed.success) throw invalid(parsed.error, variables, sources);
  for (const variable of variables)
    if (!sources.has(variable.path.join('.'))) sources.set(variable.path.join('.'), 'default');
  return { settings: parsed.data, sources };
}

/** Variables of the family that are not settings: read by the launcher, the stack and the file loader. */
const OTHER_VARIABLES = new Set([
  'MILLRACE_CONFIG',
  'MILLRACE_VERBOSE',
  'MILLRACE_NODE',
  'MILLRACE_STACK_CACHE',
  'MILLRACE_STACK',
]);

function refuseUnknownVariables(environment: Environment, variables: readonly SettingVariable[]): void {
  const known = new Set(variables.map((variable) => variable.variable));
  for (const name of Object.keys(environment)) {
    if (!name.startsWith('MILLRACE_') || known.has(name) || OTHER_VARIABLES.has(name)) continue;
    throw new MillraceError(
      'INVALID_CONFIG',
      `the environment variable ${name} is not a setting of millrace`,
      {
        advice: 'See `millrace config show` for all of them; unset it, or correct its name',
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
  let content: unknown;
  try {
    content = parseYaml(readFileSync(file, 'utf8'), { maxAliasCount: 0 });
  } catch (error) {
    throw new MillraceError(
      'INVALID_CONFIG',
      `the file that MILLRACE_CONFIG names cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { value: file, cause: error },
    );
  }
  for (const [path, value] of flatten(content, variables, [])) put(path, value, 'file');
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
      return parts.every((part) => /^\d+$/.test(part)) ? parts.map(Number) : parts;
    }
    case 'number':
      return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
    case 'boolean':
      return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
    case 'string':
      return text;
    default:
      return variable.type satisfies never;
  }
}

function invalid(
  error: z.ZodError,
  variables: readonly SettingVariable[],
  sources: ReadonlyMap<string, SettingSource>,
): MillraceError {
  const lines = error.issues.map((issue) => {
    const path = issue.path.map(String).join('.');
    const variable = variables.find(
      (candidate) => path === candidate.path.join('.') || path.startsWith(`${candidate.path.join('.')}.`),
    );
    const source = variable === undefined ? 'file' : (sources.get(variable.path.join('.')) ?? 'default');
    const name = source === 'environment' && variable !== undefined ? variable.variable : path;
    return `${name}: ${issue.message}`;
  });
  return new MillraceError('INVALID_CONFIG', `the settings are not valid: ${lines.join('; ')}`, {
    advice: 'See `millrace config show` for what each setting allows',
    cause: error,
  });
}

/** A setting's value as it may be shown: secrets are masked. */
export function shownValue(variable: SettingVariable, settings: Settings): unknown {
  let at: unknown = settings;
  for (const part of variable.path)
    at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[part] : undefined;
  return SECRET.test(variable.path.join('.')) && at !== '' ? '***' : at;
}
