import { createHash } from 'node:crypto';
import {
  type CommandType,
  type ControlEvent,
  makeControlCommand,
  type ScoreRequest,
} from '../../src/contracts/records.ts';
import type { ControllerEvent } from '../../src/core/control/controller-event.ts';
import { inForce } from '../../src/core/control/fence.ts';
import { readControllerEvent } from '../../src/core/control/read-event.ts';
import type { Fleet } from '../../src/core/policy/fleet.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { partitionForKey } from '../../src/core/request/partition.ts';
import { replay } from '../../src/core/rollout/replay.ts';
import type { ServiceProfile } from '../../src/inference/simulated/profiles.ts';
import { readCatalogue } from '../../src/traffic/catalogue.ts';
import { createRequestMaker } from '../../src/traffic/request-maker.ts';
import { builtIn, type Layout, PARTITIONS } from './fleet.ts';
import { Installation } from './installation.ts';
import type { Memory, Pools } from './tuning-domains.ts';

const catalogue = readCatalogue('models/catalogue');
const SCOPE = 'policy/tuned';
/** Bytes. */
export const FLOOR = { home: 1_600, min: 900, max: 4_800 };
/** Of the model's inputs that no client sends: the length of a history, and for each candidate the request that it is of. */
const INDEX_BYTES = 8;
/** Requests have 4 … 40 candidates, as many of each order of magnitude. */
const CANDIDATES_MIN = 4;
const CANDIDATES_RATIO = 10;
/** After a look what follows from it is in the log, and the routers follow. */
const TOLD_MS = 50;
/** Encoded once, sent over and over. */
const CORPUS = 500;

const FLEET: Fleet = {
  name: 'tuned',
  accelerators: new Map(
    [
      ['gpu-a100', 'a100'],
      ['gpu-v100', 'v100'],
    ].map(([accelerator = '', pool = '']) => [
      accelerator,
      {
        kernels: ['dense'],
        memories: ['hbm', 'l2'],
        pools: [{ pool, capacityClass: 'dedicated', simulated: true }],
      },
    ]),
  ),
};

/** Both memory domains alike. Candidates count, but a request of 40 does not take ten times as long as one of 4. */
const profileOf = (requestMs: number): ServiceProfile => ({
  accelerator: 'sim',
  launchMs: 1,
  requestMs,
  candidateMs: 0.1,
  jitterSigma: 0.3,
  kernels: { dense: { factor: 1 } },
  memories: { hbm: 1, l2: 1 },
});

/** Large requests go to HBM, small ones to L2: of the same pool, or of another. */
export function tunedPolicyText(version: number, pools: Pools): string {
  return `apiVersion: millrace/v1
kind: RoutingPolicy
name: tuned
version: ${version}
signals: {activationBytes: int}
tree:
  - id: large
    when: 'activationBytes > tune("hbm-floor", ${FLOOR.home}, min: ${FLOOR.min}, max: ${FLOOR.max}, step: 25%)'
    to: {accelerator: gpu-a100, kernel: dense, memory: hbm}
  - id: small
    to: {accelerator: ${pools === 'one' ? 'gpu-a100' : 'gpu-v100'}, kernel: dense, memory: l2}
rollout: {shadow: 1s, canary: {percent: 20, dwell: 10m}, ramp: [50], unit: requestId}
`;
}

function layoutOf({ pools, requestMs }: TunedPipelineOptions): Layout {
  return {
    fleet: FLEET,
    slots: new Map(pools === 'one' ? [['a100', 2]] : ['a100', 'v100'].map((pool) => [pool, 2])),
    builtIn: builtIn(Buffer.from(tunedPolicyText(1, pools)), FLEET),
    profile: profileOf(requestMs),
    windowMs: 250,
  };
}

export interface TunedPipelineOptions {
  readonly seed: number;
  readonly pools: Pools;
  readonly periodMs: number;
  /** Of a domain in a period, for it to be judged. */
  readonly requestsMin: number;
  /** Poisson; 60 % of them are large. */
  readonly requestsPerPeriod: number;
  /** Of the device, for a request without candidates. */
  readonly requestMs: number;
  readonly rollout?: 'immediate' | 'staged';
  /** Factor of the rate. */
  readonly traffic?: (nowMs: number) => number;
}

/** What an auditor reads in the log of control events. */
export interface Audited {
  readonly record: ControlEvent;
  readonly event: ControllerEvent;
}

export type PolicyTuned = Extract<ControllerEvent, { type: 'policy-tuned' }>;

/** The whole pipeline in virtual time, wired as in production, with a policy whose one constant divides the traffic between two memory domains. */
export class TunedPipeline {
  readonly installation: Installation;
  readonly log: Audited[] = [];
  /** Periods that have ended. */
  looks = 0;
  readonly options: TunedPipelineOptions;
  readonly #draws: Generator;
  #corpus: readonly { key: Buffer; value: Buffer }[] = [];
  #isSending = true;
  #sent = 0;
  #commands = 0;

  private constructor(options: TunedPipelineOptions) {
    this.options = options;
    this.installation = new Installation({
      seed: options.seed,
      deliveryDelayMs: 1,
      topology: 'split',
      layout: layoutOf(options),
      controller: {
        'controller.tuning': true,
        'controller.tuningPeriodMs': options.periodMs,
        'controller.tuningRequestsMin': options.requestsMin,
        'controller.rollout': options.rollout ?? 'immediate',
        'controller.shadowRequestsMin': 50,
        'controller.lookMs': 500,
      },
    });
    this.#draws = this.installation.random.stream('tuned traffic');
  }

  /** Version 1 is live, and traffic comes. */
  static async open(options: TunedPipelineOptions): Promise<TunedPipeline> {
    const pipeline = new TunedPipeline(options);
    await pipeline.#open();
    return pipeline;
  }

  async #open(): Promise<void> {
    const { installation, log } = this;
    await installation.open();
    installation.startAll();
    await installation.allSettled();
    await installation.clock.advanceBy(500);
    const { bus, codecs, topics } = installation.client;
    await installation.settle(
      bus.read({ topics: [topics.fixed('control-events')], startAt: 'earliest' }, (records) => {
        for (const { value } of records) {
          const decoded = codecs.for('ControlEvent').decode(value);
          const event = decoded.status === 'ok' ? readControllerEvent(decoded.value.evidence) : undefined;
          if (decoded.status !== 'ok' || event === undefined) continue;
          log.push({ record: decoded.value, event });
          if (event.type === 'tuning-looked') this.looks += 1;
        }
      }),
    );
    await this.command('PUBLISH_POLICY', tunedPolicyText(1, this.options.pools));
    this.#corpus = this.#makeCorpus();
    this.#sendOn();
  }

  /** Sends a command, and waits until it is decided. @throws where it is refused */
  async command(type: CommandType, body = ''): Promise<void> {
    this.#commands += 1;
    const { installation, log } = this;
    const { bus, codecs, topics } = installation.client;
    const commandId = `command-${this.#commands}`;
    const command = { commandId, scope: SCOPE, type, body: Buffer.from(body), actor: 'test' };
    const value = codecs.for('ControlCommand').encode(makeControlCommand(command));
    const key = Buffer.from(SCOPE);
    await installation.settle(bus.produce({ topic: topics.fixed('control'), partition: 0, key, value }));
    const isDecided = (): boolean => log.some(({ record }) => record.commandId === commandId);
    await installation.clock.runUntil(isDecided, 10_000);
    const refused = log.find(({ record }) => record.commandId === commandId && !record.accepted);
    if (!isDecided() || refused !== undefined) throw new Error(`${type}: ${refused?.record.reason}`);
  }

  /** Lets so many of the controller's periods end; the last one just has. */
  async periods(count: number): Promise<void> {
    const wanted = this.looks + count;
    const limitMs = (count + 2) * this.options.periodMs;
    if (!(await this.installation.clock.runUntil(() => this.looks >= wanted, limitMs)))
      throw new Error(`${wanted - this.looks} of ${count} periods did not end`);
    await this.installation.clock.advanceBy(TOLD_MS);
  }

  /** Lets this part of a period pass. */
  async partOfPeriod(part: number): Promise<void> {
    await this.installation.clock.advanceBy(part * this.options.periodMs);
  }

  /** Children of the policy, by whoever moved the constant. */
  get children(): PolicyTuned[] {
    return this.log.flatMap(({ event }) => (event.type === 'policy-tuned' ? [event] : []));
  }

  /** Steps that the controller took, with the number of the period that each ended. */
  get steps(): { period: number; event: PolicyTuned; direction: 'up' | 'down' }[] {
    let period = 0;
    let direction: 'up' | 'down' = 'up';
    return this.log.flatMap(({ event }) => {
      if (event.type === 'tuning-looked') period += 1;
      if (event.type === 'tuning-stepped') direction = event.direction;
      return event.type === 'policy-tuned' && event.actor === 'tuning' ? [{ period, event, direction }] : [];
    });
  }

  /**
   * Lets time pass, and answers where the requests went that ended in it: of those that the untuned policy sends to a domain, the share that another one had.
   */
  async moved(pass: () => Promise<void>): Promise<Record<Memory, number>> {
    const { results } = this.installation.auditor;
    const before = results.length;
    await pass();
    const of = (memory: Memory): number => {
      const meant = results.slice(before).filter(({ requestId }) => requestId.startsWith(memory));
      return meant.filter(({ target }) => target?.memory !== memory).length / Math.max(1, meant.length);
    };
    return { hbm: of('hbm'), l2: of('l2') };
  }

  /** Ends the traffic, drains, and answers what is wrong with the books, the log and the steps. */
  async close(): Promise<string[]> {
    const { installation } = this;
    this.#isSending = false;
    await installation.clock.advanceBy(5_000);
    const { auditor, ledger } = installation;
    await installation.settle(auditor.checkAllCommitted());
    const summary = ledger.summary();
    const isClosed =
      summary.balanced && summary.ingress === this.#sent && summary.outcomes.scored === this.#sent;
    const behind = await installation.routersBehind();
    for (const host of installation.up()) await installation.settle(installation.close(host));
    return [
      ...(isClosed ? [] : [`the books are not closed: ${this.#sent} sent, ${JSON.stringify(summary)}`]),
      ...auditor.violations,
      ...behind.map((router) => `${router} does not follow`),
      ...auditSteps(this.log),
    ];
  }

  #sendOn(): void {
    const { client } = this.installation;
    const { periodMs, requestsPerPeriod, traffic } = this.options;
    const one = this.#corpus[this.#draws.below(CORPUS)];
    if (!this.#isSending || one === undefined) return;
    this.#sent += 1;
    const partition = partitionForKey(one.key, PARTITIONS);
    void client.bus.produce({ topic: client.topics.ingress(), partition, ...one });
    const perMs = (requestsPerPeriod * (traffic?.(client.clock.monotonicMs()) ?? 1)) / periodMs;
    client.clock.after(-Math.log(1 - this.#draws.next()) / perMs, () => this.#sendOn());
  }

  #makeCorpus(): { key: Buffer; value: Buffer }[] {
    const { client, random } = this.installation;
    const codec = client.codecs.for('ScoreRequest');
    const maker = createRequestMaker(catalogue, random.stream('requests'), { deadlineMs: 60_000 });
    return Array.from({ length: CORPUS }, (_, n) => {
      // evenly over the orders of magnitude, so that no corpus is luckier than another
      const candidates = Math.floor(CANDIDATES_MIN * CANDIDATES_RATIO ** ((n + 0.5) / CORPUS));
      const request = maker.make('', { candidates, historyRows: 0 });
      const requestId = `${homeOf(request)} ${n}`;
      return { key: Buffer.from(requestId), value: codec.encode({ ...request, requestId }) };
    });
  }
}

/** Where the untuned policy sends a request. */
function homeOf({ requestTensors, candidateTensors, baselineCandidates }: ScoreRequest): Memory {
  const sent = [...requestTensors, ...candidateTensors];
  const sentBytes = sent.reduce((bytes, { contents }) => bytes + contents.length, 0);
  return sentBytes + INDEX_BYTES * (1 + (baselineCandidates ?? 0)) > FLOOR.home ? 'hbm' : 'l2';
}

/** What must hold of every log, whatever happened. */
function auditSteps(log: readonly Audited[]): string[] {
  const wrong: string[] = [];
  let steppedSinceLook = 0;
  let epoch = 0;
  let rollout = 'none';
  for (const { event, record } of log) {
    if (event.type === 'tuning-looked') {
      steppedSinceLook = 0;
      rollout = event.observation.rollout;
    }
    if (record.scope !== SCOPE) continue;
    if (record.epoch < epoch) wrong.push(`${event.type} has epoch ${record.epoch}, after ${epoch}`);
    if (event.type !== 'policy-tuned') {
      epoch = Math.max(epoch, record.epoch);
      continue;
    }
    const told = `version ${event.policy.version}`;
    const digest = `sha256:${createHash('sha256').update(event.text).digest('hex')}`;
    if (digest !== event.policy.digest) wrong.push(`${told} has the digest of another text`);
    if (record.epoch !== epoch + 1) wrong.push(`${told} has epoch ${record.epoch}, after ${epoch}`);
    if (event.reason === '') wrong.push(`${told} has no reason`);
    if (event.value < FLOOR.min || event.value > FLOOR.max) wrong.push(`${told} is at ${event.value}`);
    epoch = record.epoch;
    if (event.actor !== 'tuning') continue;
    steppedSinceLook += 1;
    if (steppedSinceLook > 1) wrong.push(`${told} is a second step in one period`);
    if (rollout === 'canary' || rollout === 'ramp') wrong.push(`${told} is a step in ${rollout}`);
  }
  const inTheirTerm = inForce(log.map(({ event, record: { term } }) => ({ event, term })));
  const { disagreements } = replay(inTheirTerm.map(({ event }) => event));
  return [...wrong, ...disagreements.map((each) => `it cannot be derived again: ${JSON.stringify(each)}`)];
}
