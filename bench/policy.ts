import { fileURLToPath } from 'node:url';
import { type CompiledPolicy, compilePolicy } from '../src/core/policy/compile.ts';
import type { PolicyDocument } from '../src/core/policy/document.ts';
import { parsePolicy } from '../src/core/policy/parse.ts';
import { validatePolicy } from '../src/core/policy/validate.ts';

/** What a decision costs, and what a swap of policies costs. `node bench/policy.ts` prints it. */

export interface BenchRow {
  readonly metric: string;
  readonly value: number;
  readonly unit: string;
  readonly target: number | null;
  readonly relation: '<=' | '>=' | null;
}

const SEED = 20_260_101;
const SIGNAL_NAMES = ['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7'];
/** Enough different requests that the branch predictor can't learn them by heart. */
const REQUESTS = 4_096;

export async function run(): Promise<{ rows: BenchRow[] }> {
  const random = linearCongruential(SEED);
  const requests = Array.from({ length: REQUESTS }, () => Float64Array.from(SIGNAL_NAMES, random));
  const rows: BenchRow[] = [];
  for (const [rules, targetNs] of [
    [8, 60],
    [64, 150],
  ] as const) {
    const policy = compile(parsePolicy(JSON.stringify(rulesPolicy(rules, random))));
    rows.push(row(`decision, ${rules} rules`, decisionNs(policy, requests), 'ns', targetNs));
    rows.push(row(`bytes allocated per decision, ${rules} rules`, bytesPerDecision(policy, requests), 'B', 0.5));
  }
  const largest = JSON.stringify(largestPolicy(random));
  const document = parsePolicy(largest);
  rows.push(row('compile, 4 096 nodes', medianMs(41, () => compile(document)), 'ms', 50));
  rows.push(row('parse, 4 096 nodes', medianMs(7, () => parsePolicy(largest)), 'ms', null));
  rows.push(row('validate, 4 096 nodes', medianMs(7, () => validatePolicy(document)), 'ms', null));
  return { rows };
}

function row(metric: string, value: number, unit: string, target: number | null): BenchRow {
  return { metric, value: Math.round(value * 100) / 100, unit, target, relation: target === null ? null : '<=' };
}

function compile(document: PolicyDocument): CompiledPolicy {
  return compilePolicy(document, { signalNames: SIGNAL_NAMES });
}

/** The median of many short rounds, each of them shorter than a time slice, so that neighbours on the machine disturb few of them. */
function decisionNs(policy: CompiledPolicy, requests: readonly Float64Array[]): number {
  let sum = 0;
  const roundMs = medianMs(1_001, () => {
    for (const signals of requests) sum += policy.decide(signals);
  });
  if (!Number.isSafeInteger(sum)) throw new Error('a decision gave no leaf');
  return (roundMs * 1e6) / requests.length;
}

function bytesPerDecision(policy: CompiledPolicy, requests: readonly Float64Array[]): number {
  const passes = 100;
  const before = process.memoryUsage().heapUsed;
  let sum = 0;
  for (let pass = 0; pass < passes; pass++) {
    for (const signals of requests) sum += policy.decide(signals);
  }
  if (!Number.isSafeInteger(sum)) throw new Error('a decision gave no leaf');
  return Math.max(0, process.memoryUsage().heapUsed - before) / (passes * requests.length);
}

function medianMs(rounds: number, work: () => void): number {
  work();
  const timesMs = Array.from({ length: rounds }, () => {
    const start = performance.now();
    work();
    return performance.now() - start;
  });
  timesMs.sort((a, b) => a - b);
  return timesMs[rounds >> 1] ?? Number.NaN;
}

/**
 * Rules of two comparisons each, on signals spread evenly over 0 … 1. Each rule takes about 2 in n of what gets to it, so that requests end all
 * over the list.
 */
function rulesPolicy(rules: number, random: () => number): Record<string, unknown> {
  const signal = () => SIGNAL_NAMES[Math.floor(random() * SIGNAL_NAMES.length)];
  const tree = Array.from({ length: rules - 1 }, (_, index) => ({
    id: `rule-${index}`,
    when: `${signal()} > ${(1 - (2.6 * random()) / rules - 0.02).toFixed(4)} && ${signal()} < ${(0.4 + random() / 2).toFixed(4)}`,
    to: { accelerator: 'cpu', kernel: 'dense', memory: 'host' },
  }));
  return head([...tree, { id: 'rest', to: { accelerator: 'cpu', kernel: 'dense', memory: 'host' } }]);
}

/** As many branches as the limits of a document let through. */
function largestPolicy(random: () => number): Record<string, unknown> {
  // 13 nodes in the head; a branch is a map, an id, a condition, and a target of three.
  return rulesPolicyOf(Math.floor((4_096 - 13 - 5) / 6), random);
}

function rulesPolicyOf(branches: number, random: () => number): Record<string, unknown> {
  const tree = Array.from({ length: branches - 1 }, (_, index) => ({
    id: `b${index}`,
    when: `s${index % 8}>${random().toFixed(3)}&&s${(index + 3) % 8}<${random().toFixed(3)}`,
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
    console.log(`${metric}: ${value} ${unit}${target === null ? '' : ` (target ${relation} ${target})`}`);
  }
}
