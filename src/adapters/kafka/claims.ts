import type { TopicPartition } from '../../ports/message-bus.ts';

/** What a member tells the group's leader when it joins; travels as the user data of Kafka's consumer protocol. */
export interface Claims {
  generation: number;
  owned: readonly TopicPartition[];
  slots?: readonly number[];
}

export const NO_CLAIMS: Claims = { generation: -1, owned: [] };

/** JSON: `{generation, owned: {topic: [partition]}, slots?}`. */
export function encodeClaims(claims: Claims): Buffer {
  const owned: Record<string, number[]> = Object.create(null);
  for (const { topic, partition } of claims.owned) {
    owned[topic] ??= [];
    owned[topic].push(partition);
  }
  return Buffer.from(JSON.stringify({ generation: claims.generation, owned, slots: claims.slots }));
}

/** Bytes that are not ours (another version, another client) are a member without claims: it loses nothing but its stickiness. */
export function decodeClaims(bytes: Uint8Array): Claims {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return NO_CLAIMS;
  }
  if (!isObject(parsed) || !isObject(parsed.owned) || typeof parsed.generation !== 'number') return NO_CLAIMS;
  const owned = Object.entries(parsed.owned).flatMap(([topic, partitions]) =>
    partitionsIn(partitions).map((partition) => ({ topic, partition })),
  );
  const claims = { generation: parsed.generation, owned };
  return parsed.slots === undefined ? claims : { ...claims, slots: partitionsIn(parsed.slots) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function partitionsIn(value: unknown): number[] {
  return Array.isArray(value) ? value.filter((each) => Number.isInteger(each) && each >= 0) : [];
}
