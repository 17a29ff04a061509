import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assignSlots,
  assignSticky,
  type Candidate,
  type Seat,
} from '../../../../src/adapters/memory/assignment.ts';

interface Named extends Candidate {
  name: string;
}

const member = (name: string, topics: readonly string[] = ['t'], slots?: readonly number[]): Named =>
  slots === undefined ? { name, topics } : { name, topics, slots };

const seats = (count: number, holders: readonly (Named | undefined)[] = []): Seat<Named>[] =>
  Array.from({ length: count }, (_, partition) => ({ topic: 't', partition, holder: holders[partition] }));

const names = (owners: readonly (Named | undefined)[]): (string | undefined)[] =>
  owners.map((owner) => owner?.name);

const loadsOf = (members: readonly Named[], owners: readonly (Named | undefined)[]): number[] =>
  members.map((each) => owners.filter((owner) => owner === each).length);

describe('assignSticky', () => {
  const [a, b, c] = [member('a'), member('b'), member('c')];

  it.each([
    { what: 'nobody', members: [], holders: [], owners: [undefined, undefined, undefined, undefined] },
    { what: 'one', members: [a], holders: [], owners: ['a', 'a', 'a', 'a'] },
    { what: 'two at once', members: [a, b], holders: [], owners: ['a', 'b', 'a', 'b'] },
    { what: 'a second that joins', members: [a, b], holders: [a, a, a, a], owners: ['a', 'a', 'b', 'b'] },
    {
      what: 'one of three that leaves',
      members: [a, c],
      holders: [a, a, b, c],
      owners: ['a', 'a', 'c', 'c'],
    },
    { what: 'nothing that changed', members: [a, b], holders: [b, a, b, a], owners: ['b', 'a', 'b', 'a'] },
  ])('spreads seats over $what', ({ members, holders, owners }) => {
    expect(names(assignSticky(members, seats(4, holders)))).toEqual(owners);
  });

  it('gives seats only to those that want the topic', () => {
    const [x, y] = [member('x', ['one']), member('y', ['one', 'two'])];
    const both: Seat<Named>[] = ['one', 'one', 'two', 'two'].map((topic, i) => {
      return { topic, partition: i % 2, holder: undefined };
    });
    expect(names(assignSticky([x, y], both))).toEqual(['x', 'x', 'y', 'y']);
  });

  it('is even, and takes from nobody more than it must', () => {
    const pool = Array.from({ length: 6 }, (_, i) => member(`m${i}`));
    const group = fc.subarray(pool, { minLength: 1 });
    fc.assert(
      fc.property(group, group, fc.integer({ min: 1, max: 40 }), (before, after, count) => {
        const held = assignSticky(before, seats(count));
        const owners = assignSticky(after, seats(count, held));
        const loads = loadsOf(after, owners);
        expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
        expect(owners.every((owner) => owner !== undefined && after.includes(owner))).toBe(true);
        const kept = owners.filter((owner, i) => owner === held[i]).length;
        expect(kept).toBe(keptAtBest(loadsOf(after, held), count));
        expect(assignSticky(after, seats(count, owners))).toEqual(owners);
      }),
    );
  });
});

/** Seats that can stay where they are: each member may keep up to its even share, and only as many get one more as there are left over. */
function keptAtBest(held: readonly number[], count: number): number {
  const share = Math.floor(count / held.length);
  let extra = count % held.length;
  let kept = 0;
  for (const load of held) {
    if (load > share && extra > 0) {
      extra--;
      kept += share + 1;
    } else kept += Math.min(load, share);
  }
  return kept;
}

describe('assignSlots', () => {
  const claim = (name: string, slots: readonly number[]): Named => member(name, ['t'], slots);

  it('gives all slots to who came first; the others stand by', () => {
    const [a, b] = [claim('a', [0, 2]), claim('b', [0, 2])];
    expect(names(assignSlots([a, b], seats(3)))).toEqual(['a', undefined, 'a']);
    expect(names(assignSlots([b], seats(3, [a, undefined, a])))).toEqual(['b', undefined, 'b']);
  });

  it('leaves slots with who holds them, though others came first', () => {
    const [a, b] = [claim('a', [0]), claim('b', [0])];
    expect(names(assignSlots([a, b], seats(1, [b])))).toEqual(['b']);
  });

  it('gives slots all together or not at all', () => {
    const [a, b, c] = [claim('a', [0, 1]), claim('b', [1, 2]), claim('c', [2, 3])];
    expect(names(assignSlots([a, b, c], seats(4)))).toEqual(['a', 'a', 'c', 'c']);
    expect(names(assignSlots([b, c], seats(4, [a, a, c, c])))).toEqual([undefined, undefined, 'c', 'c']);
    expect(names(assignSlots([claim('d', [3, 4])], seats(4)))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
