import type { PoolStatus } from '../../contracts/records.ts';
import { LiveWorkers } from './live-workers.ts';

/**
 * What kinds of workers pools have, so that a change of build, backend or model is told from workers that come and go: a pool that has nobody just
 * now, and a published version that nobody there has ready just now, are what they were when last somebody was.
 */
export class WorkerKinds {
  readonly #workers = new LiveWorkers<PoolStatus>();
  #known: ReadonlyMap<string, string> = new Map();

  take(status: PoolStatus, nowMs: number): void {
    this.#workers.heard(status.worker, status, nowMs);
  }

  gone(worker: string): void {
    this.#workers.gone(worker);
  }

  /**
   * The kinds in these pools, and who among them can run the published ones of these versions; '' while nothing was heard of any of them.
   *
   * @param models `family@version`
   */
  describe(pools: readonly string[], models: readonly string[], nowMs: number): string {
    const seen = new Map<string, Set<string>>();
    const see = (key: string, kind: string): void => {
      seen.set(key, (seen.get(key) ?? new Set()).add(kind));
    };
    const wanted = new Set(pools.flatMap((pool) => [pool, ...models.map((model) => readyKey(pool, model))]));
    for (const status of this.#workers.live(nowMs)) {
      see(status.pool, kindOf(status));
      // Each for itself: a worker that is still loading one is not another kind of worker.
      for (const { family, version, digest, status: state } of status.published)
        if (state === 'READY') see(readyKey(status.pool, `${family}@${version}`), digest);
    }
    const now = [...seen].map(([key, kinds]): [string, string] => [
      key,
      `${key}: ${[...kinds].sort().join('; ')}`,
    ]);
    this.#known = new Map([...this.#known, ...now].filter(([key]) => wanted.has(key)));
    return [...this.#known.values()].sort().join('\n');
  }
}

function kindOf({ build, backend, models }: PoolStatus): string {
  const served = models.map(({ family, version, variant }) => `${family}@${version} ${variant}`).sort();
  return [build, backend, ...served].join(' ');
}

function readyKey(pool: string, model: string): string {
  return `${pool} ${model}`;
}
