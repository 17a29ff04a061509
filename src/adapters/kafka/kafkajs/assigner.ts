import kafkajs, { type Assigner, type Cluster } from 'kafkajs';
import type { TopicPartition } from '../../../ports/message-bus.ts';
import { assignPartitions, type Member, protocolName } from '../assignment.ts';
import { type Claims, decodeClaims, encodeClaims } from '../claims.ts';
import type { SessionOptions } from '../client.ts';
import { byTopic } from '../partition-table.ts';

const VERSION = 0;

/** Our assignment as a kafkajs assigner: what the member claims travels with its join, and the leader decides with `assignment.ts`. */
export function createAssigner(cluster: Cluster, options: SessionOptions, claims: () => Claims): Assigner {
  const { membership } = options;
  return {
    name: protocolName(membership),
    version: VERSION,
    protocol({ topics }) {
      const metadata = kafkajs.AssignerProtocol.MemberMetadata.encode({
        version: VERSION,
        topics,
        userData: encodeClaims(claims()),
      });
      return { name: protocolName(membership), metadata };
    },
    async assign({ members }) {
      const assignment = assignPartitions(membership, members.map(readMember), (topic) =>
        partitionCount(cluster, topic),
      );
      return members.map(({ memberId }) => ({
        memberId,
        memberAssignment: kafkajs.AssignerProtocol.MemberAssignment.encode({
          version: VERSION,
          assignment: byTopicName(assignment.get(memberId) ?? []),
          userData: Buffer.alloc(0),
        }),
      }));
    },
  };
}

function readMember({ memberId, memberMetadata }: { memberId: string; memberMetadata: Buffer }): Member {
  const metadata = kafkajs.AssignerProtocol.MemberMetadata.decode(memberMetadata);
  return {
    id: memberId,
    topics: metadata?.topics ?? [],
    ...decodeClaims(metadata?.userData ?? Buffer.alloc(0)),
  };
}

function partitionCount(cluster: Cluster, topic: string): number {
  return cluster.findTopicPartitionMetadata(topic).length;
}

function byTopicName(partitions: readonly TopicPartition[]): Record<string, number[]> {
  return Object.fromEntries(
    [...byTopic(partitions)].map(([topic, list]) => [topic, list.map(({ partition }) => partition)]),
  );
}
