import { describe, expect, it } from 'vitest';
import { brokerProperties } from '../../../src/local-stack/broker-properties.ts';

const nodes = [1, 2, 3].map((nodeId) => ({
  nodeId,
  brokerPort: 20_000 + nodeId,
  controllerPort: 21_000 + nodeId,
}));

function parse(text: string): Record<string, string> {
  const lines = text.trimEnd().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2) as [string, string]));
}

function propertiesOf(brokers: number, index: number): Record<string, string> {
  const cluster = nodes.slice(0, brokers);
  const node = cluster[index];
  if (node === undefined) throw new Error('no such node');
  return parse(brokerProperties({ node, nodes: cluster, storage: '/data/storage' }));
}

describe('brokerProperties', () => {
  it('makes one broker that is its own controller and listens on loopback only', () => {
    expect(propertiesOf(1, 0)).toMatchObject({
      'process.roles': 'broker,controller',
      'node.id': '1',
      'controller.quorum.voters': '1@127.0.0.1:21001',
      listeners: 'PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:21001',
      'advertised.listeners': 'PLAINTEXT://127.0.0.1:20001',
      'log.dirs': '/data/storage',
      'auto.create.topics.enable': 'false',
      'group.initial.rebalance.delay.ms': '0',
      'message.max.bytes': '2097152',
    });
  });

  it('names every broker of three as a voter, each with its own ports', () => {
    const third = propertiesOf(3, 2);
    expect(third['controller.quorum.voters']).toBe('1@127.0.0.1:21001,2@127.0.0.1:21002,3@127.0.0.1:21003');
    expect(third['node.id']).toBe('3');
    expect(third['advertised.listeners']).toBe('PLAINTEXT://127.0.0.1:20003');
  });

  it.each([
    { brokers: 1, replication: '1', inSync: '1' },
    { brokers: 3, replication: '3', inSync: '2' },
  ])('replicates $replication times, $inSync in sync, on $brokers', ({ brokers, replication, inSync }) => {
    const properties = propertiesOf(brokers, 0);
    const replicated = [
      'default.replication.factor',
      'offsets.topic.replication.factor',
      'transaction.state.log.replication.factor',
      'share.coordinator.state.topic.replication.factor',
    ];
    for (const name of replicated) expect(properties[name], name).toBe(replication);
    const synchronized = [
      'min.insync.replicas',
      'transaction.state.log.min.isr',
      'share.coordinator.state.topic.min.isr',
    ];
    for (const name of synchronized) expect(properties[name], name).toBe(inSync);
  });
});
