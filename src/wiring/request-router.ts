import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import { poolsOf } from '../core/policy/fleet-pools.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import type { ControlStore } from '../ports/control-store.ts';
import { createRequestRouterStage, type RequestRouterConfig } from '../stages/request-router/stage.ts';
import type { Stage, StageDeps } from '../stages/stage.ts';
import { claimAckPartition } from './ack-partition.ts';
import { followPolicy } from './follow-policy.ts';
import { readBuiltInPolicy } from './policy-files.ts';

/**
 * The router, fused with the extractor where the topology says so, following the pointer of its policy in the store. Only the fused one reads
 * the models' contracts.
 */
export async function startRequestRouter(
  settings: Settings,
  deps: StageDeps,
  surroundings: {
    fleet: Fleet;
    store: ControlStore;
    openModels: () => Promise<ModelRepository>;
    /** Where policies are read and validated: in a thread of their own by default, so that no request waits for that. */
    checkIn?: 'thread' | 'event-loop';
  },
): Promise<Stage> {
  const { fleet, store } = surroundings;
  const name = settings.router.name === '' ? `router-${randomUUID().slice(0, 8)}` : settings.router.name;
  const builtIn = readBuiltInPolicy(settings, fleet);
  const follow = followPolicy(settings, deps, { ...surroundings, name, builtIn });
  try {
    const [lease] = await Promise.all([claimAckPartition(deps, store, name), follow.start()]);
    const config = routerConfig(settings, fleet, name, lease.partition);
    const { stable, canary } = follow.policies();
    const stage =
      settings.topology === 'fused'
        ? await (await import('./fused.ts')).startFused(
            settings,
            deps,
            config,
            { stable, canary },
            await surroundings.openModels(),
          )
        : await createRequestRouterStage(config, deps, stable, canary);
    follow.swapOn(stage.router);
    return {
      ...stage,
      unready: () => stage.unready(),
      async close() {
        await follow.close();
        await stage.close();
        await lease.release();
      },
    };
  } catch (error) {
    await follow.close();
    throw error;
  }
}

function routerConfig(
  settings: Settings,
  fleet: Fleet,
  name: string,
  ackPartition: number,
): RequestRouterConfig {
  return {
    router: `${name}#${randomUUID().slice(0, 8)}`,
    ackPartition,
    creditsMax: settings.router.creditsMax,
    statusStaleMs: settings.router.statusStaleMs,
    giveUpGraceMs: settings.router.giveUpGraceMs,
    latencyApartMin: settings.guardrails.latencyApartMin,
    poolsOf: poolsOf(fleet),
    unacknowledgedMax: settings.unacknowledgedMax,
    deadLetterPayload: settings.deadLetterPayload,
    tries: settings.tries,
    windowMs: settings.windowMs,
  };
}
