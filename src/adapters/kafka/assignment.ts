import type { TopicPartition } from '../../ports/message-bus.ts';
import type { Membership } from './client.ts';

/** A member of the group as it asks to join: what it reads, and what it owned when the group last agreed. */
export interface Member {
  id: string;
  topics: readonly string[];
  /** The generation of the group in which it came to own what it claims; -1 for a newcomer. */
  generation: number;
  owned: readonly TopicPartition[];
  /** The partitions of a slot subscription; absent where partitions are spread. */
  slots?: readonly number[];
}

export type Assignment = ReadonlyMap<string, readonly TopicPartition[]>;

/** The name under which members agree on this way of assigning. Both clients speak it, so that members of both can share a group. */
export function protocolName({ kind }: Membership): string {
  return `millrace-${kind}`;
}

/**
 * What the group's leader decides. `countOf` answers 0 for a topic that the broker does not know: it may have been deleted, but a broker that has
 * only just started may also not have heard of it yet. Until it is known again its partitions stay with those who own them.
 */
export function assignPartitions(
  membership: Membership,
  members: readonly Member[],
  countOf: (topic: string) => number,
): Assignment {
  const topics = [...new Set(members.flatMap((member) => member.topics))].sort();
  switch (membership.kind) {
    case 'spread':
      return spreadPartitions(
        members,
        new Map(topics.map((topic) => [topic, countOf(topic) || countClaimed(members, topic)])),
      );
    case 'slots':
      return holdSlots(members, topics[0] ?? '');
    case 'reader': {
      const isWanted = (partition: number) => membership.partitions?.includes(partition) ?? true;
      const all = topics.flatMap((topic) =>
        partitionsOf(topic, countOf(topic)).filter(({ partition }) => isWanted(partition)),
      );
      return new Map(members.map(({ id }) => [id, all]));
    }
    default:
      return membership satisfies never;
  }
}

/**
 * Spreads the partitions of `topics` (name → number of partitions) over the members, as evenly as a difference of one, moving as few
 * as that takes. A partition that has to move is left out of this round: its owner lets it go (drained and
 * committed) and asks for the next round, in which it is free. So nobody pauses but for the partitions that really move, and no partition has two owners
 * (the idea of Kafka's cooperative rebalancing, KIP-429).
 */
export function spreadPartitions(
  members: readonly Member[],
  topics: ReadonlyMap<string, number>,
): Assignment {
  const loads = new Map<string, Load>();
  for (const member of [...members].sort(byId))
    loads.set(member.id, { topics: new Set(member.topics), owned: [] });
  const owners = ownersOf(members);
  const free: TopicPartition[] = [];
  for (const [topic, count] of topics) {
    for (const each of partitionsOf(topic, count)) {
      const load = loads.get(owners.get(keyOf(topic, each.partition)) ?? '');
      if (load?.topics.has(topic)) load.owned.push(each);
      else free.push(each);
    }
  }
  for (const each of free) lightest(loads, each.topic)?.owned.push(each);
  level(loads);
  return withoutMoves(loads, owners);
}

/** Gives the slots to one member: to whoever owns them, else to the first by name. The others stand by. */
export function holdSlots(members: readonly Member[], topic: string): Assignment {
  const byPrecedence = [...members].sort(
    (a, b) =>
      Number(b.owned.length > 0) - Number(a.owned.length > 0) || b.generation - a.generation || byId(a, b),
  );
  return new Map(
    byPrecedence.map(({ id, slots = [] }, rank) => [
      id,
      rank === 0 ? slots.map((partition) => ({ topic, partition })) : [],
    ]),
  );
}

function countClaimed(members: readonly Member[], topic: string): number {
  const claimed = members.flatMap(({ owned }) => owned.filter((each) => each.topic === topic));
  return claimed.reduce((count, { partition }) => Math.max(count, partition + 1), 0);
}

function partitionsOf(topic: string, count: number): TopicPartition[] {
  return Array.from({ length: count }, (_, partition) => ({ topic, partition }));
}

interface Load {
  topics: ReadonlySet<string>;
  owned: TopicPartition[];
}

function byId(a: Member, b: Member): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

function keyOf(topic: string, partition: number): string {
  return `${partition}/${topic}`;
}

/** Where two members claim a partition, the later generation is right: the other one was away when it was given on. */
function ownersOf(members: readonly Member[]): Map<string, string> {
  const owners = new Map<string, string>();
  const oldestFirst = [...members].sort((a, b) => a.generation - b.generation || byId(b, a));
  for (const { id, owned } of oldestFirst) {
    for (const { topic, partition } of owned) owners.set(keyOf(topic, partition), id);
  }
  return owners;
}

function lightest(loads: ReadonlyMap<string, Load>, topic: string): Load | undefined {
  let best: Load | undefined;
  for (const load of loads.values()) {
    if (load.topics.has(topic) && (best === undefined || load.owned.length < best.owned.length)) best = load;
  }
  return best;
}

/** Moves partitions from the heaviest members to lighter ones until no move makes the loads more even. */
function level(loads: ReadonlyMap<string, Load>): void {
  for (;;) {
    const heaviestFirst = [...loads.values()].sort((a, b) => b.owned.length - a.owned.length);
    if (!heaviestFirst.some((load) => moveOne(load, loads))) return;
  }
}

function moveOne(from: Load, loads: ReadonlyMap<string, Load>): boolean {
  for (let index = from.owned.length - 1; index >= 0; index--) {
    const candidate = from.owned[index];
    if (candidate === undefined) continue;
    const to = lightest(loads, candidate.topic);
    if (to === undefined || to.owned.length + 1 >= from.owned.length) continue;
    from.owned.splice(index, 1);
    to.owned.push(candidate);
    return true;
  }
  return false;
}

function withoutMoves(loads: ReadonlyMap<string, Load>, owners: ReadonlyMap<string, string>): Assignment {
  const assignment = new Map<string, TopicPartition[]>();
  for (const [id, { owned }] of loads) {
    const present = owned.filter(({ topic, partition }) => {
      const owner = owners.get(keyOf(topic, partition));
      return owner === undefined || owner === id;
    });
    assignment.set(id, present);
  }
  return assignment;
}
