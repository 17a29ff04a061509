import { createKafkaBus } from '../../src/adapters/kafka/bus.ts';
const logger: any = { debug() {}, info: console.log, warn: (f: any, m: string) => console.log('WARN', m, JSON.stringify(f, (k, v) => v instanceof Error ? `${v.name}: ${v.message}` : v)), error: (f: any, m: string) => console.log('ERROR', m, f), child: () => logger };
const telemetry: any = { logger, counter: () => ({ add() {} }), gauge: () => ({ set() {} }), histogram: () => ({ observe() {} }) };
const bus = await createKafkaBus({ client: 'kafkajs', brokers: ['127.0.0.1:29192'], clientId: 'scratch', drainTimeoutMs: 2000, sessionTimeoutMs: 6000, telemetry });
const t = `t-${Date.now()}`;
console.time('create');
console.log(await bus.admin.createTopics([{ name: t, partitions: 4, replication: 1, config: { 'message.timestamp.type': 'LogAppendTime' } }]));
console.timeEnd('create');
console.time('produce');
await Promise.all(Array.from({ length: 1000 }, (_, i) => bus.produce({ topic: t, partition: i % 4, key: Buffer.from(`k${i}`), value: Buffer.from(`v${i}`) })));
console.timeEnd('produce');
console.log(await bus.admin.watermarks(t));
let n = 0; let done: any; const all = new Promise((r) => (done = r));
console.time('subscribe');
const sub: any = await bus.subscribe({ group: `g-${t}`, topics: [t], startAt: 'earliest' }, {
  onRecords(rs) { n += rs.length; for (const r of rs) sub0().acknowledge(r); if (n >= 1000) done(); },
  onAssigned(p) { console.log('assigned', p.length); }, async onRevoked(p) { console.log('revoked', p.length); }, onError(e) { console.log('onError', e); } });
function sub0(): any { return sub ?? { acknowledge() { console.log('early ack'); } }; }
console.timeEnd('subscribe');
await all; console.log('consumed', n, sub.assigned(), sub.sinceLastFetchMs());
await new Promise((r) => setTimeout(r, 300));
console.log(await bus.admin.committed(`g-${t}`, t));
console.time('read');
const reader = await bus.read({ topics: [t], startAt: 'earliest' }, (rs) => { n += rs.length; });
console.timeEnd('read');
await reader.caughtUp; console.log('read', n);
try { await bus.produce({ topic: 'nope', partition: 0, key: null, value: null }); } catch (e: any) { console.log(e.message); }
try { await bus.produce({ topic: t, partition: 9, key: null, value: null }); } catch (e: any) { console.log(e.message); }
console.time('close'); await bus.close(); console.timeEnd('close');
