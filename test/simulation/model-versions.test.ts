import { describe, expect, it } from 'vitest';
import {
  type CommandType,
  type ControlEvent,
  makeControlCommand,
  type ScoreRequest,
} from '../../src/contracts/records.ts';
import { manifestText, type PublishedModel } from '../../src/core/model/published-model.ts';
import { digestOf } from '../../src/wiring/policy-files.ts';
import { policyText } from './fleet.ts';
import { Installation } from './installation.ts';
import { scheduleTraffic } from './traffic.ts';

function model(version: string): PublishedModel {
  const files = [{ name: 'config.yaml', bytes: 1, digest: digestOf(Buffer.from(version)) }];
  const digest = digestOf(Buffer.from(manifestText(files)));
  return { family: 'ranker', version, source: '/models', digest, files };
}

const naming = (version: number, ranker: string): string =>
  `${policyText(version)}models: {ranker: ${ranker}}\n`;

/** An installation with a controller that publishes to live at once, and traffic by the hundred. */
async function open(topology: 'split' | 'fused', refusals: ReadonlyMap<string, string> = new Map()) {
  // wired as in production: it knows what workers can run
  const controller = { 'controller.rollout': 'immediate' };
  const installation = new Installation({ seed: 3, deliveryDelayMs: 1, topology, refusals, controller });
  await installation.open();
  installation.startAll();
  await installation.allSettled();
  const events: ControlEvent[] = [];
  const { bus, codecs, topics } = installation.client;
  await installation.settle(
    bus.read({ topics: [topics.fixed('control-events')], startAt: 'earliest' }, (records) => {
      for (const { value } of records) {
        const decoded = codecs.for('ControlEvent').decode(value);
        if (decoded.status === 'ok') events.push(decoded.value);
      }
    }),
  );
  let commands = 0;
  const send = async (type: CommandType, scope: string, body: string): Promise<ControlEvent | undefined> => {
    commands += 1;
    const commandId = `c${commands}`;
    const command = makeControlCommand({ commandId, scope, type, body: Buffer.from(body), actor: 'ana' });
    const value = codecs.for('ControlCommand').encode(command);
    await installation.settle(
      bus.produce({ topic: topics.fixed('control'), partition: 0, key: null, value }),
    );
    await installation.pass(2_000);
    return events.find((event) => event.commandId === commandId);
  };
  const publishModel = (version: string) =>
    send('PUBLISH_MODEL', 'model/ranker', JSON.stringify(model(version)));
  const publishPolicy = (text: string) => send('PUBLISH_POLICY', 'policy/sim', text);
  let sent = 0;
  /** Sends a hundred requests while `meanwhile` happens; which versions answered how many, and how. */
  const traffic = async (meanwhile: () => void = () => undefined): Promise<Record<string, number>> => {
    const before = installation.auditor.results.length;
    const first = sent;
    sent += 100;
    const change = (request: ScoreRequest, n: number): ScoreRequest => named(request, first + n);
    await scheduleTraffic(installation, { requests: 100, spreadMs: 2_000, deadlinesMs: [60_000], change });
    await installation.pass(500);
    meanwhile();
    for (let n = 0; n < 100 && (n < 10 || installation.ledger.summary().inFlight > 0); n += 1)
      await installation.pass(300);
    const answered: Record<string, number> = {};
    for (const { outcome, modelVersion } of installation.auditor.results.slice(before)) {
      const how = `${outcome} ${modelVersion}`;
      answered[how] = (answered[how] ?? 0) + 1;
    }
    return answered;
  };
  const closeBooks = (): void => {
    expect(installation.ledger.summary()).toMatchObject({ ingress: sent, inFlight: 0, balanced: true });
    expect(installation.auditor.violations).toEqual([]);
  };
  return { installation, publishModel, publishPolicy, traffic, closeBooks };
}

function named(request: ScoreRequest, n: number): ScoreRequest {
  return { ...request, requestId: `r${n}`, bucketKey: `user-${n}` };
}

describe.each(['split', 'fused'] as const)(
  'model versions in the whole pipeline, topology %s',
  (topology) => {
    it('serve nobody until a policy names them, and then everybody, without an error', async () => {
      const { publishModel, publishPolicy, traffic, closeBooks } = await open(topology);
      await publishPolicy(policyText(1).toString());
      expect(await publishModel('7')).toMatchObject({ accepted: true, type: 'model-published' });
      expect(await traffic()).toEqual({ 'SCORED 1': 100 });
      expect(await publishPolicy(naming(2, '7'))).toMatchObject({ accepted: true });
      expect(await traffic()).toEqual({ 'SCORED 7': 100 });
      closeBooks();
    });

    it('that workers refuse may not be named, and the ones before serve on', async () => {
      const refusals = new Map([['ranker@7', 'golden case one-candidate gives NaN for click[0], not 0.25']]);
      const { publishModel, publishPolicy, traffic, closeBooks } = await open('split', refusals);
      await publishPolicy(policyText(1).toString());
      await publishModel('7');
      const refused = await publishPolicy(naming(2, '7'));
      expect(refused).toMatchObject({
        accepted: false,
        reason: expect.stringMatching(
          /cpu-0 \(pool cpu\) refuses ranker@7: golden case one-candidate gives NaN/,
        ),
      });
      expect(await traffic()).toEqual({ 'SCORED 1': 100 });
      closeBooks();
    });

    it('that are live survive a worker that dies: its next life has them before it takes its slot', async () => {
      const { installation, publishModel, publishPolicy, traffic, closeBooks } = await open('split');
      await publishModel('7');
      await publishPolicy(naming(1, '7'));
      const answered = await traffic(() => {
        const [worker] = installation.up('cpu-0');
        if (worker === undefined) throw new Error('there is no worker');
        installation.crash(worker);
        installation.startWorker('cpu', 0);
      });
      expect(Object.keys(answered)).toEqual(['SCORED 7']);
      closeBooks();
    });

    it('that are live and that nobody can have any more are answered for by the folder, degraded', async () => {
      const { installation, publishModel, publishPolicy, traffic, closeBooks } = await open('split');
      await publishModel('7');
      await publishPolicy(naming(1, '7'));
      expect(await traffic()).toEqual({ 'SCORED 7': 100 });
      installation.store.stop();
      for (const host of [...installation.up('cpu-'), ...installation.up('gpu-')]) {
        installation.crash(host);
        const [pool = '', slot = ''] = host.name.split('-');
        installation.startWorker(pool, Number(slot));
      }
      await installation.pass(5_000);
      expect(await traffic()).toEqual({ 'DEGRADED 1': 100 });
      installation.store.start();
      await installation.pass(5_000);
      expect(await traffic()).toEqual({ 'SCORED 7': 100 });
      closeBooks();
    });
  },
);
