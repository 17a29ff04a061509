/** A member of a group, as far as the assigners look at it. */
export interface Candidate {
  readonly topics: readonly string[];
  /** Partitions of its only topic that it takes all together or not at all. */
  readonly slots?: readonly number[];
}

/** A partition, and who is meant to own it so far. */
export interface Seat<Member extends Candidate> {
  readonly topic: string;
  readonly partition: number;
  readonly holder: Member | undefined;
}

/**
 * Who shall own each seat: evenly spread (no two members that could exchange a seat differ by more than one), and
 * with as few seats as possible taken from a member that is still there.
 * @param members in the order in which they joined; ties go to the one that came first.
 * @returns an owner per seat, `undefined` where nobody wants the topic.
 */
export function assignSticky<Member extends Candidate>(
  members: readonly Member[],
  seats: readonly Seat<Member>[],
): (Member | undefined)[] {
  const loads = new Map(members.map((member) => [member, 0]));
  const add = (member: Member, seatsMore: number): void => {
    loads.set(member, (loads.get(member) ?? 0) + seatsMore);
  };
  const leastLoaded = (topic: string): Member | undefined => lightest(members, topic, loads);

  const owners = seats.map(({ holder, topic }) => {
    const keeps = holder !== undefined && loads.has(holder) && holder.topics.includes(topic);
    if (keeps) add(holder, 1);
    return keeps ? holder : undefined;
  });
  seats.forEach(({ topic }, i) => {
    if (owners[i] !== undefined) return;
    const taker = leastLoaded(topic);
    if (taker !== undefined) add(taker, 1);
    owners[i] = taker;
  });
  while (moveOne(seats, owners, loads, leastLoaded, add)) {
    // Each move lowers the sum of squared loads, so this ends.
  }
  return owners;
}

function lightest<Member extends Candidate>(
  members: readonly Member[],
  topic: string,
  loads: ReadonlyMap<Member, number>,
): Member | undefined {
  let best: Member | undefined;
  for (const member of members) {
    if (!member.topics.includes(topic)) continue;
    if (best === undefined || (loads.get(member) ?? 0) < (loads.get(best) ?? 0)) best = member;
  }
  return best;
}

/** Moves a seat from the heaviest member that can give one to the lightest that can take it, where that evens the loads. */
function moveOne<Member extends Candidate>(
  seats: readonly Seat<Member>[],
  owners: (Member | undefined)[],
  loads: ReadonlyMap<Member, number>,
  leastLoaded: (topic: string) => Member | undefined,
  add: (member: Member, seatsMore: number) => void,
): boolean {
  let from: { seat: number; giver: Member; taker: Member } | undefined;
  const takers = new Map<string, Member | undefined>();
  seats.forEach(({ topic }, seat) => {
    const giver = owners[seat];
    if (giver === undefined) return;
    if (!takers.has(topic)) takers.set(topic, leastLoaded(topic));
    const taker = takers.get(topic);
    if (taker === undefined || (loads.get(giver) ?? 0) - (loads.get(taker) ?? 0) < 2) return;
    if (from === undefined || (loads.get(giver) ?? 0) >= (loads.get(from.giver) ?? 0))
      from = { seat, giver, taker };
  });
  if (from === undefined) return false;
  owners[from.seat] = from.taker;
  add(from.giver, -1);
  add(from.taker, 1);
  return true;
}

/**
 * Who shall own each seat where every member takes its slots all together: whoever holds all of its slots keeps them; then
 * whoever joined first takes its own, unless one of them is taken. The others stand by.
 */
export function assignSlots<Member extends Candidate>(
  members: readonly Member[],
  seats: readonly Seat<Member>[],
): (Member | undefined)[] {
  const seatOf = new Map(seats.map(({ topic, partition }, seat) => [`${topic}/${partition}`, seat]));
  const slotSeats = (member: Member): number[] =>
    (member.slots ?? []).map((slot) => seatOf.get(`${member.topics[0]}/${slot}`) ?? -1);
  const owners: (Member | undefined)[] = seats.map(() => undefined);
  const holds = (member: Member): boolean =>
    slotSeats(member).every((seat) => seats[seat]?.holder === member);

  for (const member of [...members.filter(holds), ...members.filter((each) => !holds(each))]) {
    const wanted = slotSeats(member);
    if (wanted.some((seat) => seat < 0 || owners[seat] !== undefined)) continue;
    for (const seat of wanted) owners[seat] = member;
  }
  return owners;
}
