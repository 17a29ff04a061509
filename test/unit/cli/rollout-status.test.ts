import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ControllerInput } from '../../../src/core/control/controller-command.ts';
import type { ControllerEvent } from '../../../src/core/control/controller-event.ts';
import { decide, evolve, INITIAL_CONTROLLER_STATE } from '../../../src/core/control/controller-state.ts';
import { DEFAULT_ROLLOUT } from '../../../src/core/policy/document.ts';
import type { Observation } from '../../../src/core/rollout/observation.ts';
import { DEFAULT_LIMITS, type RolloutTerms, stagesOf } from '../../../src/core/rollout/rollout-terms.ts';
import { type ControlRoom, controlRoom } from '../client/control-room.ts';
import { type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { headScores } from '../core/rollout/rollout.fixture.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

let installation: MemoryInstallation;
let room: ControlRoom;

beforeEach(async () => {
  installation = await memoryInstallation();
  room = await controlRoom(installation);
});

afterEach(async () => {
  await room.close();
  await installation.close();
});

const T0 = Date.UTC(2026, 10, 30, 12);
const MINUTE_MS = 60_000;
const scope = 'policy/starter';
const sent = (commandId: string) => ({ commandId, scope, actor: 'ana' });
const policy = (version: number) => ({
  digest: `sha256:${String(version).repeat(64)}`,
  name: 'starter',
  version,
});
const publish = (version: number): ControllerInput => ({
  kind: 'publish-policy',
  ...sent(`p-${version}`),
  policy: policy(version),
  mode: 'staged',
  start: undefined,
});

const TERMS: RolloutTerms = {
  stages: stagesOf(DEFAULT_ROLLOUT),
  unit: 'bucketKey',
  leaseMs: 60_000,
  leaves: ['rest'],
  waivedLeaves: [],
  expect: undefined,
  limits: { ...DEFAULT_LIMITS, shadowRequestsMin: 1_000 },
  queries: [],
  autoPromote: true,
  autoRollback: true,
};
const start = (terms: Partial<RolloutTerms> = {}): ControllerInput => ({
  kind: 'start',
  ...sent('start'),
  version: 2,
  terms: { ...TERMS, ...terms },
  atMs: T0,
});

const arm = (requests: number, errors = 0) => ({
  requests,
  errors,
  deadLettered: 0,
  deadlineMissed: 0,
  over: [Math.round(requests / 2), Math.round(requests / 20), Math.round(requests / 100)] as const,
});

/** A window of five minutes that ends so many minutes after the start. */
function look(minutes: number, fields: Partial<Observation>): ControllerInput {
  const observation: Observation = {
    atMs: T0 + minutes * MINUTE_MS,
    windowMs: 5 * MINUTE_MS,
    stable: arm(0),
    canary: arm(0),
    stableLatencyMs: [2, 5, 9],
    shadow: undefined,
    pools: {},
    metrics: {},
    scores:
      fields.canary === undefined
        ? {}
        : { 'ranker/ctr': headScores(fields.stable?.requests ?? 0, fields.canary.requests) },
    fingerprint: 'f',
    refusals: [],
    modelsNotReady: [],
    ...fields,
  };
  return { kind: 'look', scope, observation };
}

const shadow = (requests: number) => ({
  requests,
  changed: 10,
  changedOutsideDeclared: 0,
  latencyApart: 0,
  exceptions: 0,
  costUsP99: 5,
  leaves: { rest: requests },
  projectedUtilisation: {},
});

/** What a controller would log of these inputs. */
async function logged(...inputs: readonly ControllerInput[]): Promise<ControllerEvent[]> {
  let state = evolve(INITIAL_CONTROLLER_STATE, { type: 'leadership-taken', term: 1 });
  const events: ControllerEvent[] = [{ type: 'leadership-taken', term: 1 }];
  for (const input of inputs) {
    for (const event of decide(state, input)) {
      events.push(event);
      state = evolve(state, event);
    }
  }
  for (const event of events) await tell(event, 1);
  return events;
}

function tell(event: ControllerEvent, term: number): Promise<void> {
  const where = 'scope' in event ? event.scope : 'controller';
  return room.tell({ type: event.type, scope: where, term, evidence: JSON.stringify(event) });
}

function run(...args: readonly string[]) {
  return millrace(args, {
    environment: INSTALLATION,
    transport: () => ({ open: () => installation.open() }),
  });
}
const status = (...args: readonly string[]) => run('policy', 'rollout', 'status', 'starter', ...args);

const SHADOW_PASSED = [5, 10, 15].map((minutes) =>
  look(minutes, { stable: arm(1_000), shadow: shadow(1_000) }),
);

describe('millrace policy rollout status', () => {
  it('says what is live where no rollout runs', async () => {
    await logged(publish(1), publish(2));
    const { out, exitCode } = await status();
    expect(exitCode).toBe(0);
    expect(out).toBe(
      `policy/starter  epoch 1\nlive       version 1  sha256:${'1'.repeat(64)}\npublished  1, 2\nrollout    none runs\n`,
    );
  });

  it('says what the shadow lacks, and when it can go on', async () => {
    await logged(publish(1), publish(2), start(), look(5, { shadow: shadow(400) }));
    const { out } = await status();
    expect(out).toContain('rollout    starter@2  shadow 0 %  (stage 1 of 5) since 2026-11-30T12:00:00.000Z');
    expect(out).toContain('observed   300 s of 900 s, last look 2026-11-30T12:05:00.000Z');
    expect(out).toContain('requests   400 decided by both policies');
    expect(out).toMatch(/missing {4}600 s of the stage's 900 s.*\nmissing {4}400 of 1000 requests/);
    expect(out).toContain('next       canary 5 %, by itself, at the earliest 2026-11-30T12:15:00.000Z');
    expect(out).toMatch(/rolls back on a mean E of 100 .*, at once; a hold of more than 120 min/);
  });

  it('shows the evidence of a canary', async () => {
    const window = { stable: arm(1_900, 2), canary: arm(100, 1) };
    await logged(publish(1), publish(2), start(), ...SHADOW_PASSED, look(20, window));
    const { out } = await status();
    expect(out).toMatch(/canary 5 % {2}\(stage 2 of 5\) since 2026-11-30T12:15:00\.000Z/);
    expect(out).toContain('requests   100 canary, 1900 control; exposure in the last window 5.00 %');
    expect(out).toMatch(/metric +canary +control +harm E +safe E\nerrors +1 +2 +[\d.]+ +[\d.]+\n/);
    expect(out).toMatch(/over p99 +1 +19 /);
    const { rollout } = JSON.parse((await status('--json')).out);
    expect(rollout).toMatchObject({
      candidate: 'starter@2',
      stage: 'canary',
      percent: 5,
      exposure: 0.05,
      requests: { canary: 100, stable: 1_900 },
      hold: null,
      verdict: 'inconclusive',
      next: { to: 'ramp 10 %', by: 'itself' },
    });
    expect(rollout.evidence).toHaveLength(6);
  });

  it('says why it is on hold, and until when', async () => {
    const hold: ControllerInput = { kind: 'hold', ...sent('h'), reason: 'lunch', atMs: T0 + MINUTE_MS };
    await logged(publish(1), publish(2), start({ autoPromote: false, autoRollback: false }), hold);
    const { out } = await status();
    expect(out).toContain(
      'on hold    since 2026-11-30T12:01:00.000Z, rolled back at 2026-11-30T14:01:00.000Z: lunch',
    );
    expect(out).toContain('next       canary 5 %, by a person, not while it is on hold');
    expect(out).toMatch(/rolls back on this hold of more than 120 min \(harm holds/);
  });

  it('shows what the models said in both arms, and holds where that is apart', async () => {
    const scores = {
      'ranker/ctr': headScores(19_000, 1_000),
      'ranker/dwell': headScores(19_000, 1_000, { mean: 0.56 }),
    };
    const window = { stable: arm(19_000), canary: arm(1_000), scores };
    await logged(publish(1), publish(2), start(), ...SHADOW_PASSED, look(20, window));
    const { out } = await status();
    expect(out).toMatch(/head +canary +control +PSI +noise +mean +control mean +apart \(sd\)/);
    expect(out).toMatch(/ranker\/ctr +1000 +19000 +[\d.e-]+ +[\d.]+ +0\.500 +0\.500 +0\.00 ± 0\.0\d+/);
    expect(out).toMatch(/on hold .*: the mean score moved .*ranker\/dwell 0\.5 → 0\.56, 0\.6 ± 0\.0\d+/);
    const { rollout } = JSON.parse((await status('--json')).out);
    expect(rollout.scores).toMatchObject([
      { head: 'ranker/ctr', psiMax: 0.25, moved: false },
      { head: 'ranker/dwell', meanShiftMax: 0.25 },
    ]);
    expect(rollout.scores[1].meanShift).toBeCloseTo(0.6, 6);
    expect((await run('control', 'replay')).exitCode).toBe(0);
  });

  it('shows the queries of the guardrails with what was read of them', async () => {
    const query = { query: 'x', min: undefined, max: undefined, forMs: 0, breach: 'hold' } as const;
    const queries = [
      { ...query, name: 'ctr', min: 0.01 },
      { ...query, name: 'errors', max: 0.5 },
      { ...query, name: 'away', max: 1 },
      { ...query, name: 'later', max: 1 },
    ];
    const metrics = {
      ctr: { series: 1, lowest: 0.02, highest: 0.02 },
      errors: { series: 3, lowest: 0, highest: 0.25 },
      away: { failed: 'unreachable' },
    };
    await logged(publish(1), publish(2), start({ queries }), look(5, { shadow: shadow(400), metrics }));
    const { out } = await status();
    expect(out).toContain('guardrail  ctr: 0.02 at 2026-11-30T12:05:00.000Z; at least 0.01\n');
    expect(out).toContain(
      'guardrail  errors: 0 to 0.25 in 3 series at 2026-11-30T12:05:00.000Z; at most 0.5\n',
    );
    expect(out).toContain('guardrail  away: unreachable; at most 1\n');
    expect(out).toContain('guardrail  later: not read yet; at most 1\n');
    expect(out).toMatch(/on hold .*guardrails could not be read: away: unreachable/);
    expect(out).toContain('missing    guardrail later was not read yet\n');
    expect(JSON.parse((await status('--json')).out).rollout.guardrails).toMatchObject([
      { name: 'ctr', reading: metrics.ctr },
      { name: 'errors' },
      { name: 'away' },
      { name: 'later', reading: null, readAt: null },
    ]);
  });

  it('names the guardrails that roll back, where anything does by itself', async () => {
    const query = { query: 'q', forMs: 0, min: undefined, max: 1, breach: 'roll-back' } as const;
    const queries = [
      { ...query, name: 'errors' },
      { ...query, name: 'clicks', forMs: 90_000 },
      { ...query, name: 'load', breach: 'hold' } as const,
    ];
    await logged(publish(1), publish(2), start({ queries }));
    expect((await status()).out).toMatch(
      /rolls back on a mean E of 100 .*, at once; the guardrail errors out of its bounds; the guardrail clicks out of its bounds for 90 s; a hold of more than 120 min\n$/,
    );
  });

  it('names no guardrail where nothing rolls back by itself', async () => {
    const query = {
      name: 'errors',
      query: 'q',
      forMs: 0,
      min: undefined,
      max: 1,
      breach: 'roll-back',
    } as const;
    await logged(publish(1), publish(2), start({ queries: [query], autoRollback: false }));
    expect((await status()).out).toMatch(/rolls back on a hold of more than 120 min \(harm holds/);
  });

  it('says how the last rollout ended', async () => {
    const abort: ControllerInput = { kind: 'abort', ...sent('a'), reason: 'wrong', atMs: T0 + MINUTE_MS };
    await logged(publish(1), publish(2), start(), abort);
    expect((await status()).out).toContain(
      'the last   version 2: aborted at 2026-11-30T12:01:00.000Z: wrong',
    );
  });

  it('says that the version which it brought to live was rolled back since, until the next one ends', async () => {
    const promote: ControllerInput = {
      ...{ kind: 'promote', ...sent('p'), to: 'live', overHold: false, coSigned: true },
      atMs: T0 + MINUTE_MS,
    };
    const back: ControllerInput = {
      ...{ kind: 'roll-back', ...sent('b'), actor: 'ben', toVersion: undefined },
      atMs: T0 + 2 * MINUTE_MS,
    };
    const toLive = [publish(1), publish(2), start(), promote];
    await logged(...toLive, back);
    const { out } = await status();
    expect(out).toMatch(/live {7}version 1 .*\npublished {2}1, 2\nrollout {4}none runs\n/);
    expect(out).toMatch(
      /the last {3}version 2: live at 2026-11-30T12:01:00\.000Z.*\nthen {7}version 2 rolled back to version 1 at 2026-11-30T12:02:00\.000Z by ben\n$/,
    );
    expect(JSON.parse((await status('--json')).out).changed).toEqual({
      ...{ how: 'rolled-back', from: 2, to: 1, at: '2026-11-30T12:02:00.000Z', actor: 'ben', reason: null },
    });
  });

  it('says that a rollback took a version back that was live at once', async () => {
    const atOnce = { ...publish(2), mode: 'immediate' } as ControllerInput;
    const back: ControllerInput = { kind: 'roll-back', ...sent('b'), toVersion: 1, atMs: T0 };
    await logged(publish(1), atOnce, back);
    expect((await status()).out).toMatch(
      /rollout {4}none runs\nthen {7}version 2 rolled back to version 1 at 2026-11-30T12:00:00\.000Z by ana\n$/,
    );
  });

  it('leaves out what a leader wrote after its time', async () => {
    await logged(publish(1), publish(2));
    await tell({ type: 'leadership-taken', term: 2 }, 2);
    const late = decide(INITIAL_CONTROLLER_STATE, { ...publish(7), mode: 'immediate' } as ControllerInput);
    for (const event of late) await tell(event, 1);
    expect((await status()).out).toContain('published  1, 2\n');
  });

  it('knows no policy of another name', async () => {
    await logged(publish(1));
    const { err, exitCode } = await run('policy', 'rollout', 'status', 'strater');
    expect(exitCode).toBe(2);
    expect(err).toContain(
      'nothing was ever decided about a policy of this name (got "strater"; allowed: starter)',
    );
  });
});

describe('millrace control replay', () => {
  it('derives every decision again', async () => {
    const events = await logged(publish(1), publish(2), start(), ...SHADOW_PASSED);
    expect(events.map(({ type }) => type)).toContain('rollout-advanced');
    const { out, exitCode } = await run('control', 'replay');
    expect(exitCode).toBe(0);
    expect(out).toBe(
      `${events.length} events: ${events.length - 1} derived again and the same, 1 taken as they are (leaderships, refusals), 0 differ\n`,
    );
  });

  it('finds what does not follow, and says it', async () => {
    await logged(publish(1), publish(2), start());
    await tell(
      {
        type: 'rollout-advanced',
        commandId: '',
        scope,
        actor: 'rollout',
        to: 1,
        overridden: [],
        atMs: T0,
        epoch: 3,
      },
      1,
    );
    const { out, exitCode } = await run('control', 'replay');
    expect(exitCode).toBe(1);
    expect(out).toMatch(
      /1 differ\nevent 4 differs:\n {2}in the log {3}\{"type":"rollout-advanced".*\n {2}by the rules nothing\n/,
    );
    const json = await run('control', 'replay', '--json');
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({
      events: 5,
      confirmed: 3,
      taken: 1,
      disagreements: [{ index: 4 }],
    });
  });

  it('counts what this version does not know', async () => {
    await room.tell({ type: 'new', term: 1, evidence: '{"type":"new"}' });
    expect((await run('control', 'replay')).out).toMatch(/^0 events: .*\n1 are of a version/);
  });
});
