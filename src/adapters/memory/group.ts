import { MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';
import type { StartAt, TopicPartition } from '../../ports/message-bus.ts';
import { assignSlots, assignSticky, type Candidate } from './assignment.ts';
import type { Topic } from './topic.ts';

/** A partition in a member's hands; `assignment` tells this time apart from every other. */
export interface Grant extends TopicPartition {
  assignment: number;
  /** Offset from which to read. */
  start: number;
}

/** What the coordinator asks of a member. Each call reaches it over its link, in order; a dead member never hears of it. */
export interface GroupMember extends Candidate {
  readonly startAt: StartAt;
  grant(grants: readonly Grant[]): void;
  /** Drain, commit, then `release`. It may be asked again while it does. */
  revoke(grants: readonly Grant[]): void;
  /** The topic is gone. */
  withdraw(grants: readonly Grant[]): void;
  /** The session ran out: nothing is owned any more. */
  expired(): void;
}

/** What the coordinator needs of the broker. */
export interface GroupSurroundings {
  clock: Clock;
  findTopic(name: string): Topic | undefined;
  nextAssignment(): number;
}

interface Claim extends TopicPartition {
  owner: GroupMember | undefined;
  /** Who shall own it; differs from the owner while the partition moves. */
  target: GroupMember | undefined;
  grant: Grant | undefined;
}

/**
 * Coordinator of a consumer group: incremental rebalances (only what moves is revoked, and only once it was let go is it granted to
 * the next member), commits fenced by assignment. A partition never has two owners.
 */
export class Group {
  /** Counts rebalances. */
  generation = 0;
  readonly #name: string;
  readonly #surroundings: GroupSurroundings;
  #members: GroupMember[] = [];
  #claims: Claim[] = [];
  readonly #committed = new Map<string, Map<number, number>>();
  #rebalanceScheduled = false;

  constructor(name: string, surroundings: GroupSurroundings) {
    this.#name = name;
    this.#surroundings = surroundings;
  }

  /** @throws MillraceError INVALID_CONFIG where slots and spread partitions would meet in one group. */
  join(member: GroupMember): void {
    const [other] = this.#members;
    if (other !== undefined && (other.slots === undefined) !== (member.slots === undefined)) {
      throw new MillraceError('INVALID_CONFIG', 'A group has either members with slots or members without', {
        value: this.#name,
        advice: 'Use another group.',
      });
    }
    this.#members.push(member);
    this.rebalanceSoon();
  }

  /** Takes the member out; what it still holds is free at once. */
  leave(member: GroupMember): void {
    this.#members = this.#members.filter((each) => each !== member);
    for (const claim of this.#claims) if (claim.owner === member) free(claim);
    this.rebalanceSoon();
  }

  /** The member was not heard of for a session's length. */
  expire(member: GroupMember): void {
    this.leave(member);
    member.expired();
  }

  holds(member: GroupMember, grant: Grant): boolean {
    const claim = this.#claimOf(grant);
    return claim?.owner === member && claim.grant?.assignment === grant.assignment;
  }

  /** Ignored unless the member still holds the partition under this assignment. */
  commit(member: GroupMember, grant: Grant, offset: number): void {
    if (this.holds(member, grant)) this.#setCommitted(grant, offset);
  }

  /** Lets go of partitions; ignored for those that were lost meanwhile. */
  release(member: GroupMember, grants: readonly Grant[]): void {
    for (const grant of grants) {
      const claim = this.#claimOf(grant);
      if (claim !== undefined && this.holds(member, grant)) free(claim);
    }
    this.rebalanceSoon();
  }

  committed(topic: string, partition: number): number | undefined {
    return this.#committed.get(topic)?.get(partition);
  }

  /** The topic was deleted: nobody owns its partitions, and its commits are gone. */
  forget(topic: string): void {
    const gone = this.#claims.filter((claim) => claim.topic === topic);
    this.#claims = this.#claims.filter((claim) => claim.topic !== topic);
    this.#committed.delete(topic);
    for (const [owner, grants] of byMember(gone, (claim) => claim.owner)) owner.withdraw(grants);
  }

  rebalanceSoon(): void {
    if (this.#rebalanceScheduled) return;
    this.#rebalanceScheduled = true;
    this.#surroundings.clock.after(0, () => {
      this.#rebalanceScheduled = false;
      this.#rebalance();
    });
  }

  #rebalance(): void {
    this.#addMissingClaims();
    const seats = this.#claims.map(({ topic, partition, target, owner }) => ({
      topic,
      partition,
      holder: target ?? owner,
    }));
    const bySlots = this.#members.some((member) => member.slots !== undefined);
    const targets = bySlots ? assignSlots(this.#members, seats) : assignSticky(this.#members, seats);
    if (this.#claims.some((claim, i) => claim.target !== targets[i])) this.generation++;
    this.#claims.forEach((claim, i) => {
      claim.target = targets[i];
    });
    this.#revokeMoving();
    this.#grantFree();
  }

  #addMissingClaims(): void {
    const known = new Set(this.#claims.map(({ topic, partition }) => `${topic}/${partition}`));
    for (const name of new Set(this.#members.flatMap((member) => member.topics))) {
      const partitions = this.#surroundings.findTopic(name)?.partitions.length ?? 0;
      for (let partition = 0; partition < partitions; partition++) {
        if (known.has(`${name}/${partition}`)) continue;
        this.#claims.push({
          topic: name,
          partition,
          owner: undefined,
          target: undefined,
          grant: undefined,
        });
      }
    }
  }

  #revokeMoving(): void {
    const moving = this.#claims.filter((claim) => claim.owner !== undefined && claim.owner !== claim.target);
    for (const [owner, grants] of byMember(moving, (claim) => claim.owner)) owner.revoke(grants);
  }

  #grantFree(): void {
    const granted = this.#claims.filter((claim) => claim.owner === undefined && claim.target !== undefined);
    for (const claim of granted) {
      const { topic, partition, target } = claim;
      if (target === undefined) continue;
      claim.owner = target;
      claim.grant = {
        topic,
        partition,
        assignment: this.#surroundings.nextAssignment(),
        start: this.#startOffset(claim, target.startAt),
      };
    }
    for (const [owner, grants] of byMember(granted, (claim) => claim.owner)) owner.grant(grants);
  }

  #startOffset(place: TopicPartition, startAt: StartAt): number {
    const committed = this.committed(place.topic, place.partition);
    if (committed !== undefined) return committed;
    const topic = this.#surroundings.findTopic(place.topic);
    topic?.expire(this.#surroundings.clock.monotonicMs());
    const log = topic?.partitions[place.partition];
    if (startAt === 'earliest') return log?.low ?? 0;
    // Committed at once: else an owner that dies before its first commit would leave its successor to begin at a later end.
    const latest = log?.high ?? 0;
    this.#setCommitted(place, latest);
    return latest;
  }

  #setCommitted({ topic, partition }: TopicPartition, offset: number): void {
    let offsets = this.#committed.get(topic);
    if (offsets === undefined) {
      offsets = new Map();
      this.#committed.set(topic, offsets);
    }
    offsets.set(partition, offset);
  }

  #claimOf({ topic, partition }: TopicPartition): Claim | undefined {
    return this.#claims.find((claim) => claim.partition === partition && claim.topic === topic);
  }
}

function free(claim: Claim): void {
  claim.owner = undefined;
  claim.grant = undefined;
}

function byMember(
  claims: readonly Claim[],
  memberOf: (claim: Claim) => GroupMember | undefined,
): Map<GroupMember, Grant[]> {
  const grants = new Map<GroupMember, Grant[]>();
  for (const claim of claims) {
    const member = memberOf(claim);
    if (member === undefined || claim.grant === undefined) continue;
    const list = grants.get(member);
    if (list === undefined) grants.set(member, [claim.grant]);
    else list.push(claim.grant);
  }
  return grants;
}
