import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deadLetterRecord } from '../../../src/contracts/dead-letter.ts';
import type { MessageBus } from '../../../src/ports/message-bus.ts';
import { INGRESS, type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { INSTALLATION, millrace } from './cli.fixture.ts';

const DLQ = `${INGRESS}.dlq`;

let installation: MemoryInstallation;
let bus: MessageBus;

beforeEach(async () => {
  installation = await memoryInstallation();
  bus = installation.connectBus();
});

afterEach(async () => {
  await bus.close();
  await installation.close();
});

function dlq(...args: readonly string[]) {
  return dlqWith({}, ...args);
}

function dlqWith(environment: Record<string, string>, ...args: readonly string[]) {
  return millrace(['dlq', ...args], {
    environment: { ...INSTALLATION, ...environment },
    openBus: async () => installation.connectBus(),
  });
}

/** A dead letter of the record `key` at `<topic>/<partition>/<offset>`. */
async function deadLetter(
  key: string,
  offset: number,
  given: { topic?: string; partition?: number; payload?: 'full' | 'hash' } = {},
): Promise<void> {
  const { topic = INGRESS, partition = 0, payload = 'full' } = given;
  await bus.produce(
    deadLetterRecord({
      record: {
        topic,
        partition,
        offset,
        timestampMs: 0,
        key: Buffer.from(key),
        value: Buffer.from(`bytes of ${key}`),
        headers: { traceparent: Buffer.from('t') },
        assignment: 0,
      },
      topic: `${topic}.dlq`,
      partition: 0,
      stage: 'feature-extractor',
      code: 'MALFORMED',
      message: 'it ends too early',
      payload,
    }),
  );
}

async function keysOn(topic: string): Promise<string[]> {
  return (await installation.recordsOf(topic)).map(({ key }) => key?.toString() ?? '');
}

describe('millrace dlq list', () => {
  it('shows reason, stage, source and key of each, of all topics', async () => {
    await deadLetter('a', 5, { partition: 2 });
    await deadLetter('b', 9, { topic: 'millrace.features.v1' });
    const { out, exitCode } = await dlq('list');
    expect(exitCode).toBe(0);
    expect(out).toMatch(/^at +topic +id +reason +stage +source +key +bytes +message\n/);
    expect(out).toMatch(
      /^\S+Z {2}millrace\.ingress\.v1 +0\/0 +MALFORMED +feature-extractor +2\/5 +a +10 +it ends too early$/m,
    );
    expect(out).toMatch(/^\S+Z {2}millrace\.features\.v1 +0\/0 .* 0\/9 +b /m);
  });

  it('shows JSON lines', async () => {
    await deadLetter('a', 5);
    const { out } = await dlq('list', '--json');
    expect(JSON.parse(out)).toMatchObject({
      topic: INGRESS,
      id: '0/0',
      reason: 'MALFORMED',
      stage: 'feature-extractor',
      source: '0/5',
      key: 'a',
      bytes: 10,
      payload: 'full',
    });
  });

  it('shows one topic, by its name or its dead-letter topic’s', async () => {
    await deadLetter('a', 5);
    await deadLetter('b', 9, { topic: 'millrace.features.v1' });
    for (const topic of [INGRESS, DLQ]) {
      const { out } = await dlq('list', '--topic', topic, '--json');
      expect(out.trim().split('\n')).toHaveLength(1);
    }
    const { err, exitCode } = await dlq('list', '--topic', 'millrace.ingres.v1');
    expect(exitCode).toBe(2);
    expect(err).toContain('Did you mean "millrace.ingress.v1"?');
  });

  it('shows the newest, and how many are older', async () => {
    for (let n = 0; n < 7; n += 1) await deadLetter(`k${n}`, n);
    const { out } = await dlq('list', '--max', '2');
    expect(out).toContain('k6');
    expect(out).toContain('k5');
    expect(out).not.toContain('k4');
    expect(out).toContain('and 5 older (--max)');
  });

  it('says that there are none', async () => {
    expect((await dlq('list')).out).toBe('no dead letters in 3 topics\n');
  });

  it.each([['list'], ['replay', '--all']])(
    '%s says that no topic of the prefix exists, and which prefixes there are',
    async (...args) => {
      const { out, err, exitCode } = await dlqWith({ MILLRACE_PREFIX: 'wrong' }, ...args);
      expect(out).toBe('');
      expect(err).toMatch(
        /no topic of this prefix exists \(got "wrong"; allowed: there are topics of millrace\)\./,
      );
      expect(err).toContain('Is MILLRACE_PREFIX right?');
      expect(exitCode).toBe(1);
    },
  );

  it('shows what something else wrote there, and no control characters of a key', async () => {
    await bus.produce({ topic: DLQ, partition: 0, key: Buffer.from('\u001b[31mred'), value: null });
    const { out } = await dlq('list');
    expect(out).toContain('UNKNOWN');
    expect(out).toContain('·[31mred');
    expect(out).not.toContain('\u001b');
  });
});

describe('millrace dlq replay', () => {
  it('asks first, and says how many', async () => {
    await deadLetter('a', 5);
    await deadLetter('b', 6);
    const { out, exitCode } = await dlq('replay', '--all');
    expect(exitCode).toBe(2);
    expect(out).toBe(`2 to replay on ${INGRESS}\nnothing was done: add --yes to do it\n`);
    expect(await installation.recordsOf(INGRESS)).toEqual([]);
  });

  it('produces the original bytes, key and headers on the partition that they came from', async () => {
    await deadLetter('a', 5, { partition: 3 });
    const { out, exitCode } = await dlq('replay', '--all', '--yes');
    expect(exitCode).toBe(0);
    expect(out).toContain('replayed 1');
    const [record] = await installation.recordsOf(INGRESS);
    expect(record).toMatchObject({ partition: 3 });
    expect(record?.key?.toString()).toBe('a');
    expect(record?.value?.toString()).toBe('bytes of a');
    expect(Object.keys(record?.headers ?? {})).toEqual(['traceparent']);
    expect(await installation.recordsOf(DLQ)).toHaveLength(1);
  });

  it('goes to the partition of the key where the one it came from is no more', async () => {
    await deadLetter('a', 5, { partition: 99 });
    await dlq('replay', '--all', '--yes');
    expect(await keysOn(INGRESS)).toEqual(['a']);
  });

  it('takes one by its id', async () => {
    await deadLetter('a', 5);
    await deadLetter('b', 6);
    const { exitCode } = await dlq('replay', '--topic', INGRESS, '--id', '0/1', '--yes');
    expect(exitCode).toBe(0);
    expect(await keysOn(INGRESS)).toEqual(['b']);
  });

  it('asks nothing for JSON, and counts what it left alone', async () => {
    await deadLetter('a', 5);
    await deadLetter('hashed', 6, { payload: 'hash' });
    await bus.produce({ topic: DLQ, partition: 0, key: null, value: Buffer.from('x') });
    const { out } = await dlq('replay', '--all', '--json');
    expect(JSON.parse(out)).toEqual({ replayed: 1, hashed: 1, unknown: 1 });
    expect(await keysOn(INGRESS)).toEqual(['a']);
  });

  it('produces nothing on a topic that only a header names', async () => {
    const record = deadLetterRecord({
      record: {
        topic: 'millrace.control.v1',
        partition: 0,
        offset: 1,
        timestampMs: 0,
        key: Buffer.from('policy/starter'),
        value: Buffer.from('forged'),
        headers: {},
        assignment: 0,
      },
      topic: DLQ,
      partition: 0,
      stage: 'x',
      code: 'POISON',
      message: '',
      payload: 'full',
    });
    await bus.produce(record);
    const { out } = await dlq('replay', '--all', '--yes');
    expect(out).toContain('1 do not say what they were, or name another topic');
    expect(await installation.recordsOf('millrace.control.v1')).toEqual([]);
  });

  it.each([
    [['replay'], 'either --id <partition/offset> or --all'],
    [['replay', '--all', '--id', '0/1'], 'either --id <partition/offset> or --all'],
    [['replay', '--id', '0/1'], '--id needs --topic'],
    [['replay', '--id', 'a', '--topic', INGRESS], 'partition/offset'],
    [['replay', '--id', '0/9', '--topic', INGRESS, '--yes'], 'no dead letter of this id'],
  ])('%j is refused', async (args, message) => {
    const { err, exitCode } = await dlq(...args);
    expect(exitCode).toBe(2);
    expect(err).toContain(message);
  });
});
