import type { ControlCommand } from '../../contracts/records.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Cancel } from '../../ports/clock.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import { type Delivery, runStage } from '../run-stage.ts';
import { type Stage, type StageDeps, staleFetch } from '../stage.ts';
import { Controller, type ControllerDeps } from './controller.ts';
import type { ControllerConfig } from './controller-config.ts';

export interface PolicyControllerConfig extends ControllerConfig {
  reconcileMs: number;
}

/** From the assignment of the control topic's partition until it goes away. */
interface Leadership {
  over: AbortController;
  /** The state is replayed and the term taken. */
  leads: boolean;
}

const RETRY_MS = 500;
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
  /** Commands whose turn has not come. */
  const queued = new Set<Delivery<ControlCommand>>();
  let leadership: Leadership | undefined;
  let work: Promise<void> = Promise.resolve();
  /** Commands and leadership are handled one after another, in the order in which they came. */
  const enqueue = (step: () => Promise<void>): void => {
    work = work.then(step).catch((error: unknown) => {
      log.error({ error: String(error) }, 'a step of the controller failed');
    });
  };
  /** @returns false where the leadership was over before it worked. @throws what `isHopeless` says no further try can mend */
  const insist = async (
    what: string,
    over: AbortSignal,
    step: () => Promise<void>,
    isHopeless: (error: unknown) => boolean,
  ): Promise<boolean> => {
    while (!over.aborted) {
      try {
        await step();
        return true;
      } catch (error) {
        if (over.aborted) return false;
        if (isHopeless(error)) throw error;
        log.warn({ what, error: String(error) }, 'the controller could not finish a step; trying again');
        await new Promise<void>((resolve) => deps.clock.after(RETRY_MS, resolve));
      }
    }
    return false;
  };
  const takeOver = async (own: Leadership): Promise<void> => {
    const { signal } = own.over;
    const step = async (): Promise<void> => {
      const committed = (await deps.bus.admin.committed(group, topic)).get(0) ?? -1;
      await controller.lead(Math.max(0, committed), signal);
    };
    own.leads = await insist('lead', signal, step, () => false);
    if (own.leads) log.info({ term: controller.state.term }, 'this controller leads');
  };
  const decide = async (delivery: Delivery<ControlCommand>, over: AbortSignal): Promise<void> => {
    if (!queued.delete(delivery)) return;
    try {
      const step = (): Promise<void> => controller.handle(delivery.record, delivery.value, over);
      const isDecided = await insist('command', over, step, (error) => !isRetryable(error));
      if (isDecided) delivery.finish([]);
      else delivery.abandon();
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : 'POISON';
      delivery.deadLetter(code, error instanceof Error ? error.message : String(error));
    }
  };
  /** In its turn among the commands, and never twice at once. */
  const periodically = (periodMs: number, step: (over: AbortSignal) => Promise<void>): Cancel => {
    let isQueued = false;
    return deps.clock.every(periodMs, () => {
      if (leadership?.leads !== true || isQueued) return;
      isQueued = true;
      const { signal } = leadership.over;
      enqueue(async () => {
        try {
          if (!signal.aborted) await step(signal);
        } catch (error) {
          if (!signal.aborted) throw error;
        } finally {
          isQueued = false;
        }
      });
    });
  };
  const running = await runStage<ControlCommand>(deps, {
    name: 'policy-controller',
    subscription: { group, topics: [topic], startAt: 'earliest', unacknowledgedMax: 64 },
    codec: deps.codecs.for('ControlCommand'),
    tries: 1,
    onAssigned: (partitions) => {
      if (partitions.length === 0) return;
      const own: Leadership = { over: new AbortController(), leads: false };
      leadership = own;
      enqueue(() => takeOver(own));
    },
    handle: (delivery) => {
      const over = leadership?.over.signal;
      if (over === undefined) {
        delivery.abandon();
        return;
      }
      queued.add(delivery);
      enqueue(() => decide(delivery, over));
    },
    abandon: () => {
      leadership?.over.abort();
      leadership = undefined;
      for (const delivery of queued) delivery.abandon();
      queued.clear();
    },
    deadLetters: (record, _value, code, message) => {
      log.error({ offset: record.offset, code, reason: message }, 'a control record cannot be read');
      return [controller.unreadable(record, `${code}: ${message}`)];
    },
  });
  const { lookMs, leaseMs } = config.rollout;
  const periods = [
    periodically(config.reconcileMs, (over) => controller.reconcile(over)),
    periodically(lookMs, (over) => controller.look(over)),
    periodically(leaseMs / RENEWALS_PER_LEASE, (over) => controller.renew(over)),
    ...(config.tuning === undefined
      ? []
      : [periodically(config.tuning.periodMs / CHECKS_PER_PERIOD, (over) => controller.tune(over))]),
  ];
  return {
    name: 'policy-controller',
    controller,
    unready: () => staleFetch(running.sinceLastFetchMs()),
    inFlight: () => running.inFlight(),
    async close() {
      for (const cancel of periods) cancel();
      await running.close();
    },
  };
}

function isRetryable(error: unknown): boolean {
  return error instanceof MillraceError && error.retryable;
}
