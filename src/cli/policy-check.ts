import { type LoadedSettings, loadSettings } from '../config/load-settings.ts';
import { readUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { describeProblem } from '../core/policy/problem.ts';
import { type CheckedPolicy, checkPolicyFile } from '../wiring/check-policy.ts';
import { readFleet } from '../wiring/policy-files.ts';
import type { CliContext } from './context.ts';

export interface ValidateFlags {
  fleet?: string;
  json: boolean;
}

/** Prints everything that is wrong or doubtful in a policy, and the verdict. */
export function validatePolicyFile(context: CliContext, file: string, flags: ValidateFlags): void {
  const loaded = loadSettings(context.environment, { fleet: flags.fleet });
  readNamedFleet(loaded);
  const checked = checkPolicyFile(readUserFile(file), loaded.settings);
  const { problems, policy } = checked;
  const valid = isValid(checked);
  if (!valid) context.exitCode = 2;
  if (flags.json) {
    const fleetFrom = fleetSource(loaded);
    context.stdout.write(
      `${JSON.stringify({ file, valid, ...policy, fleet: checked.fleet, fleetFrom, problems })}\n`,
    );
    return;
  }
  for (const problem of problems) context.stdout.write(`${problem.severity}: ${describeProblem(problem)}\n`);
  context.stdout.write(`${verdict(file, checked, fleetText(checked.fleet, loaded))}\n`);
}

/** Before a policy is signed or sent. @returns undefined where it is not valid: then the problems are told, and the exit code is 2 */
export function readValidPolicy(
  context: CliContext,
  file: string,
): { bytes: Buffer; name: string; version: number } | undefined {
  const loaded = loadSettings(context.environment);
  readNamedFleet(loaded);
  const bytes = readUserFile(file);
  const checked = checkPolicyFile(bytes, loaded.settings);
  const { problems, policy } = checked;
  for (const problem of problems) context.stderr.write(`${problem.severity}: ${describeProblem(problem)}\n`);
  if (isValid(checked) && policy !== undefined) return { bytes, ...policy };
  context.stderr.write(
    `millrace: ${verdict(file, checked, fleetText(checked.fleet, loaded))}; nothing was sent\n`,
  );
  context.exitCode = 2;
  return undefined;
}

/** The fleet of the settings; an error in it tells who chose the file. */
export function readNamedFleet(loaded: LoadedSettings): Fleet {
  try {
    return readFleet(loaded.settings);
  } catch (error) {
    const from = fleetSource(loaded);
    if (!(error instanceof MillraceError) || from === 'default') throw error;
    const { fleet } = loaded.settings;
    throw new MillraceError('INVALID_CONFIG', `the fleet ${fleet}, from ${from}: ${error.message}`, {
      advice: from === '--fleet' ? 'Name another file' : `Correct ${from}, or name a fleet with --fleet`,
      cause: error,
    });
  }
}

/** `embedded`; a fleet that a variable, the configuration file or a flag chose is named with who chose it: a leftover variable shows. */
export function fleetText(fleet: string, loaded: LoadedSettings): string {
  const from = fleetSource(loaded);
  return from === 'default' ? fleet : `${fleet} (${loaded.settings.fleet}, from ${from})`;
}

const SOURCES = {
  default: 'default',
  file: 'the configuration file',
  environment: 'MILLRACE_FLEET',
  override: '--fleet',
} as const;

export function fleetSource({ sources }: LoadedSettings): string {
  return SOURCES[sources.get('fleet') ?? 'default'];
}

function isValid({ problems }: CheckedPolicy): boolean {
  return !problems.some(({ severity }) => severity === 'error');
}

function verdict(file: string, checked: CheckedPolicy, fleet: string): string {
  const { policy, problems } = checked;
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const counts = `${counted(errors, 'error')}, ${counted(problems.length - errors, 'warning')}`;
  if (!isValid(checked) || policy === undefined) return `${file}: not valid on the fleet ${fleet}: ${counts}`;
  const { name, version, digest, leaves, tests } = policy;
  return `${file}: valid: ${name}@${version}, ${leaves} leaves, ${counted(tests, 'golden test')} passed, on the fleet ${fleet}: ${counts}\n${digest}`;
}

function counted(many: number, what: string): string {
  return `${many} ${what}${many === 1 ? '' : 's'}`;
}
