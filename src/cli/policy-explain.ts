import * as v from 'valibot';
import { loadSettings } from '../config/load-settings.ts';
import type { Settings } from '../config/settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { finite, keysOf, recordOf } from '../core/json-values.ts';
import type { CompiledPolicy, Leaf } from '../core/policy/compile.ts';
import type { SignalValue } from '../core/policy/document.ts';
import { explainDecision, formatExplanation, leafAt, toSignalVector } from '../core/policy/explain.ts';
import { poolsOf } from '../core/policy/fleet-pools.ts';
import { didYouMean } from '../core/policy/nearest.ts';
import { compileChecked } from '../wiring/policy-files.ts';
import { readSignals } from '../wiring/read-signals.ts';
import { type CliContext, cliTelemetry } from './context.ts';
import { fleetSource, fleetText, readNamedFleet } from './policy-check.ts';
import { readRequestFile } from './request-file.ts';
import { waitingFor } from './waiting.ts';

export interface ExplainFlags {
  signals?: string;
  context?: string;
  request?: string;
  fleet?: string;
  json: boolean;
}

type Values = ReadonlyMap<string, SignalValue>;

export async function explainPolicy(context: CliContext, file: string, flags: ExplainFlags): Promise<void> {
  const loaded = loadSettings(context.environment, { fleet: flags.fleet });
  const { settings } = loaded;
  const fleet = readNamedFleet(loaded);
  const policy = compileChecked(readUserFile(file), fleet);
  const values =
    flags.request === undefined
      ? valuesOfFlags(policy, flags)
      : await waitingFor(context, 'reading the signals', valuesOfRequest(flags, settings));
  const { signals, context: texts } = toSignalVector(policy, values);
  const leaf = leafAt(policy, policy.decide(signals, texts));
  const explanation = explainDecision(policy, signals, texts);
  const pools = poolsOf(fleet)(leaf.target.accelerator);
  const { name, version } = policy.document;
  const { target, variant, fallback } = leaf;
  context.stdout.write(
    flags.json
      ? `${JSON.stringify({ policy: { name, version }, ...explanation, target, variant, fallback, pools, fleet: fleet.name, fleetFrom: fleetSource(loaded), signals: Object.fromEntries(values) })}\n`
      : `${[...formatExplanation(explanation), targetLine(leaf, pools, fleetText(fleet.name, loaded))].join('\n')}\n`,
  );
}

function targetLine({ target, variant, fallback }: Leaf, pools: readonly string[], fleet: string): string {
  return [
    `target: ${target.accelerator}, kernel ${target.kernel}, memory ${target.memory}`,
    ...(variant === undefined ? [] : [`variant ${variant}`]),
    `pools ${pools.length === 0 ? 'none' : pools.join(', ')} of the fleet ${fleet}`,
    ...(fallback.length === 0 ? [] : [`else ${fallback.join(', then ')}`]),
  ].join('; ');
}

async function valuesOfRequest(
  { request = '', signals, context }: ExplainFlags,
  settings: Settings,
): Promise<Values> {
  if (signals !== undefined || context !== undefined)
    throw new MillraceError('INVALID_CONFIG', '--request reads signals and context off the file', {
      allowed: 'either --request, or --signals and --context',
    });
  return readSignals(readRequestFile(request), settings, cliTelemetry(settings));
}

function valuesOfFlags(policy: CompiledPolicy, flags: ExplainFlags): Values {
  if (flags.signals === undefined && flags.context === undefined)
    throw new MillraceError('INVALID_CONFIG', 'say what to decide on', {
      allowed: `--signals '{"sparsityRatio": 0.8}', --context '{"surface": "feed"}', or --request <file>`,
    });
  const declared = policy.document.signals;
  const numbers = parseFlag('--signals', flags.signals, {
    schema: NUMBERS,
    allowed: 'a JSON object of numbers, true and false by name',
    advise: (name, value) => adviceForSignal(name, value, declared.get(name)),
  });
  const texts = parseFlag('--context', flags.context, {
    schema: TEXTS,
    allowed: 'a JSON object of texts by name',
    advise: (name, value) =>
      typeof value === 'number' || typeof value === 'boolean'
        ? `Numbers, true and false go to --signals: --signals '${JSON.stringify({ [name]: value })}'`
        : undefined,
  });
  for (const name of [...numbers.keys(), ...texts.keys()]) checkDeclared(policy, name);
  return new Map<string, SignalValue>([...numbers, ...texts]);
}

const NUMBERS = recordOf(v.string(), v.union([finite, v.boolean()]));
const TEXTS = recordOf(v.string(), v.string());

/** @param type that the policy declares it with */
function adviceForSignal(name: string, value: unknown, type: string | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  if (type === undefined || type === 'string')
    return `Texts go to --context: --context '${JSON.stringify({ [name]: value })}'`;
  return 'Write it without quotes';
}

interface FlagFormat<T> {
  schema: v.GenericSchema<unknown, Record<string, T>>;
  allowed: string;
  /** What to do about a value that is not allowed. */
  advise(name: string, value: unknown): string | undefined;
}

function parseFlag<T>(
  flag: string,
  text: string | undefined,
  { schema, allowed, advise }: FlagFormat<T>,
): Map<string, T> {
  if (text === undefined) return new Map();
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new MillraceError('INVALID_CONFIG', `${flag} is not JSON`, { value: text, allowed, cause: error });
  }
  const parsed = v.safeParse(schema, content);
  if (parsed.success) return new Map(Object.entries(parsed.output));
  const path = keysOf(parsed.issues[0]).join('.');
  const value = new Map(Object.entries(content ?? {})).get(path);
  const advice = advise(path, value);
  throw new MillraceError('INVALID_CONFIG', `${flag} is not valid${path === '' ? '' : ` at ${path}`}`, {
    value: text,
    allowed,
    ...(advice === undefined ? {} : { advice }),
  });
}

/** A misspelt signal would be missing without a word. */
function checkDeclared(policy: CompiledPolicy, name: string): void {
  const declared = [...policy.document.signals.keys()];
  if (declared.includes(name)) return;
  throw new MillraceError('INVALID_CONFIG', 'the policy declares no such signal', {
    value: name,
    allowed: declared.length === 0 ? 'it declares none' : declared.join(', '),
    ...didYouMean(name, declared),
  });
}
