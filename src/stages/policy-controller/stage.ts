import type { ControlCommand } from '../../contracts/records.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Cancel } from '../../ports/clock.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import { runStage } from '../run-stage.ts';
import { type Stage, type StageDeps, staleFetch } from '../stage.ts';
import { Controller, type ControllerDeps } from './controller.ts';
import type { ControllerConfig } from './controller-config.ts';
import { Leading } from './leading.ts';

export interface PolicyControllerConfig extends ControllerConfig {
  reconcileMs: number;
}

const RENEWALS_PER_LEASE = 6;
/** A period ends when it is noticed to be over. */
const CHECKS_PER_PERIOD = 20;

/** control → control-events and the store. One leads: the owner of the control topic's single partition. */
export async function createPolicyControllerStage(
  config: PolicyControllerConfig,
  deps: StageDeps &
    Pick<
      ControllerDeps,
      'digest' | 'checkPolicy' | 'observer' | 'metrics' | 'tuner' | 'fleetVersions' | 'signatures' | 'signer'
    > & {
      store: ControlStore;
    },
): Promise<Stage & { controller: Controller }> {
  const controller = new Controller(config, deps);
  const topic = deps.topics.fixed('control');
  const group = `${deps.topics.prefix}.policy-controller`;
  const log = deps.telemetry.logger.child({ stage: 'policy-controller' });
  const leading = new Leading(controller, deps.clock, log, deps.telemetry, async () =>
    Math.max(0, (await deps.bus.admin.committed(group, topic)).get(0) ?? -1),
  );
  const running = await runStage<ControlCommand>(deps, {
    name: 'policy-controller',
    subscription: { group, topics: [topic], startAt: 'earliest', unacknowledgedMax: 64 },
    codec: deps.codecs.for('ControlCommand'),
    tries: 1,
    onAssigned: (partitions) => {
      if (partitions.length > 0) leading.begin();
    },
    handle: (delivery) => leading.take(delivery),
    abandon: () => leading.end(),
    deadLetters: (record, _value, code, message) => {
      // What is wrong may be the same that keeps this controller from leading: then nobody may refuse the command for it.
      if (leading.obstacle !== undefined) throw new MillraceError('LOG_UNREADABLE', leading.obstacle);
      log.error({ offset: record.offset, code, reason: message }, 'a control record cannot be read');
      return [controller.unreadable(record, `${code}: ${message}`)];
    },
  });
  const periods = periodsOf(controller, leading, config);
  return {
    name: 'policy-controller',
    controller,
    unready: () => leading.obstacle ?? staleFetch(running.sinceLastFetchMs()),
    inFlight: () => running.inFlight(),
    async close() {
      for (const cancel of periods) cancel();
      await running.close();
    },
  };
}

/** What is done without a command. */
function periodsOf(
  controller: Controller,
  leading: Leading,
  { reconcileMs, rollout, tuning }: PolicyControllerConfig,
): Cancel[] {
  const { lookMs, leaseMs } = rollout;
  const periods = [
    leading.periodically(reconcileMs, (over) => controller.reconcile(over)),
    leading.periodically(lookMs, (over) => controller.look(over)),
    leading.periodically(leaseMs / RENEWALS_PER_LEASE, (over) => controller.renew(over)),
  ];
  if (tuning !== undefined)
    periods.push(leading.periodically(tuning.periodMs / CHECKS_PER_PERIOD, (over) => controller.tune(over)));
  return periods;
}
