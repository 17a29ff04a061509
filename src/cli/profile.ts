import { Command } from 'commander';
import { type LoadedSettings, loadSettings } from '../config/load-settings.ts';
import { checkWritable, readUserFile, writeUserFile } from '../config/user-file.ts';
import { listNames, MillraceError } from '../core/errors.ts';
import { DocumentError } from '../core/policy/problem.ts';
import type { AcceleratorProfile } from '../core/profile/profile.ts';
import { checkInFleet, starterPolicy } from '../core/profile/starter-policy.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import { measureAccelerator } from '../inference/profile/measure-accelerator.ts';
import { PROFILE_BYTES_MAX, readProfile } from '../inference/profile/profile-schema.ts';
import type { ModelVersion } from '../inference/repository/model-version.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import type { AcceleratorCapabilities } from '../ports/accelerator.ts';
import { createBackend, openModels } from '../wiring/backends.ts';
import { checkPolicyFile } from '../wiring/check-policy.ts';
import { type CliContext, cliTelemetry } from './context.ts';
import { duration, name, seed } from './flags.ts';
import { namesIn } from './onnx-model.ts';
import { readNamedFleet } from './policy-check.ts';
import { writeCosts } from './profile-costs.ts';
import { profileRefitCommand } from './profile-refit.ts';
import { profileLines } from './profile-report.ts';
import { waitingFor } from './waiting.ts';

interface ProfileFlags {
  accelerator: string;
  backend?: string;
  models?: string;
  family?: string;
  measureTime: number;
  out?: string;
  policy?: string;
  policyName: string;
  with?: string;
  fleet?: string;
  costs: boolean;
  seed: number;
  json: boolean;
}

const MEASURE_MS = 10_000;

/** `millrace profile`: what the models take on this machine, and a policy to start from. */
export function profileCommand(context: CliContext): Command {
  const command = new Command('profile').description(
    'Measure the kernels on this machine: cost models, where one kernel overtakes another, and a policy to start from',
  );
  return withOptions(command)
    .addHelpText('after', HELP)
    .action((flags: ProfileFlags) => profile(context, flags))
    .addCommand(profileRefitCommand(context));
}

function withOptions(command: Command): Command {
  return command
    .option('--accelerator <name>', 'class of the fleet that this machine stands for', name, 'cpu')
    .option(
      '--backend <name>',
      'what computes: onnx-cpu, sparse-cpu, open-inference, simulated (default: the settings)',
    )
    .option('--models <folder>', 'model repository (default: the settings)')
    .option('--family <names>', 'only these families, or versions: ranker,dcn@2 (default: all)')
    .option('--measure-time <time>', 'how long each version is measured, about', duration, MEASURE_MS)
    .option('--out <file>', 'write the profile here')
    .option('--policy <file>', 'write a policy to start from here')
    .option('--policy-name <name>', 'what the policy is called', name, 'starter')
    .option(
      '--with <files>',
      'profiles of other accelerators that the policy is for, too, separated by commas',
    )
    .option('--fleet <file>', 'fleet that the policy is for (default: the settings)')
    .option('--costs', 'write what requests cost into the cost.json of each version', false)
    .option('--seed <n>', 'of the made-up requests', seed, 1)
    .option('--json', 'print the profile as one JSON object instead of text', false);
}

const HELP = `
Runs every version of the model repository through the backend, as a worker would, on made-up requests of the values that its golden cases have:
  one request at a time, over candidates and rows of sequences, by kernel and memory domain: fitted to a cost model, and held against shapes that
  it was not fitted to; batches of several requests; and, where the backend has both kernels, dense against sparse over shares of zeros.
Times are those on the accelerator; packing and queueing are not in them. Leave the machine alone meanwhile: what else runs on it is in the figures.

--policy writes thresholds that were measured, and checks them against the fleet: the sparse kernel below the share of non-zeros where it was
faster with every version that has it, the fastest target by number of candidates for the rest. It knows nothing of load. For several
accelerators profile each on its machine, with --out, and give the files to the last one --with.
--costs changes cost.json, which belongs to a version: extractors read it when they start, and a published version gets another digest by it.

Exit code: 0 done, 1 a version could not be measured, 2 refused.

Examples:
  millrace profile
  millrace profile --backend sparse-cpu --family ads --out cpu.json --policy starter.yaml
  millrace profile --accelerator gpu-a100 --backend open-inference --with cpu.json --policy starter.yaml --fleet fleet.yaml
  millrace profile --costs --family ranker@2 --measure-time 30s
  millrace profile refit http://worker-1:9464/metrics http://worker-2:9464/metrics`;

async function profile(context: CliContext, flags: ProfileFlags): Promise<void> {
  const loaded = loadSettings(context.environment, {
    'worker.backend': flags.backend,
    models: flags.models,
    fleet: flags.fleet,
  });
  const others = namesIn(flags.with ?? '').map((file) =>
    readProfile(file, readUserFile(file, 'the profile', PROFILE_BYTES_MAX).toString('utf8')),
  );
  checkNamedOnce([flags.accelerator, ...others.map(({ accelerator }) => accelerator)]);
  if (flags.policy !== undefined) checkOthersInFleet(loaded, others);
  for (const file of [flags.out, flags.policy]) if (file !== undefined) checkWritable(file);
  const { settings } = loaded;
  const repository = await openModels(settings, cliTelemetry(settings));
  const measured = await measure(context, loaded, repository, flags);
  if (measured.failed.length > 0) context.exitCode = 1;
  // Told before anything is written: what was measured is not lost where it cannot be.
  const text = flags.json ? JSON.stringify(measured) : profileLines(measured).join('\n');
  context.stdout.write(`${text}\n`);
  const written = write(loaded, repository, flags, [measured, ...others]);
  if (!flags.json && written.length > 0)
    context.stdout.write(`\n${written.map((file) => `written: ${file}\n`).join('')}`);
}

/** @returns the files */
function write(
  loaded: LoadedSettings,
  repository: ModelRepository,
  { out, policy, policyName, costs }: ProfileFlags,
  profiles: readonly [measured: AcceleratorProfile, ...others: AcceleratorProfile[]],
): string[] {
  const [measured] = profiles;
  if (out !== undefined) writeUserFile(out, `${JSON.stringify(measured, null, 2)}\n`);
  if (policy !== undefined) writePolicy(loaded, policy, policyName, profiles);
  const changed = costs ? writeCosts(repository, measured) : [];
  return [out, policy, ...changed].filter((file) => file !== undefined);
}

async function measure(
  context: CliContext,
  loaded: LoadedSettings,
  repository: ModelRepository,
  flags: ProfileFlags,
): Promise<AcceleratorProfile> {
  const { settings } = loaded;
  const { clock } = context;
  const random = seededRandom(flags.seed);
  const versions = versionsNamed(repository, flags.family);
  const accelerator = createBackend(settings, flags.accelerator, { repository, clock, random });
  if (flags.policy !== undefined) checkFleet(loaded, flags.accelerator, accelerator.capabilities);
  let now = '';
  const measuring = measureAccelerator({
    ...{ name: flags.accelerator, accelerator, repository, versions, clock, random },
    ...{ seed: flags.seed, measureMs: flags.measureTime },
    onVersion: ({ family, version }) => {
      now = `measuring ${family}@${version}`;
    },
  });
  try {
    return await waitingFor(context, () => now, measuring);
  } finally {
    await accelerator.close();
  }
}

/** @throws MillraceError INVALID_CONFIG for a name that is no family of the repository, or no version of it */
function versionsNamed(
  { root, families, refused }: ModelRepository,
  names: string | undefined,
): ModelVersion[] {
  const all = families.flatMap(({ versions }) => versions);
  if (names === undefined && all.length > 0) return all;
  const shown = all.map(({ family, version }) => `${family}@${version}`);
  const found = namesIn(names ?? '').map((named) => {
    const isNamed = ({ family, version }: { family: string; version: string }): boolean =>
      named === family || named === `${family}@${version}`;
    const matching = all.filter(isNamed);
    if (matching.length > 0) return matching;
    const why = refused.find(isNamed);
    throw new MillraceError(
      'INVALID_CONFIG',
      why?.error.message ?? 'there is no such model in the repository',
      {
        value: named,
        allowed: listNames(shown),
      },
    );
  });
  if (found.length > 0) return [...new Set(found.flat())];
  throw new MillraceError('INVALID_CONFIG', 'there is no model version to measure', { value: root });
}

/** @throws MillraceError INVALID_CONFIG */
function checkNamedOnce(accelerators: readonly string[]): void {
  const twice = accelerators.find((name, n) => accelerators.indexOf(name) < n);
  if (twice === undefined) return;
  throw new MillraceError('INVALID_CONFIG', 'two profiles are of the same accelerator', {
    value: twice,
    advice: 'One per class of the fleet: say which one this machine stands for with --accelerator',
  });
}

/**
 * Before anything is measured: a policy for this machine would name what the fleet has.
 * @throws MillraceError INVALID_CONFIG
 */
function checkFleet(
  loaded: LoadedSettings,
  accelerator: string,
  { kernels, memories }: AcceleratorCapabilities,
): void {
  const targets = kernels.flatMap((kernel) => memories.map((memory) => ({ kernel, memory })));
  checkInFleet(readNamedFleet(loaded), accelerator, targets);
}

/** The same of what other machines measured. @throws MillraceError INVALID_CONFIG */
function checkOthersInFleet(loaded: LoadedSettings, others: readonly AcceleratorProfile[]): void {
  const fleet = readNamedFleet(loaded);
  for (const { accelerator, versions } of others)
    checkInFleet(
      fleet,
      accelerator,
      versions.flatMap(({ targets }) => targets),
    );
}

/** @throws MillraceError INVALID_CONFIG, INVALID_POLICY where it would not pass `policy validate` */
function writePolicy(
  loaded: LoadedSettings,
  file: string,
  policyName: string,
  profiles: readonly AcceleratorProfile[],
): void {
  const text = starterPolicy(policyName, profiles, readNamedFleet(loaded));
  const { problems } = checkPolicyFile(Buffer.from(text), loaded.settings);
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new DocumentError('INVALID_POLICY', errors);
  writeUserFile(file, text);
}
