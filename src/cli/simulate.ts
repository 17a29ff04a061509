import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { packaged } from '../config/package-root.ts';
import type { Settings } from '../config/settings.ts';
import { checkWritable, fileError, readUserFile, userFilePath, writeUserFile } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { DocumentError } from '../core/policy/problem.ts';
import { seededRandom } from '../core/random/seeded-random.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import { parseSimulatedFleet } from '../simulation/fleet/parse-simulated-fleet.ts';
import type { SimulatedFleet } from '../simulation/fleet/simulated-fleet.ts';
import { withAvailability } from '../simulation/fleet/with-availability.ts';
import { simulatePipeline } from '../simulation/pipeline/simulate-pipeline.ts';
import { compareRuns } from '../simulation/report/compare.ts';
import { simulationPage } from '../simulation/report/simulation-page.ts';
import type { SimulationReport } from '../simulation/report/simulation-report.ts';
import type { SimulationResult } from '../simulation/report/simulation-result.ts';
import type { ActivePolicy } from '../stages/request-router/active-policy.ts';
import { type Catalogue, readCatalogue } from '../traffic/catalogue.ts';
import { readSpotAvailability } from '../traffic/import/spot-availability-json.ts';
import { createRequestMaker } from '../traffic/request-maker.ts';
import { DEFAULT_TRACE_MAPPING } from '../traffic/trace-inference-csv.ts';
import type { TrafficPlan } from '../traffic/traffic-plan.ts';
import { openModels } from '../wiring/backends.ts';
import { compileChecked, digestOf } from '../wiring/policy-files.ts';
import { chartLibrary } from './chart-library.ts';
import { type CliContext, cliTelemetry } from './context.ts';
import { count, duration, durationOrNone, positiveNumber, seed } from './flags.ts';
import { simulationLines } from './simulate-report.ts';
import { planTraffic, type TrafficFlags } from './simulate-traffic.ts';

interface SimulateFlags extends TrafficFlags {
  policy?: string[];
  fleet?: string;
  spot?: string[];
  duration?: number;
  drain: number;
  deadline?: number;
  skew: number;
  seed: number;
  seeds: number;
  compare: boolean;
  json: boolean;
  html?: string;
}

const DURATION_MS = 60_000;

/** `millrace simulate`: the stages of the real pipeline in virtual time. */
export function simulateCommand(context: CliContext): Command {
  const command = new Command('simulate').description(
    'Run traffic through the whole pipeline in virtual time, on a fleet that need not exist: latency, queues, utilisation, outcomes',
  );
  return withOptions(command)
    .addHelpText('after', HELP)
    .action((flags: SimulateFlags) => simulate(context, flags));
}

function withOptions(command: Command): Command {
  return command
    .option('--policy <files...>', 'policies, each in runs of its own (default: the one of the settings)')
    .option('--fleet <file>', 'pools, speeds, capacity over time (default: the fleet of the settings)')
    .option('--spot <pool=file...>', 'a pool has the workers that a record of spot availability lets it have')
    .option('--trace <file>', 'traffic of a trace; its first line says of which format it is')
    .option(
      '--rate <requests>',
      'requests per second on average, made up, or what the trace is brought to',
      positiveNumber,
    )
    .option(
      '--burst <factor/length/every>',
      'bursts of made-up traffic: 3/2s/20s is three times the rate for 2 s of every 20 s',
    )
    .option(
      '--wave <depth/period>',
      'a wave of made-up traffic: 0.5/24h goes 50 % above the mean and below over a day',
    )
    .option('--candidates <least-most>', 'sizes of made-up requests', '8-256')
    .option(
      '--history-rows <n>',
      'most history rows of made-up requests',
      count,
      DEFAULT_TRACE_MAPPING.historyRowsMax,
    )
    .option(
      '--tokens-per-candidate <n>',
      'context tokens of a trace that become one candidate',
      positiveNumber,
      DEFAULT_TRACE_MAPPING.tokensPerCandidate,
    )
    .option('--skew <exponent>', 'Zipf’s exponent by which users are drawn; 0: all alike', nonNegative, 1)
    .option('--deadline <time>', 'deadline of each request (default: the SLA of the model family)', duration)
    .option('--duration <time>', 'virtual time of traffic (default: one pass of the trace, or 1m)', duration)
    .option(
      '--drain <time>',
      'virtual time that the last results are waited for',
      durationOrNone,
      DURATION_MS,
    )
    .option('--seed <n>', 'of everything that is drawn', seed, 1)
    .option('--seeds <n>', 'runs of each policy, with this seed and those after it', count, 1)
    .option(
      '--compare',
      'hold each policy against the first, on the same random streams, with 95 % intervals over the seeds',
      false,
    )
    .option('--json', 'print one JSON object instead of text', false)
    .option('--html <file>', 'write the report as one page with charts, too');
}

const HELP = `
Extractor, router, workers and controller are the code that runs live, with codecs and batches, on a bus in memory; accelerators take the time that
their profiles say. Nothing is measured on a device, and the computing of the stages themselves takes no virtual time: docs/simulate.md says what
that leaves out. The same options and seed give the same JSON, byte for byte.

Exit code: 0 done, 1 a request has no result at the end, 2 refused.

Examples:
  millrace simulate --rate 500 --duration 30s
  millrace simulate --fleet examples/fleets/simulated.yaml --rate 900 --burst 3/2s/20s --html report.html
  millrace simulate --trace examples/traces/azure-llm-inference-code.csv --rate 200 --duration 1m --json
  millrace simulate --policy live.yaml next.yaml --rate 500 --seeds 10 --compare`;

function nonNegative(text: string): number {
  return text === '0' ? 0 : positiveNumber(text);
}

async function simulate(context: CliContext, flags: SimulateFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  if (flags.html !== undefined) checkWritable(flags.html);
  const fleet = fleetOf(
    packaged(flags.fleet ?? settings.fleet, 'examples', 'fleets', 'embedded.yaml'),
    flags.spot ?? [],
  );
  const files = flags.policy ?? [packaged(settings.policy, 'examples', 'policies', 'starter.yaml')];
  if (flags.compare && files.length < 2)
    throw new MillraceError('INVALID_CONFIG', '--compare needs policies to compare', {
      value: files.join(', '),
      allowed: 'two or more after --policy',
    });
  const policies = files.map((file) => readPolicy(file, fleet));
  const traffic = planTraffic(flags);
  const repository = await openModels(settings, cliTelemetry(settings));
  const catalogue = readCatalogue(packaged('', 'models', 'catalogue'));
  const runs: SimulationReport[][] = [];
  const startedMs = context.clock.monotonicMs();
  for (const policy of policies)
    runs.push(await runSeeds(flags, { settings, fleet, policy, traffic, repository, catalogue }));
  const result: SimulationResult = {
    format: 1,
    simulated: true,
    runs: runs.flat(),
    comparisons: flags.compare ? runs.slice(1).map((other) => compareRuns(runs[0] ?? [], other)) : [],
  };
  const tookMs = context.clock.monotonicMs() - startedMs;
  if (result.runs.some(({ ledger }) => !ledger.balanced)) context.exitCode = 1;
  if (flags.html !== undefined) writeUserFile(flags.html, simulationPage(result, chartLibrary()));
  context.stdout.write(
    flags.json ? `${JSON.stringify(result)}\n` : `${simulationLines(result).join('\n')}\n`,
  );
  tellSpeed(context, result, tookMs);
}

interface RunOf {
  settings: Settings;
  fleet: SimulatedFleet;
  policy: ActivePolicy;
  traffic: TrafficPlan;
  repository: ModelRepository;
  catalogue: Catalogue;
}

async function runSeeds(flags: SimulateFlags, of: RunOf): Promise<SimulationReport[]> {
  const reports: SimulationReport[] = [];
  for (let n = 0; n < flags.seeds; n += 1) {
    const random = seededRandom(flags.seed + n);
    const maker = createRequestMaker(of.catalogue, random.stream('requests'), {
      userSkew: flags.skew,
      ...(flags.deadline === undefined ? {} : { deadlineMs: flags.deadline }),
    });
    const { description, spanMs } = of.traffic;
    reports.push(
      await simulatePipeline({
        ...of,
        random,
        digest: digestOf,
        checkPolicy: (bytes) => compileChecked(bytes, of.fleet.fleet).document,
        traffic: { description, arrivals: of.traffic.arrivals(random), maker },
        durationMs: flags.duration ?? (Number.isFinite(spanMs) ? spanMs : DURATION_MS),
        drainMs: flags.drain,
      }),
    );
  }
  return reports;
}

function fleetOf(file: string, spot: readonly string[]): SimulatedFleet {
  let fleet = readSimulatedFleet(file);
  for (const text of spot) {
    const [pool = '', ...rest] = text.split('=');
    const record = rest.join('=');
    if (record === '')
      throw new MillraceError('INVALID_CONFIG', '--spot is not valid', {
        value: text,
        allowed: 'pool=file, such as a100-spot=us-west-2a.json',
      });
    fleet = withAvailability(
      fleet,
      pool,
      readingFile(record, () => readSpotAvailability(userFilePath(record))),
    );
  }
  return fleet;
}

/** What the system says of a file is told as of any file that the user named. */
function readingFile<T>(file: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw fileError('the file cannot be read', file, error, 'read');
  }
}

function readSimulatedFleet(file: string): SimulatedFleet {
  try {
    return parseSimulatedFleet(readUserFile(file, 'the fleet'));
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new MillraceError('INVALID_CONFIG', `the fleet ${file}: ${error.message}`, { cause: error });
  }
}

function readPolicy(file: string, { fleet }: SimulatedFleet): ActivePolicy {
  const bytes = readUserFile(file, 'the policy');
  try {
    const compiled = compileChecked(bytes, fleet);
    const { name, version } = compiled.document;
    return { ref: { digest: digestOf(bytes), name, version }, epoch: 0, compiled, source: 'built-in' };
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    throw new MillraceError('INVALID_POLICY', `${file}, on the fleet ${fleet.name}: ${error.message}`, {
      cause: error,
    });
  }
}

/** Not in the report, which is the same on any machine. */
function tellSpeed({ stderr }: CliContext, { runs }: SimulationResult, tookMs: number): void {
  const virtualMs = runs.reduce((sum, { durationMs }) => sum + durationMs, 0);
  const requests = runs.reduce((sum, { ledger }) => sum + ledger.ingress, 0);
  stderr.write(
    `${requests} requests in ${(tookMs / 1_000).toFixed(1)} s, ${(virtualMs / tookMs).toFixed(1)} times as fast as real time\n`,
  );
}
