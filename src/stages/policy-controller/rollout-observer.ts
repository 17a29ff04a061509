import type { Observation } from '../../core/rollout/observation.ts';
import { refusalsOf } from '../../core/rollout/router-report.ts';
import type { PoolsOf } from '../../core/routing/choose.ts';
import type { ControlStore } from '../../ports/control-store.ts';
import { follow } from '../follow.ts';
import type { StageDeps } from '../stage.ts';
import { RolloutWindows, type Watched } from './rollout-windows.ts';

/** The pools are found by the accelerator classes that the policies of both arms name. */
export type WatchedRollout = Omit<Watched, 'pools'> & { accelerators: readonly string[] };

/** Sees what rollouts do to the traffic. */
export interface RolloutObserver {
  /**
   * What was seen of a rollout's stage since the last look at it; undefined at the first, from which on it is counted.
   * @param scope whose routers' refusals are read, such as `policy/feed-router`
   */
  observe(scope: string, watched: WatchedRollout): Promise<Observation | undefined>;
  close(): Promise<void>;
}

/** Follows the pipeline's metrics topics from now on. */
export async function openRolloutObserver(
  deps: StageDeps & { store: ControlStore; digest(bytes: Uint8Array): string },
  poolsOf: PoolsOf,
): Promise<RolloutObserver> {
  const { clock, store } = deps;
  const scopes = new Map<string, RolloutWindows>();
  const each = (take: (windows: RolloutWindows) => void): void => {
    for (const windows of scopes.values()) take(windows);
  };
  const readers = await Promise.all([
    follow(deps, 'routing-metrics', 'RouterWindow', (window) =>
      each((windows) => windows.takeRouterWindow(window)),
    ),
    follow(deps, 'latency-metrics', 'WorkerWindow', (window) =>
      each((windows) => windows.takeWorkerWindow(window)),
    ),
    follow(
      deps,
      'pool-status',
      'PoolStatus',
      (status) => each((windows) => windows.takeStatus(status, clock.monotonicMs())),
      { gone: (worker) => each((windows) => windows.workerGone(worker)) },
    ),
  ]);
  return {
    async observe(scope, { accelerators, ...rest }) {
      let windows = scopes.get(scope);
      if (windows === undefined) {
        windows = new RolloutWindows((text) => deps.digest(Buffer.from(text)));
        scopes.set(scope, windows);
      }
      const watched = { ...rest, pools: [...new Set(accelerators.flatMap(poolsOf))] };
      const refusals = await readRefusals(deps, store, scope, watched.epoch);
      return windows.observe(watched, clock.monotonicMs(), Math.round(clock.wallMs()), refusals);
    },
    async close() {
      await Promise.all(readers.map((reader) => reader.close()));
    },
  };
}

/** Routers that do not run what the pointer of this epoch says. A store that is away has none to tell. */
async function readRefusals(
  deps: StageDeps,
  store: ControlStore,
  scope: string,
  epoch: number,
): Promise<string[]> {
  try {
    return refusalsOf(await store.readReports(scope), epoch);
  } catch (error) {
    deps.telemetry.logger.debug({ scope, error: String(error) }, 'the reports of routers are not to be had');
    return [];
  }
}
