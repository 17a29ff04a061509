import { fileURLToPath } from 'node:url';
import { type CompiledPolicy, compilePolicy } from '../src/core/policy/compile.ts';
import type { PolicyDocument } from '../src/core/policy/document.ts';
import { parsePolicy } from '../src/core/policy/parse.ts';
import { validatePolicy } from '../src/core/policy/validate.ts';

/** What a decision costs, and what a swap of policies costs. `node bench/policy.ts` prints it. */

/** One figure; a target is held where `value relation target` is true. */
export interface BenchRow {
  readonly metric: string;
  readonly value: number;
  readonly unit: string;
  readonly target?: number;
  readonly relation?: '<=' | '>=';
}

const SEED = 20_260_101;
const SIGNAL_NAMES = ['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7'];
/** Enough different requests that the branch predictor can't learn them by heart. */
const REQUESTS = 4_096;
const DECISION_ROUNDS = 1_001;

export async function run(): Promise<{ rows: BenchRow[] }> {
  const random = linearCongruential(SEED);
  const requests = Array.from({ length: REQUESTS }, () => Float64Array.from(SIGNAL_NAMES, random));
  const rows = [...decisionRows(8, 60, requests, random), ...decisionRows(64, 150, requests, random)];
  const largest = JSON.stringify(largestPolicy(random));
  const document = parsePolicy(largest);
  const compileMs = medianMs(41, () => compile(document));
  const parseMs = medianMs(7, () => parsePolicy(largest));
  const validateMs = medianMs(7, () => validatePolicy(document));
  rows.push(
    { metric: 'compile, 4 096 nodes', value: round(compileMs), unit: 'ms', target: 50, relation: '<=' },
    { metric: 'parse, 4 096 nodes', value: round(parseMs), unit: 'ms' },
    { metric: 'validate, 4 096 nodes', value: round(validateMs), unit: 'ms' },
  );
  return { rows };
}

function decisionRows(
  rules: number,
  targetNs: number,
  requests: readonly Float64Array[],
  random: () => number,
): BenchRow[] {
  const policy = compile(parsePolicy(JSON.stringify(rulesPolicy(rules, random))));
  const decideAll = () => {
    let sum = 0;
    for (const signals of requests) sum += policy.decide(signals);
    return sum;
  };
  const rulesSeen = decideAll() / requests.length + 1;
  const decisionNs = (medianMs(DECISION_ROUNDS, decideAll) * 1e6) / requests.length;
  return [
    {
      metric: `decision, ${rules} rules`,
      value: round(decisionNs),
      unit: 'ns',
      target: targetNs,
      relation: '<=',
    },
    { metric: `rules looked at, of ${rules}`, value: round(rulesSeen), unit: 'rules' },
    {
      metric: `allocated per decision, ${rules} rules`,
      value: round(allocatedBytes(decideAll) / requests.length),
      unit: 'B',
    },
  ];
}

function compile(document: PolicyDocument): CompiledPolicy {
  return compilePolicy(document, { signalNames: SIGNAL_NAMES });
}

/** The median over rounds: where they are shorter than a time slice, neighbours on the machine disturb few of them. */
function medianMs(rounds: number, work: () => unknown): number {
  const timesMs = Array.from({ length: rounds }, () => {
    const start = performance.now();
    work();
    return performance.now() - start;
  });
  return median(timesMs);
}

/** The median growth of the heap, over rounds in which no garbage collection hid it. */
function allocatedBytes(work: () => unknown): number {
  const grown = Array.from({ length: 101 }, () => {
    const before = process.memoryUsage().heapUsed;
    work();
    return process.memoryUsage().heapUsed - before;
  });
  return median(grown.filter((bytes) => bytes >= 0));
}

function median(samples: number[]): number {
  return samples.sort((a, b) => a - b)[samples.length >> 1] ?? Number.NaN;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/**
 * Rules of two comparisons each, on signals spread evenly over 0 … 1. Each rule takes about 2 in n of what gets to it, so that requests end all
 * over the list.
 */
function rulesPolicy(rules: number, random: () => number): Record<string, unknown> {
  const signal = () => SIGNAL_NAMES[Math.floor(random() * SIGNAL_NAMES.length)];
  const tree = Array.from({ length: rules - 1 }, (_, index) => ({
    id: `rule-${index}`,
    when: `${signal()} > ${(1 - (2 + 2 * random()) / rules).toFixed(4)} && ${signal()} < ${(0.4 + random() / 2).toFixed(4)}`,
    to: { accelerator: 'cpu', kernel: 'dense', memory: 'host' },
  }));
  return head([...tree, { id: 'rest', to: { accelerator: 'cpu', kernel: 'dense', memory: 'host' } }]);
}

/** As many branches as the limits of a document let through: 4 095 nodes, 60 KB. */
function largestPolicy(random: () => number): Record<string, unknown> {
  // A branch is six nodes: itself, its id and condition, the target and its two names. The head and the last branch are 18.
  const branches = Math.floor((4_096 - 18) / 6);
  const tree = Array.from({ length: branches }, (_, index) => ({
    id: `b${index}`,
    when: `s${index % 8}>${random().toFixed(2)}&&s${(index + 3) % 8}<${random().toFixed(2)}`,
    to: { accelerator: 'cpu', kernel: 'dense' },
  }));
  return head([...tree, { id: 'rest', to: { accelerator: 'cpu', kernel: 'dense' } }]);
}

function head(tree: readonly unknown[]): Record<string, unknown> {
  const signals = Object.fromEntries(SIGNAL_NAMES.map((name) => [name, 'double']));
  return { apiVersion: 'millrace/v1', kind: 'RoutingPolicy', name: 'bench', version: 1, signals, tree };
}

/** Numerical Recipes' generator: the same requests in every run. */
function linearCongruential(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { rows } = await run();
  for (const { metric, value, unit, target, relation } of rows) {
    console.log(
      `${metric}: ${value} ${unit}${target === undefined ? '' : ` (target ${relation} ${target})`}`,
    );
  }
}
