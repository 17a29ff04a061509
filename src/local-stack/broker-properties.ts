/** One broker, which is also a controller, with its loopback ports. */
export interface BrokerNode {
  nodeId: number;
  brokerPort: number;
  controllerPort: number;
}

const MESSAGE_BYTES_MAX = 2 * 2 ** 20;
const COORDINATOR_PARTITIONS = 8;
const BROKER_SESSION_MS = 4_000;
const BROKER_HEARTBEAT_MS = 500;

/** server.properties of one broker of a cluster whose brokers are `nodes`: replication 1 on one broker, else 3 with 2 in sync. */
export function brokerProperties(options: {
  node: BrokerNode;
  nodes: readonly BrokerNode[];
  storage: string;
}): string {
  const { node, nodes, storage } = options;
  const replication = Math.min(nodes.length, 3);
  const inSync = Math.max(1, replication - 1);
  const broker = `PLAINTEXT://127.0.0.1:${node.brokerPort}`;
  const voters = nodes.map((each) => `${each.nodeId}@127.0.0.1:${each.controllerPort}`).join(',');
  const properties: Record<string, string | number | boolean> = {
    'process.roles': 'broker,controller',
    'node.id': node.nodeId,
    'controller.quorum.voters': voters,
    listeners: `${broker},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': broker,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': storage,
    'message.max.bytes': MESSAGE_BYTES_MAX,
    'replica.fetch.max.bytes': MESSAGE_BYTES_MAX,
    'default.replication.factor': replication,
    'min.insync.replicas': inSync,
    'offsets.topic.replication.factor': replication,
    'offsets.topic.num.partitions': COORDINATOR_PARTITIONS,
    'transaction.state.log.replication.factor': replication,
    'transaction.state.log.num.partitions': COORDINATOR_PARTITIONS,
    'transaction.state.log.min.isr': inSync,
    'share.coordinator.state.topic.replication.factor': replication,
    'share.coordinator.state.topic.min.isr': inSync,
    'group.initial.rebalance.delay.ms': 0,
    'auto.create.topics.enable': false,
    // After kill -9 the controller waits this long (9 s by default) until it believes that a broker is gone, and
    // refuses the same broker for as long when it comes back.
    'broker.session.timeout.ms': BROKER_SESSION_MS,
    'broker.heartbeat.interval.ms': BROKER_HEARTBEAT_MS,
  };
  return `${Object.entries(properties)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')}\n`;
}
