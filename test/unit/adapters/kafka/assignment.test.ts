import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Assignment,
  assignPartitions,
  holdSlots,
  type Member,
  spreadPartitions,
} from '../../../../src/adapters/kafka/assignment.ts';
import type { TopicPartition } from '../../../../src/ports/message-bus.ts';

const topicsOf = (counts: readonly number[]) =>
  new Map(counts.map((count, index) => [`topic${index}`, count]));
const all = (topics: ReadonlyMap<string, number>): TopicPartition[] =>
  [...topics].flatMap(([topic, count]) =>
    Array.from({ length: count }, (_, partition) => ({ topic, partition })),
  );
const keyOf = ({ topic, partition }: TopicPartition) => `${topic}/${partition}`;
const keysOf = (partitions: readonly TopicPartition[]) => partitions.map(keyOf).sort();

/** Runs rounds as members do: what a member no longer gets it lets go of, and then asks again. */
function settle(
  members: readonly Member[],
  topics: ReadonlyMap<string, number>,
): { assignment: Assignment; rounds: number } {
  let current = members;
  for (let rounds = 1; rounds < 20; rounds++) {
    const assignment = spreadPartitions(current, topics);
    const next = current.map((member) => ({
      ...member,
      generation: rounds + 100,
      owned: assignment.get(member.id) ?? [],
    }));
    if (
      next.every(
        (member, index) => keysOf(member.owned).join() === keysOf(current[index]?.owned ?? []).join(),
      )
    ) {
      return { assignment, rounds };
    }
    current = next;
  }
  throw new Error('the group does not settle');
}

/** Members with claims that do not contradict each other, as they are after an agreement of the group. */
const groups = fc
  .record({
    counts: fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
    size: fc.integer({ min: 1, max: 8 }),
    draws: fc.array(fc.nat(20), { minLength: 80, maxLength: 80 }),
  })
  .map(({ counts, size, draws }) => {
    const topics = topicsOf(counts);
    const members: Member[] = Array.from({ length: size }, (_, index) => ({
      id: `member${index}`,
      topics: [...topics.keys()],
      generation: 5,
      owned: all(topics).filter((_, i) => (draws[i % draws.length] ?? 0) % (size + 2) === index),
    }));
    return { topics, members };
  });

describe('spreadPartitions', () => {
  it('settles with each partition at exactly one member, and loads that differ by one at most', () => {
    fc.assert(
      fc.property(groups, ({ topics, members }) => {
        const { assignment, rounds } = settle(members, topics);
        expect(keysOf([...assignment.values()].flat())).toEqual(keysOf(all(topics)));
        const loads = [...assignment.values()].map(({ length }) => length);
        expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
        expect(rounds).toBeLessThanOrEqual(3);
      }),
    );
  });

  it('never gives a partition to one member while another claims it', () => {
    fc.assert(
      fc.property(groups, ({ topics, members }) => {
        const assignment = spreadPartitions(members, topics);
        for (const member of members) {
          for (const [id, partitions] of assignment) {
            if (id === member.id) continue;
            const theirs = new Set(keysOf(partitions));
            expect(member.owned.filter((each) => theirs.has(keyOf(each)))).toEqual([]);
          }
        }
      }),
    );
  });

  it('moves no more partitions than even loads take', () => {
    fc.assert(
      fc.property(groups, ({ topics, members }) => {
        const total = all(topics).length;
        const before = members.map(({ owned }) => owned.length).sort((a, b) => b - a);
        const larger = total % members.length;
        const quotas = before.map(
          (_, index) => Math.floor(total / members.length) + (index < larger ? 1 : 0),
        );
        const least = before.reduce((sum, load, index) => sum + Math.max(0, load - (quotas[index] ?? 0)), 0);
        const { assignment } = settle(members, topics);
        const moved = members.flatMap(({ id, owned }) => {
          const kept = new Set(keysOf(assignment.get(id) ?? []));
          return owned.filter((each) => !kept.has(keyOf(each)));
        });
        expect(moved.length).toBe(least);
      }),
    );
  });

  it('does not depend on the order in which the members are listed', () => {
    fc.assert(
      fc.property(groups, fc.infiniteStream(fc.nat()), ({ topics, members }, draws) => {
        const shuffled = members
          .map((member) => ({ member, at: draws.next().value }))
          .sort((a, b) => a.at - b.at);
        const sorted = (assignment: Assignment) =>
          [...assignment].map(([id, list]) => [id, keysOf(list)]).sort();
        expect(
          sorted(
            spreadPartitions(
              shuffled.map(({ member }) => member),
              topics,
            ),
          ),
        ).toEqual(sorted(spreadPartitions(members, topics)));
      }),
    );
  });

  const member = (id: string, owned: number[] = [], generation = 1, topics = ['topic0']): Member => ({
    id,
    topics,
    generation,
    owned: owned.map((partition) => ({ topic: 'topic0', partition })),
  });
  const partitionsOf = (assignment: Assignment, id: string) =>
    (assignment.get(id) ?? []).map(({ partition }) => partition);

  it('believes the later of two claims: the other member was away when the partition was given on', () => {
    const assignment = spreadPartitions([member('a', [0, 1], 3), member('b', [0, 1], 7)], topicsOf([2]));
    expect(partitionsOf(assignment, 'a')).toEqual([]);
    expect(partitionsOf(assignment, 'b')).toHaveLength(1);
  });

  it('leaves everything where it is when a member joins that there is nothing for', () => {
    const assignment = spreadPartitions([member('a', [0]), member('b', [1]), member('c')], topicsOf([2]));
    expect(partitionsOf(assignment, 'a')).toEqual([0]);
    expect(partitionsOf(assignment, 'b')).toEqual([1]);
    expect(partitionsOf(assignment, 'c')).toEqual([]);
  });

  it('gives a topic only to members that read it', () => {
    const members = [member('a', [], 0, ['topic0']), member('b', [], 0, ['topic0', 'topic1'])];
    const assignment = spreadPartitions(members, topicsOf([2, 4]));
    expect(keysOf(assignment.get('a') ?? [])).toEqual(['topic0/0', 'topic0/1']);
    expect(keysOf(assignment.get('b') ?? [])).toEqual(['topic1/0', 'topic1/1', 'topic1/2', 'topic1/3']);
  });

  it('ignores claims of partitions that do not exist', () => {
    expect(partitionsOf(spreadPartitions([member('a', [0, 7])], topicsOf([1])), 'a')).toEqual([0]);
  });
});

describe('holdSlots', () => {
  const member = (id: string, generation: number, owned: number[], slots = [2, 5]): Member => ({
    id,
    topics: ['dispatch'],
    generation,
    owned: owned.map((partition) => ({ topic: 'dispatch', partition })),
    slots,
  });

  it.each([
    {
      what: 'the first by name, where nobody owns them',
      members: [member('b', -1, []), member('a', -1, [])],
      owner: 'a',
    },
    { what: 'the owner, whoever joins', members: [member('a', -1, []), member('z', 3, [2, 5])], owner: 'z' },
    {
      what: 'the owner, though a standby was there in a later round',
      members: [member('a', 9, []), member('z', 3, [2, 5])],
      owner: 'z',
    },
    {
      what: 'the later of two that claim them',
      members: [member('a', 3, [2, 5]), member('b', 4, [2, 5])],
      owner: 'b',
    },
  ])('gives all slots to $what', ({ members, owner }) => {
    const assignment = holdSlots(members, 'dispatch');
    for (const { id } of members) {
      expect((assignment.get(id) ?? []).map(({ partition }) => partition)).toEqual(
        id === owner ? [2, 5] : [],
      );
    }
  });
});

describe('assignPartitions', () => {
  it('leaves the partitions of a topic that the broker does not know with their owners', () => {
    const owned = [0, 1, 2].map((partition) => ({ topic: 't', partition }));
    const members: Member[] = [
      { id: 'a', topics: ['t'], generation: 1, owned: owned.slice(0, 2) },
      { id: 'b', topics: ['t'], generation: 1, owned: owned.slice(2) },
    ];
    const assignment = assignPartitions({ kind: 'spread' }, members, () => 0);
    expect(assignment.get('a')).toEqual(owned.slice(0, 2));
    expect(assignment.get('b')).toEqual(owned.slice(2));
  });

  it('gives a reader all partitions that exist of those that it wants', () => {
    const reader: Member = { id: 'r', topics: ['a', 'b'], generation: -1, owned: [] };
    const countOf = (topic: string) => (topic === 'a' ? 2 : 4);
    expect(keysOf(assignPartitions({ kind: 'reader' }, [reader], countOf).get('r') ?? [])).toHaveLength(6);
    const some = assignPartitions({ kind: 'reader', partitions: [1, 3] }, [reader], countOf);
    expect(keysOf(some.get('r') ?? [])).toEqual(['a/1', 'b/1', 'b/3']);
  });
});
