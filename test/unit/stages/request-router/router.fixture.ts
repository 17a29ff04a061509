import type { RecordCodec } from '../../../../src/contracts/codec.ts';
import type { Dispatch, DispatchAck, PoolStatus } from '../../../../src/contracts/records.ts';
import { makeDispatchAck, makePoolStatus, type RoutableRequest } from '../../../../src/contracts/records.ts';
import type { ErrorCode } from '../../../../src/core/errors.ts';
import { compilePolicy } from '../../../../src/core/policy/compile.ts';
import { parsePolicy } from '../../../../src/core/policy/parse.ts';
import { parseFleet } from '../../../../src/core/policy/parse-fleet.ts';
import { seededRandom } from '../../../../src/core/random/seeded-random.ts';
import type { OutboundRecord } from '../../../../src/ports/message-bus.ts';
import { virtualClock } from '../../../../src/simulation/virtual-clock.ts';
import type { ActiveCanary, ActivePolicy } from '../../../../src/stages/request-router/active-policy.ts';
import type { RouteJob } from '../../../../src/stages/request-router/route-job.ts';
import { Router, type RouterConfig } from '../../../../src/stages/request-router/router.ts';
import { createResultWriter } from '../../../../src/stages/results.ts';
import { codecs, inbound, resultOf, routable, topics } from '../records.fixture.ts';

const FLEET = parseFleet(
  Buffer.from(`
apiVersion: millrace/v1
kind: Fleet
name: test
accelerators:
  cpu: {kernels: [dense, sparse], memories: [host], pools: [{pool: cpu, capacityClass: dedicated}]}
  gpu-a100: {kernels: [dense], memories: [hbm], pools: [{pool: gpu, capacityClass: dedicated}]}
`),
);

/** Wide requests go to the GPU, all others to the CPU. */
export const TREE = `
  - {id: wide, when: candidateCount > 100, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}, fallback: [cpu]}
  - {id: rest, to: {accelerator: cpu, kernel: dense, memory: host}}`;

/** @param more fields of the document, as YAML */
export function policy(tree = TREE, version = 1, more = ''): ActivePolicy {
  const text = `
apiVersion: millrace/v1
kind: RoutingPolicy
name: test
version: ${version}
signals: {candidateCount: int}
tree:${tree}
${more}
`;
  const compiled = compilePolicy(parsePolicy(Buffer.from(text)), { fleet: FLEET });
  return {
    ref: { digest: `sha256:${version}`, name: 'test', version },
    epoch: version,
    compiled,
    source: 'store',
  };
}

/** Everything goes to the GPU. */
export const CANDIDATE_TREE = `
  - {id: all, to: {accelerator: gpu-a100, kernel: dense, memory: hbm}, fallback: [cpu]}`;

export function canary(fields: Partial<ActiveCanary> = {}): ActiveCanary {
  return {
    policy: policy(CANDIDATE_TREE, 2),
    mode: 'canary',
    percent: 50,
    salt: 'salt',
    unit: 'bucketKey',
    ...fields,
  };
}

export function status(fields: Partial<PoolStatus> = {}): PoolStatus {
  return makePoolStatus({
    pool: 'cpu',
    capacityClass: 'DEDICATED',
    worker: 'w1',
    incarnation: 'i1',
    sequence: 1,
    accelerator: 'cpu',
    backend: 'none',
    slots: [0],
    kernels: ['dense'],
    memories: ['host'],
    models: [{ family: 'ranker', version: '1', variant: 'BASELINE' }],
    batchRequests: 1,
    ...fields,
  });
}

export function ack(fields: Partial<DispatchAck> = {}): DispatchAck {
  return makeDispatchAck({
    router: 'router#1',
    worker: 'w1',
    incarnation: 'i1',
    pool: 'cpu',
    slot: 0,
    ...fields,
  });
}

/** A request in the router's hands, and what became of it. */
export interface RoutedJob extends RouteJob {
  readonly outputs: OutboundRecord[];
  readonly letters: { code: ErrorCode; message: string }[];
  ends: number;
  abandonments: number;
}

export function startRouter(
  options: {
    config?: Partial<RouterConfig>;
    policy?: ActivePolicy;
    canary?: ActiveCanary;
    dispatchCodec?: RecordCodec<Dispatch>;
  } = {},
) {
  const clock = virtualClock();
  const router = new Router(
    {
      router: 'router#1',
      ackPartition: 2,
      creditsMax: 2,
      statusStaleMs: 1_000,
      giveUpGraceMs: 1_000,
      poolsOf: (accelerator) => ({ cpu: ['cpu'], 'gpu-a100': ['gpu'] })[accelerator] ?? [],
      ...options.config,
    },
    {
      clock,
      topics,
      random: seededRandom(1).stream('ties'),
      dispatchCodec: options.dispatchCodec ?? codecs.for('Dispatch'),
      results: createResultWriter(codecs.for('ScoredResult'), topics.fixed('scored-results'), 4),
    },
    options.policy ?? policy(),
    options.canary,
  );
  const routed: RoutedJob[] = [];
  /** Its deadline is 100 ms from now unless told otherwise. */
  const route = (
    fields: Partial<RoutableRequest> = {},
    times: Partial<Pick<RouteJob, 'receivedAtMs' | 'inTopicMs' | 'deadlineMs' | 'record'>> = {},
  ): RoutedJob => {
    const nowMs = clock.monotonicMs();
    const job: RoutedJob = {
      request: routable({ requestId: `r${routed.length + 1}`, ...fields }),
      record: inbound(),
      receivedAtMs: nowMs,
      inTopicMs: 0,
      deadlineMs: nowMs + 100,
      ...times,
      outputs: [],
      letters: [],
      ends: 0,
      abandonments: 0,
      finish(outputs) {
        job.ends += 1;
        job.outputs.push(...outputs);
      },
      deadLetter(code, message) {
        job.ends += 1;
        job.letters.push({ code, message });
      },
      abandon() {
        job.ends += 1;
        job.abandonments += 1;
      },
    };
    routed.push(job);
    router.route(job);
    return job;
  };
  /** Takes the only slot's credits with requests of its own; answers their sequences. */
  const exhaust = (): number[] => {
    const sequences: number[] = [];
    for (;;) {
      const job = route();
      if (job.ends === 0) {
        router.abandon((record) => record === job.record);
        return sequences;
      }
      sequences.push(dispatchOf(job).sequence);
    }
  };
  return { clock, router, route, exhaust, routed };
}

export function dispatchOf(job: RoutedJob): Dispatch {
  const [output, ...more] = job.outputs;
  if (output === undefined || more.length > 0) throw new Error(`${job.outputs.length} outputs`);
  const decoded = codecs.for('Dispatch').decode(output.value);
  if (decoded.status !== 'ok') throw new Error(`no dispatch: ${JSON.stringify(decoded)}`);
  return decoded.value;
}

export function resultFor(job: RoutedJob) {
  if (job.outputs.length !== 1) throw new Error(`${job.outputs.length} outputs`);
  return resultOf(job.outputs[0]);
}
