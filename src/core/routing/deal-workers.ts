/**
 * Which router owns which worker: by falling speed each worker goes to the router that owns the least speed so far. An owner sends to its own
 * first, so that routers which cannot see each other's dispatches do not all find the same worker idle.
 *
 * All routers deal alike from the same members, whatever order they heard of them in: equal speeds go by place.
 *
 * @param speeds by worker; of one that is not there undefined
 * @param routers those that are there
 * @returns by worker the router that owns it; undefined where there is no such worker, or no router
 */
export function dealWorkers(
  speeds: readonly (number | undefined)[],
  routers: readonly number[],
): (number | undefined)[] {
  const owners: (number | undefined)[] = speeds.map(() => undefined);
  const dealt = routers.toSorted((a, b) => a - b).map((router) => ({ router, speed: 0 }));
  const fastestFirst = speeds
    .flatMap((speed, worker) => (speed === undefined ? [] : { worker, speed }))
    .sort((a, b) => b.speed - a.speed || a.worker - b.worker);
  for (const { worker, speed } of fastestFirst) {
    let least = dealt[0];
    for (const each of dealt) if (least !== undefined && each.speed < least.speed) least = each;
    if (least === undefined) break;
    owners[worker] = least.router;
    least.speed += speed;
  }
  return owners;
}
