import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addObservation,
  describeEvidence,
  judge,
  type StageEvidence,
  startEvidence,
} from '../../../../src/core/rollout/evidence.ts';
import type { ArmObservation, Observation } from '../../../../src/core/rollout/observation.ts';

const SILENT: ArmObservation = {
  requests: 0,
  errors: 0,
  deadLettered: 0,
  deadlineMissed: 0,
  over: [0, 0, 0],
};

/** An arm with half, 5 % and 1 % of its requests over the percentiles of the control. */
function arm(requests: number, changed: Partial<ArmObservation> = {}): ArmObservation {
  return {
    ...SILENT,
    requests,
    over: [Math.round(requests * 0.5), Math.round(requests * 0.05), Math.round(requests * 0.01)],
    ...changed,
  };
}

function look(stable: ArmObservation, canary: ArmObservation, windowMs = 10_000): Observation {
  return {
    atMs: 0,
    windowMs,
    stable,
    canary,
    stableLatencyMs: [10, 20, 40],
    shadow: undefined,
    pools: {},
    scores: {},
    metrics: {},
    fingerprint: '',
    refusals: [],
    modelsNotReady: [],
  };
}

function watched(
  looks: number,
  observation: Observation,
  start = startEvidence({ percent: 5 }),
): StageEvidence {
  let evidence = start;
  for (let i = 0; i < looks; i++) evidence = addObservation(evidence, observation);
  return evidence;
}

const EQUAL = look(arm(9_500), arm(500));

describe('the verdict', () => {
  it.each<[string, StageEvidence, string, RegExp | undefined]>([
    ['nothing seen', startEvidence({ percent: 5 }), 'inconclusive', /no window/],
    ['too early to tell', watched(2, EQUAL), 'inconclusive', /not shown to be safe yet: errors/],
    ['equal for 15 minutes, without any error', watched(90, EQUAL), 'promotable', undefined],
    [
      'equal for 15 minutes, with common errors',
      watched(90, look(arm(9_500, { errors: 95 }), arm(500, { errors: 5 }))),
      'promotable',
      undefined,
    ],
    [
      'better',
      watched(90, look(arm(9_500, { errors: 95 }), arm(500, { over: [100, 10, 2] }))),
      'promotable',
      undefined,
    ],
    [
      'errors against a zero baseline',
      watched(2, look(arm(9_500), arm(500, { errors: 3 }))),
      'roll-back',
      /^errors: 0.6 % \(6 of 1000\) of the canary's requests against 0 % \(0 of 19000\)/,
    ],
    [
      'sparse errors against sparse errors',
      watched(6, look(arm(9_500, { errors: 1 }), arm(500, { errors: 2 }))),
      'roll-back',
      /^errors/,
    ],
    [
      'a change in spread: p50 as before, p99 doubled',
      watched(12, look(arm(9_500), arm(500, { over: [250, 25, 10] }))),
      'roll-back',
      /^over p99/,
    ],
    [
      'one metric 1.5 times worse is never outvoted by five good ones',
      watched(6, look(arm(9_500, { errors: 190 }), arm(500, { errors: 15, over: [50, 5, 1] }))),
      'inconclusive',
      /^not shown to be safe yet: errors/,
    ],
    ['no canary traffic', watched(12, look(arm(10_000), SILENT)), 'hold', /sample ratio: the canary got 0 %/],
    ['a canary that everybody gets', watched(3, look(arm(500), arm(9_500))), 'hold', /sample ratio.*not 5 %/],
    [
      'traffic stops',
      watched(6, look(SILENT, SILENT), watched(90, EQUAL)),
      'hold',
      /no request in either arm for 60 s/,
    ],
    [
      'traffic has just stopped',
      watched(1, look(SILENT, SILENT), watched(90, EQUAL)),
      'inconclusive',
      /no request in either arm for 10 s/,
    ],
    [
      'no control any more',
      watched(6, look(SILENT, arm(1)), watched(90, EQUAL)),
      'hold',
      /no control request for 60 s/,
    ],
    [
      'traffic comes back',
      watched(1, EQUAL, watched(6, look(SILENT, SILENT), watched(90, EQUAL))),
      'promotable',
      undefined,
    ],
    [
      'a long window without anything',
      watched(1, look(SILENT, SILENT, 120_000)),
      'hold',
      /no request in either arm for 120 s/,
    ],
  ])('%s', (_, evidence, kind, reason) => {
    const verdict = judge(evidence);
    expect(verdict).toMatchObject({ kind });
    if ('reason' in verdict) expect(verdict.reason).toMatch(reason ?? /^$/);
  });

  it.each([
    [0, look(arm(10_000), SILENT)],
    [100, look(SILENT, arm(10_000))],
  ])('at %d %% the other arm has nothing to say: no hold, and no pass', (percent, observation) => {
    expect(judge(watched(90, observation, startEvidence({ percent })))).toMatchObject({
      kind: 'inconclusive',
      reason: expect.stringMatching(/not shown to be safe/),
    });
  });

  it('latencies that nobody measured are no sign of speed', () => {
    const unfrozen = look(arm(9_500, { over: [0, 0, 0] }), arm(500, { over: [0, 0, 0] }));
    expect(judge(watched(400, unfrozen))).toMatchObject({
      kind: 'inconclusive',
      reason: expect.stringMatching(/over p50.*over p95.*over p99/),
    });
  });

  it('is promotable only while there is data, whatever was seen before', () => {
    const arms = fc.constantFrom(arm(9_500), arm(500), SILENT, arm(1, { over: [1, 0, 0] }));
    fc.assert(
      fc.property(fc.array(fc.tuple(arms, arms), { maxLength: 30 }), fc.boolean(), (windows, canaryToo) => {
        let evidence = watched(90, EQUAL);
        for (const [stable, canary] of windows) evidence = addObservation(evidence, look(stable, canary));
        evidence = addObservation(evidence, look(canaryToo ? SILENT : arm(9_500), SILENT));
        expect(judge(evidence).kind).not.toBe('promotable');
      }),
      { numRuns: 50 },
    );
  });

  it('rare events pass, but not while they speak for harm', () => {
    const rare = (canaryErrors: number) =>
      watched(1, look(arm(9_500, { errors: 1 }), arm(500, { errors: canaryErrors })), watched(89, EQUAL));
    const safeOf = (evidence: StageEvidence) => describeEvidence(evidence)[0]?.safeE ?? Number.NaN;
    expect(safeOf(rare(0))).toBeGreaterThan(1e6);
    expect(safeOf(rare(1))).toBeLessThan(1);
    expect(judge(rare(1))).toMatchObject({ kind: 'inconclusive' });
  });

  const few = [
    { controlErrors: 0, canaryErrors: 0, passes: true },
    { controlErrors: 40, canaryErrors: 2, passes: true },
    { controlErrors: 39, canaryErrors: 3, passes: false },
    { controlErrors: 380, canaryErrors: 20, passes: true },
    { controlErrors: 377, canaryErrors: 23, passes: false },
  ];
  it.each(few)(
    '$controlErrors errors of the control, $canaryErrors of a canary of 5 %: rare enough to pass is $passes',
    ({ controlErrors, canaryErrors, passes }) => {
      const errors = look(
        arm(95_000 - controlErrors, { errors: controlErrors }),
        arm(5_000, { errors: canaryErrors }),
      );
      const evidence = watched(1, errors, watched(200, EQUAL));
      const safeE = describeEvidence(evidence)[0]?.safeE ?? Number.NaN;
      if (passes) expect(safeE).toBeGreaterThan(20);
      else expect(safeE).toBeLessThan(20);
    },
  );

  it('a tolerated rate of one in a million makes a canary without errors wait', () => {
    const strict = startEvidence({ percent: 5, toleratedRate: 1e-6 });
    expect(judge(watched(90, EQUAL, strict))).toMatchObject({ kind: 'inconclusive' });
  });

  it('requests that draw their own arm are held to a tighter ratio', () => {
    const skewed = look(arm(9_250), arm(750));
    expect(judge(watched(12, skewed))).not.toMatchObject({ kind: 'hold' });
    expect(judge(watched(12, skewed, startEvidence({ percent: 5, unit: 'requestId' })))).toMatchObject({
      kind: 'hold',
    });
  });
});

describe('harm', () => {
  /** E of the formula for canary events against none, written out anew; the null is 1.1. */
  function harmOf(exposure: number, canaryEvents: number): number {
    const theta = (ratio: number): number => (exposure * ratio) / (exposure * ratio + 1 - exposure);
    const each = [1.25, 1.5, 2, 3, 5, 10, 20].map((ratio) => (theta(ratio) / theta(1.1)) ** canaryEvents);
    return each.reduce((sum, one) => sum + one, 0) / each.length;
  }

  it('rolls back from a mean of 100 over the six metrics on, and not below', () => {
    const met = new Set<string>();
    for (let requests = 100; requests <= 1_000; requests += 1) {
      const seen = look({ ...SILENT, requests: 10_000 - requests }, { ...SILENT, requests, errors: 4 });
      // Of the five metrics without an event each is 1.
      const mean = (harmOf(requests / 10_000, 4) + 5) / 6;
      expect([mean, judge(watched(1, seen)).kind === 'roll-back']).toEqual([mean, mean >= 100]);
      if (Math.abs(mean - 100) < 1) met.add(mean < 100 ? 'just below' : 'just above');
    }
    expect(met.size).toBe(2);
  });
});

describe('the state', () => {
  it('survives JSON, and goes on from there', () => {
    const evidence = watched(5, EQUAL);
    const read = JSON.parse(JSON.stringify(evidence)) as StageEvidence;
    expect(read).toEqual(evidence);
    expect(addObservation(read, EQUAL)).toEqual(addObservation(evidence, EQUAL));
  });

  it('is described metric by metric, in numbers that JSON can hold', () => {
    const lines = describeEvidence(watched(400, look(arm(9_500, { errors: 95 }), arm(500, { errors: 400 }))));
    expect(lines.map(({ metric }) => metric)).toEqual([
      'errors',
      'dead letters',
      'deadline misses',
      'over p50',
      'over p95',
      'over p99',
    ]);
    expect(lines[0]).toMatchObject({ canaryEvents: 160_000, controlEvents: 38_000 });
    expect(lines.every((line) => Number.isFinite(line.harmE) && Number.isFinite(line.safeE))).toBe(true);
    expect(lines[0]?.harmE).toBeGreaterThan(1e100);
    expect(lines[4]?.safeE).toBeGreaterThan(20);
  });
});

describe('at the border', () => {
  it.each<[string, Observation]>([
    ['no number', look(arm(100), arm(10, { errors: Number.NaN }))],
    ['a negative count', look(arm(100, { deadLettered: -1 }), arm(10))],
    ['half a request', look(arm(100.5, { over: [0, 0, 0] }), arm(10))],
    ['infinitely many', look(arm(100, { over: [Number.POSITIVE_INFINITY, 0, 0] }), arm(10))],
    ['more events than requests', look(arm(100), arm(10, { deadlineMissed: 11 }))],
    ['events without requests', look(arm(100), { ...SILENT, over: [0, 0, 1] })],
    ['a window without length', look(arm(100), arm(10), 0)],
    ['a window of no number', look(arm(100), arm(10), Number.NaN)],
  ])('refuses %s', (_, observation) => {
    expect(() => addObservation(startEvidence({ percent: 5 }), observation)).toThrow(
      expect.objectContaining({ code: 'MALFORMED' }),
    );
  });

  it.each([{ percent: Number.NaN }, { percent: -1 }, { percent: 101 }, { percent: 5, toleratedRate: 0 }])(
    'refuses a stage of %o',
    (stage) => {
      expect(() => startEvidence(stage)).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }));
    },
  );
});
