import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import {
  DEAD_LETTER_RETENTION_MS,
  DISPATCH_TOPIC,
  TOPICS,
  type TopicDefinition,
  topicNames,
} from '../../src/contracts/topics.ts';

interface Channel {
  address: string;
  messages: Record<string, { $ref: string }>;
  bindings: { kafka: { partitions?: number; topicConfiguration: Record<string, unknown> } };
}
interface Description {
  asyncapi: string;
  channels: Record<string, Channel>;
  operations: Record<string, { channel: { $ref: string }; messages: { $ref: string }[] }>;
  components: { messages: Record<string, { payload?: { schema: { $ref: string } } }> };
}

const FOLDER = new URL('../../schemas/', import.meta.url);
const description = parse(readFileSync(new URL('asyncapi.yaml', FOLDER), 'utf8')) as Description;
const channels = Object.values(description.channels);
const names = topicNames();

const TOPIC_LIST: readonly (readonly [address: string, definition: TopicDefinition])[] = [
  ...(Object.keys(TOPICS) as (keyof typeof TOPICS)[]).map((key) => [names.fixed(key), TOPICS[key]] as const),
  [names.ingress('{tenant}'), TOPICS.ingress],
  [names.dispatch('{pool}'), DISPATCH_TOPIC],
];

const channelAt = (address: string): Channel | undefined =>
  channels.find((channel) => channel.address === address);

/** What a JSON pointer of the document leads to. */
function follow(reference: string): unknown {
  let part: unknown = description;
  for (const name of reference.slice(2).split('/'))
    part = (part as Record<string, unknown> | undefined)?.[name];
  return part;
}

describe('asyncapi.yaml', () => {
  it.each(TOPIC_LIST)('describes %s as it is created', (address, definition) => {
    expect(channelAt(address)).toMatchObject({
      messages: { [definition.record]: { $ref: `#/components/messages/${definition.record}` } },
      bindings: {
        kafka: {
          topicConfiguration: {
            'cleanup.policy': [definition.compacted ? 'compact' : 'delete'],
            'retention.ms': Number.isFinite(definition.retentionMs) ? definition.retentionMs : -1,
          },
        },
      },
    });
    const partitions = definition.partitions === 'many' ? 48 : definition.partitions;
    const isPerPool = definition === DISPATCH_TOPIC;
    expect(channelAt(address)?.bindings.kafka.partitions).toBe(isPerPool ? undefined : partitions);
    expect(description.components.messages[definition.record]?.payload?.schema.$ref).toBe(
      `./${definition.schema}.avsc`,
    );
    expect(existsSync(new URL(`${definition.schema}.avsc`, FOLDER))).toBe(true);
  });

  it('describes dead-letter topics', () => {
    expect(channelAt(names.deadLetter('{topic}'))?.bindings.kafka.topicConfiguration).toMatchObject({
      'retention.ms': DEAD_LETTER_RETENTION_MS,
    });
  });

  it('describes no other topic', () => {
    const addresses = [...TOPIC_LIST.map(([address]) => address), names.deadLetter('{topic}')];
    expect(channels.map((channel) => channel.address).sort()).toEqual([...addresses].sort());
  });

  it('has an operation on every channel, and no reference that leads nowhere', () => {
    const used = Object.values(description.operations).map(({ channel }) => channel.$ref);
    expect(new Set(used)).toEqual(
      new Set(Object.keys(description.channels).map((key) => `#/channels/${key}`)),
    );
    const references = JSON.stringify(description).matchAll(/"\$ref":"(#[^"]+)"/g);
    for (const [, reference = ''] of references) expect(follow(reference), reference).toBeDefined();
  });
});
