import type { ControlCommand } from '../../contracts/records.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import { type Delivery, runStage } from '../run-stage.ts';
import { type Stage, type StageDeps, staleFetch } from '../stage.ts';
import { Controller, type ControllerConfig, type ControllerDeps } from './controller.ts';

export interface PolicyControllerConfig extends ControllerConfig {
  reconcileMs: number;
}

/** control → control-events and the store. One leads: the owner of the control topic's single partition. */
export async function createPolicyControllerStage(
  config: PolicyControllerConfig,
  deps: StageDeps & Pick<ControllerDeps, 'digest' | 'checkPolicy'> & { store: ControlStore },
): Promise<Stage & { controller: Controller }> {
  const controller = new Controller(config, deps);
  const topic = deps.topics.fixed('control');
  const group = `${deps.topics.prefix}.policy-controller`;
  const log = deps.telemetry.logger.child({ stage: 'policy-controller' });
  let leads = false;
  let work: Promise<void> = Promise.resolve();
  /** Commands and leadership are handled one after another, in the order in which they came. */
  const enqueue = (what: string, step: () => Promise<void>): void => {
    work = work
      .then(step)
      .catch((error: unknown) =>
        log.error({ what, error: String(error) }, 'the controller could not finish a step'),
      );
  };
  const takeOver = async (): Promise<void> => {
    const committed = (await deps.bus.admin.committed(group, topic)).get(0) ?? -1;
    await controller.lead(Math.max(0, committed));
    leads = true;
    log.info({ term: controller.state.term }, 'this controller leads');
  };
  const running = await runStage<ControlCommand>(deps, {
    name: 'policy-controller',
    subscription: { group, topics: [topic], startAt: 'earliest', unacknowledgedMax: 64 },
    codec: deps.codecs.for('ControlCommand'),
    tries: 1,
    onAssigned: (partitions) => {
      if (partitions.length > 0) enqueue('lead', takeOver);
    },
    handle: (delivery: Delivery<ControlCommand>) =>
      enqueue('command', async () => {
        await controller.handle(delivery.record, delivery.value);
        delivery.finish([]);
      }),
    abandon: () => {
      leads = false;
    },
    deadLetters: (record, _value, code, message) => {
      log.error({ offset: record.offset, code, reason: message }, 'a control record cannot be read');
      return [controller.unreadable(record, `${code}: ${message}`)];
    },
  });
  const cancelReconcile = deps.clock.every(config.reconcileMs, () => {
    if (leads) enqueue('reconcile', () => controller.reconcile());
  });
  return {
    name: 'policy-controller',
    controller,
    unready: () => staleFetch(running.sinceLastFetchMs()),
    inFlight: () => running.inFlight(),
    async close() {
      cancelReconcile();
      await running.close();
      await work;
    },
  };
}
