import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { partitionForKey } from '../../src/core/request/partition.ts';
import { openOutsideLedger } from '../../src/traffic/outside-ledger.ts';
import { pythonWithClients, runPython } from './python/environment.ts';
import { type RealPipeline, startRealPipeline } from './real-pipeline.ts';

const VARIABLES = ['MILLRACE_KAFKA_BROKERS', 'MILLRACE_REGISTRY_URL', 'MILLRACE_REDIS_URL'] as const;
const PARTITIONS = 4;
const DEADLINE_MS = '60000';
/** The first start installs the clients. */
const START_MS = 400_000;

let python: string;
let pipeline: RealPipeline;
let environment: Record<string, string>;

beforeAll(async () => {
  python = await pythonWithClients();
  const stack = Object.fromEntries(VARIABLES.map((name) => [name, process.env[name] ?? '']));
  pipeline = await startRealPipeline(stack, {
    environment: { MILLRACE_KAFKA_PARTITIONS: String(PARTITIONS) },
  });
  environment = { ...stack, MILLRACE_PREFIX: pipeline.settings.prefix };
}, START_MS);

afterAll(async () => {
  await pipeline?.close();
});

const place = v.strictTuple([v.string(), v.number(), v.number()]);
const scoreOutput = v.object({
  requestId: v.string(),
  identity: place,
  key: v.string(),
  resultPartition: v.number(),
  outcome: v.string(),
  reason: v.null(),
  modelVersion: v.string(),
  scores: v.array(v.strictTuple([v.number(), v.number()])),
});

describe("a client in Python, made of Confluent's own Kafka and Avro libraries", () => {
  it.each([5, 1, 200])('sends a request for %i candidates and finds its scores', async (candidates) => {
    const args = ['--json', '--deadline-ms', DEADLINE_MS, '--candidates', String(candidates)];
    const stdout = await runPython(python, ['examples/clients/python/score.py', ...args], environment);
    const output = v.parse(scoreOutput, JSON.parse(stdout));
    expect(output).toMatchObject({ outcome: 'SCORED', key: output.requestId });
    expect(output.scores).toHaveLength(candidates);
    expect(new Set(output.scores.map(([id]) => id)).size).toBe(candidates);
    for (const [, score] of output.scores) {
      expect(score).toBeGreaterThan(0);
      expect(score).toBeLessThan(1.2);
    }
    const partition = partitionForKey(Buffer.from(output.requestId), PARTITIONS);
    expect(output.resultPartition).toBe(partition);
    expect(output.identity.slice(0, 2)).toEqual([pipeline.client.topics.ingress(), partition]);
  });

  it('prints the outcome and the scores, best first, for people', async () => {
    const args = ['--deadline-ms', DEADLINE_MS, '--candidates', '3', '--request-id', 'from-python'];
    const stdout = await runPython(python, ['examples/clients/python/score.py', ...args], environment);
    const [headline, ...rows] = stdout.trim().split('\n');
    expect(headline).toMatch(/^SCORED from-python by ranker@\d+ in \d+\.\d ms$/);
    const scores = rows.map((row) => Number(row.trim().split(/\s+/)[1]));
    expect(scores).toHaveLength(3);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });
});

describe('a mistake of whoever runs the client in Python', () => {
  it.each([
    [
      'a broker that does not answer',
      ['--brokers', '127.0.0.1:1'],
      /no Kafka broker answers at 127\.0\.0\.1:1 .*stack up/,
    ],
    [
      'a registry that does not answer',
      ['--registry', 'http://127.0.0.1:1'],
      /no schema registry answers at http:\/\/127\.0\.0\.1:1 .*MILLRACE_REGISTRY_URL/,
    ],
    [
      'a prefix of no installation',
      ['--prefix', 'no-such'],
      /no topics of the prefix 'no-such' .*MILLRACE_PREFIX.*topics apply/,
    ],
  ])('%s is one line that says what to do', async (_, args, said) => {
    const failed = await runPython(python, ['examples/clients/python/score.py', ...args], environment).catch(
      (error: unknown) => error,
    );
    const { code, stderr } = v.parse(v.object({ code: v.number(), stderr: v.string() }), failed);
    expect(code).toBe(1);
    expect(stderr.trim().split('\n')).toEqual([expect.stringMatching(/^score\.py: /)]);
    expect(stderr).toMatch(said);
  });
});

const promise = v.object({
  case: v.string(),
  outcome: v.optional(v.string()),
  code: v.nullish(v.string()),
  requestId: v.optional(v.string()),
  key: v.optional(v.string()),
  candidatesScored: v.optional(v.number()),
  resultPartition: v.optional(v.number()),
  identity: v.optional(place),
  error: v.optional(v.string()),
});

describe('what the contract promises a client in any language', () => {
  it('holds for every kind of record that a stock client can send, and the books balance', async () => {
    const ledger = await openOutsideLedger(pipeline.client);
    const stdout = await runPython(python, ['test/slow/python/contract.py'], environment);
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => v.parse(promise, JSON.parse(line)));
    const by = (name: string) => lines.filter((line) => line.case === name);
    const dead = (requestId: string, code: string) => [
      { outcome: 'DEAD_LETTERED', code, requestId, key: requestId },
    ];
    const scored = (requestId: string) => ({
      outcome: 'SCORED',
      requestId,
      key: requestId,
      candidatesScored: 3,
    });
    expect(by('no frame')).toMatchObject(dead('no-frame', 'NO_FRAME'));
    expect(by('unknown schema id')).toMatchObject(dead('unknown-id', 'UNKNOWN_SCHEMA'));
    expect(by('empty value')).toMatchObject(dead('empty', 'EMPTY_VALUE'));
    expect(by('tombstone')).toMatchObject(dead('tombstone', 'EMPTY_VALUE'));
    expect(by('wrong key')).toMatchObject([scored('right-id')]);
    expect(by('no key')).toMatchObject([scored('keyless')]);
    expect(by('oversized')).toEqual([{ case: 'oversized', error: 'MSG_SIZE_TOO_LARGE' }]);
    expect(by('newer schema')).toMatchObject([scored('newer')]);
    expect(by('older schema')).toMatchObject([scored('older')]);
    const twice = by('same requestId twice');
    expect(twice).toMatchObject([scored('twice'), scored('twice')]);
    expect(twice[0]?.identity).not.toEqual(twice[1]?.identity);
    expect(twice[0]?.resultPartition).toBe(twice[1]?.resultPartition);
    expect(lines).toHaveLength(11);

    expect(await ledger.drained(30_000, 10)).toBe(true);
    expect(ledger.summary()).toMatchObject({
      ingress: 10,
      outcomes: { scored: 6, deadLettered: 4, degraded: 0, expired: 0, rejected: 0 },
      inFlight: 0,
      balanced: true,
    });
    await ledger.close();
  });
});
