import { API_VERSION } from '../../core/policy/document.ts';
import { type Accelerator, CAPACITY_CLASSES } from '../../core/policy/fleet.ts';
import { NAME, NAME_ALLOWED } from '../../core/policy/parse-tree.ts';
import { DocumentError } from '../../core/policy/problem.ts';
import { DocumentReader } from '../../core/policy/reader.ts';
import { readSource, type SourceNode } from '../../core/policy/source.ts';
import type { ServiceProfile } from '../../inference/simulated/profiles.ts';
import { ServiceReader } from './read-service.ts';
import type { CapacityChange, SimulatedFleet, SimulatedPool } from './simulated-fleet.ts';

/** A pool's name is part of its dispatch topic's, and a key as other names are. */
const POOL_NAME = /^(?!(?:constructor|prototype)$)[a-z][a-z0-9-]{0,63}$/;
const SLOTS_MAX = 1_000;
/** Over all pools: each is a worker with the whole of its code. */
const WORKERS_MAX = 1_000;
const HOP_MS_MAX = 1_000;

/**
 * Reads the fleet of a simulation, as YAML or JSON: `kind: SimulatedFleet`, or a `kind: Fleet`, whose pools then have one slot each. docs/simulate.md has its fields.
 *
 * @param input at most 64 KB, 4 096 nodes, 32 levels
 * @throws DocumentError INVALID_CONFIG with every problem found (at most 50), each with its path, line and column
 */
export function parseSimulatedFleet(input: string | Uint8Array): SimulatedFleet {
  const root = readSource(input, 'INVALID_CONFIG');
  const reader = new DocumentReader('INVALID_CONFIG');
  const fleet = new SimulatedFleetReader(reader).read(root);
  if (fleet === undefined || reader.problems.length > 0)
    throw new DocumentError('INVALID_CONFIG', reader.problems);
  return fleet;
}

class SimulatedFleetReader {
  readonly #reader: DocumentReader;
  readonly #service: ServiceReader;
  readonly #pools = new Map<string, SimulatedPool>();

  constructor(reader: DocumentReader) {
    this.#reader = reader;
    this.#service = new ServiceReader(reader);
  }

  read(root: SourceNode): SimulatedFleet | undefined {
    const reader = this.#reader;
    const fields = reader.fields(root, {
      apiVersion: 'required',
      kind: 'required',
      name: 'required',
      accelerators: 'required',
      hopMs: 'optional',
      routers: 'optional',
      extractors: 'optional',
      partitions: 'optional',
    });
    if (fields?.name === undefined || fields.accelerators === undefined) return undefined;
    if (fields.apiVersion !== undefined) reader.oneOf(fields.apiVersion, [API_VERSION]);
    if (fields.kind !== undefined) reader.oneOf(fields.kind, ['SimulatedFleet', 'Fleet']);
    const name = reader.text(fields.name, NAME, NAME_ALLOWED);
    const accelerators = this.#accelerators(fields.accelerators);
    const pools = [...this.#pools.values()];
    const workers = pools.reduce((sum, { slots }) => sum + slots, 0);
    if (workers > WORKERS_MAX)
      reader.report(fields.accelerators, 'more workers than a simulation of whole stages can have', {
        value: workers,
        allowed: `at most ${WORKERS_MAX} slots over all pools`,
      });
    const whole = (node: SourceNode | undefined, max: number, otherwise: number): number =>
      (node === undefined ? undefined : reader.number(node, 1, max, 'whole number')) ?? otherwise;
    const hopMs = fields.hopMs === undefined ? undefined : reader.number(fields.hopMs, 0, HOP_MS_MAX);
    return name === undefined
      ? undefined
      : {
          fleet: { name, accelerators },
          pools,
          hopMs: hopMs ?? 1,
          routers: whole(fields.routers, 16, 1),
          extractors: whole(fields.extractors, 16, 1),
          partitions: whole(fields.partitions, 96, 4),
        };
  }

  #accelerators(node: SourceNode): Map<string, Accelerator> {
    const accelerators = new Map<string, Accelerator>();
    for (const [name, each] of this.#reader.map(node) ?? []) {
      if (!NAME.test(name)) this.#reader.report(each, 'not a name', { value: name, allowed: NAME_ALLOWED });
      const read = this.#accelerator(name, each);
      if (read !== undefined) accelerators.set(name, read);
    }
    if (accelerators.size === 0) this.#reader.report(node, 'a fleet without accelerators');
    return accelerators;
  }

  #accelerator(name: string, node: SourceNode): Accelerator | undefined {
    const reader = this.#reader;
    const fields = reader.fields(node, {
      kernels: 'required',
      memories: 'required',
      pools: 'required',
      service: 'optional',
    });
    if (fields?.kernels === undefined || fields.memories === undefined || fields.pools === undefined)
      return undefined;
    const kernels = this.#names(fields.kernels);
    const memories = this.#names(fields.memories);
    const profile = this.#service.profile(name, { kernels, memories, service: fields.service, node });
    if (profile === undefined) return undefined;
    const pools = (reader.list(fields.pools) ?? []).flatMap((item) => this.#pool(name, profile, item) ?? []);
    if (pools.length === 0) reader.report(fields.pools, 'an accelerator class without a pool');
    return {
      kernels,
      memories,
      pools: pools.map(({ pool, capacityClass }) => ({ pool, capacityClass, simulated: true })),
    };
  }

  #names(node: SourceNode): string[] {
    const names = (this.#reader.list(node) ?? []).flatMap(
      (item) => this.#reader.text(item, NAME, NAME_ALLOWED) ?? [],
    );
    if (names.length === 0) this.#reader.report(node, 'at least one name is needed');
    return names;
  }

  #pool(accelerator: string, profile: ServiceProfile, node: SourceNode): SimulatedPool | undefined {
    const reader = this.#reader;
    const fields = reader.fields(node, {
      pool: 'required',
      capacityClass: 'required',
      simulated: 'optional',
      region: 'optional',
      slots: 'optional',
      speed: 'optional',
      capacity: 'optional',
    });
    if (fields?.pool === undefined || fields.capacityClass === undefined) return undefined;
    const pool = reader.text(
      fields.pool,
      POOL_NAME,
      'a small letter, then small letters, digits, "-"; at most 64',
    );
    const capacityClass = reader.oneOf(fields.capacityClass, CAPACITY_CLASSES);
    const region = fields.region === undefined ? undefined : reader.text(fields.region, NAME, NAME_ALLOWED);
    const slots = fields.slots === undefined ? 1 : reader.number(fields.slots, 1, SLOTS_MAX, 'whole number');
    const speed = fields.speed === undefined ? 1 : reader.number(fields.speed, 0.01, 1_000);
    if (fields.simulated !== undefined) reader.flag(fields.simulated);
    if (pool === undefined || capacityClass === undefined || slots === undefined || speed === undefined)
      return undefined;
    if (this.#pools.has(pool)) return reader.report(node, 'the same pool twice', { value: pool });
    const capacity = fields.capacity === undefined ? [] : this.#capacity(fields.capacity, slots);
    const read = { pool, accelerator, capacityClass, region, slots, speed, profile, capacity };
    this.#pools.set(pool, read);
    return read;
  }

  #capacity(node: SourceNode, slotsMax: number): CapacityChange[] {
    const reader = this.#reader;
    let lastMs = -1;
    return (reader.list(node) ?? []).flatMap((item) => {
      const fields = reader.fields(item, { at: 'required', slots: 'required', notice: 'optional' });
      if (fields?.at === undefined || fields.slots === undefined) return [];
      const atMs = reader.durationMs(fields.at);
      const slots = reader.number(fields.slots, 0, slotsMax, 'whole number');
      const noticeMs = fields.notice === undefined ? 0 : reader.durationMs(fields.notice);
      if (atMs === undefined || slots === undefined || noticeMs === undefined) return [];
      if (atMs <= lastMs) {
        reader.report(fields.at, 'capacity changes that are not in the order of their times', {
          value: `${atMs} ms`,
          allowed: `later than ${lastMs} ms`,
        });
      }
      lastMs = atMs;
      return [{ atMs, slots, noticeMs }];
    });
  }
}
