import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  FETCH_BYTES_MAX,
  FetchOrder,
  PARTITION_BYTES_MAX,
  TURNS_PER_FETCH,
  topicRuns,
} from '../../../../src/adapters/kafka/fetch-order.ts';

const at = (name: string) => ({ topic: name.slice(0, 1), partition: Number(name.slice(1)) });
const nameOf = ({ topic, partition }: { topic: string; partition: number }) => `${topic}${partition}`;

describe('the order of a fetch', () => {
  it.each<[string, string[], string[], string[]]>([
    ['is as it comes while nothing was served', [], ['b1', 'a2', 'a0'], ['b1', 'a2', 'a0']],
    ['has what was never served first', ['a0', 'a1'], ['a0', 'a1', 'a2', 'b0'], ['a2', 'b0', 'a0', 'a1']],
    ['has what was served last at its end', ['a0', 'b0', 'a1', 'a0'], ['a0', 'a1', 'b0'], ['b0', 'a1', 'a0']],
    ['keeps the turn of what is not asked for', ['a0', 'a1', 'a1', 'a2'], ['a2', 'a0'], ['a0', 'a2']],
    ['knows partitions of one number apart', ['a0', 'b0', 'a0'], ['a0', 'b0'], ['b0', 'a0']],
  ])('%s', (_, served, asked, expected) => {
    const order = new FetchOrder();
    for (const name of served) order.served(at(name));
    expect(order.sorted(asked.map(at)).map(nameOf)).toEqual(expected);
  });

  it('is a new list of the same partitions', () => {
    const order = new FetchOrder();
    const asked = ['a0', 'a1'].map(at);
    order.served(asked[0] ?? at('a0'));
    expect(order.sorted(asked)[1]).toBe(asked[0]);
    expect(asked.map(nameOf)).toEqual(['a0', 'a1']);
  });
});

it.each([
  [[], []],
  [['a0'], [['a', [0]]]],
  [
    ['a3', 'a1', 'b1', 'a2', 'b0', 'b2'],
    [
      ['a', [3, 1]],
      ['b', [1]],
      ['a', [2]],
      ['b', [0, 2]],
    ],
  ],
] as const)('a request names %j as %j', (asked, expected) => {
  const runs = topicRuns(asked.map(at));
  expect(runs.map(({ topic, partitions }) => [topic, partitions.map(({ partition }) => partition)])).toEqual(
    expected,
  );
});

interface Log {
  readonly topic: string;
  readonly partition: number;
  /** Sizes of the batches that are left. */
  batches: number[];
  /** Fetches in a row that asked for it and brought nothing of it, though there was something. */
  waits: number;
  /** Answers of others that were dropped meanwhile. */
  dropsMeanwhile: number;
}

/** What a broker puts into its answer, per partition that gets a place in it: how many batches. */
function answer(asked: readonly Log[]): Map<Log, number> {
  const found = new Map<Log, number>();
  let room = FETCH_BYTES_MAX;
  for (const log of asked) {
    const limit = Math.min(PARTITION_BYTES_MAX, room);
    let [count, bytes] = [0, 0];
    for (const size of log.batches) {
      // The first batch of an answer comes whatever its size; what is cut off a batch takes room and is worth nothing.
      const isFirst = found.size === 0 && count === 0;
      if (bytes + size > limit && !isFirst) {
        if (count > 0) bytes = Math.max(bytes, limit);
        break;
      }
      bytes += size;
      count++;
    }
    if (count > 0) found.set(log, count);
    room = Math.max(0, room - bytes);
  }
  return found;
}

const rounds = fc.array(
  fc.record({
    /** Partitions, by their place in the list, that are not asked for. */
    paused: fc.array(fc.nat(59), { maxLength: 20 }),
    /** Of those that were asked for: their records are not taken. */
    dropped: fc.array(fc.nat(59), { maxLength: 4 }),
  }),
  { minLength: 5, maxLength: 40 },
);

const logsOf = (batchBytesMax: number) =>
  fc
    .array(fc.array(fc.integer({ min: 1, max: batchBytesMax }), { maxLength: 30 }), {
      minLength: 1,
      maxLength: 60,
    })
    .map((logs): Log[] =>
      logs.map((batches, i) => ({
        topic: 'abc'.charAt(i % 3),
        partition: i,
        batches,
        waits: 0,
        dropsMeanwhile: 0,
      })),
    );

/** One fetch; afterwards each log knows how long it has waited. */
function fetch(order: FetchOrder, logs: readonly Log[], isPaused: Set<number>, isDropped: Set<number>): void {
  const wanted = logs.filter(({ partition }) => !isPaused.has(partition));
  const asked = topicRuns(order.sorted(wanted)).flatMap(({ partitions }) => partitions);
  const found = answer(asked);
  for (const log of asked) if (log.batches.length > 0 && !found.has(log)) log.waits++;
  for (const [log, count] of found) {
    if (isDropped.has(log.partition)) {
      for (const other of logs) if (other !== log) other.dropsMeanwhile++;
      continue;
    }
    order.served(log);
    log.batches = log.batches.slice(count);
    [log.waits, log.dropsMeanwhile] = [0, 0];
  }
}

it.each([
  [
    'as many partitions as an answer has room for, where batches are no larger than a turn',
    PARTITION_BYTES_MAX,
    TURNS_PER_FETCH,
  ],
  ['one partition, where batches are larger', 3 * PARTITION_BYTES_MAX, 1],
])(
  'nobody with a backlog waits for more fetches than it takes to serve the others once: %s',
  (_, batchBytesMax, turns) => {
    fc.assert(
      fc.property(logsOf(batchBytesMax), rounds, (logs, schedule) => {
        const order = new FetchOrder();
        for (const { paused, dropped } of schedule) {
          fetch(order, logs, new Set(paused), new Set(dropped));
          for (const { waits, dropsMeanwhile } of logs) {
            expect(waits).toBeLessThanOrEqual(Math.floor((logs.length - 1 + dropsMeanwhile) / turns));
          }
        }
      }),
    );
  },
);
