import { API_VERSION } from './document.ts';
import { type Accelerator, CAPACITY_CLASSES, type Fleet, type FleetPool } from './fleet.ts';
import { NAME, NAME_ALLOWED } from './parse-tree.ts';
import { DocumentError } from './problem.ts';
import { DocumentReader } from './reader.ts';
import { readSource, type SourceNode } from './source.ts';

/** A pool's name is part of its dispatch topic's, and a key as other names are. */
const POOL_NAME = /^(?!(?:constructor|prototype)$)[a-z][a-z0-9-]{0,63}$/;

/**
 * Reads a fleet, as YAML or JSON: which accelerator classes there are, what they can run, and which pools they have.
 *
 * @param input at most 64 KB, 4 096 nodes, 32 levels
 * @throws DocumentError INVALID_CONFIG with every problem found (at most 50), each with its path, line and column
 */
export function parseFleet(input: string | Uint8Array): Fleet {
  const root = readSource(input, 'INVALID_CONFIG');
  const reader = new DocumentReader('INVALID_CONFIG');
  const fleet = new FleetReader(reader).read(root);
  if (fleet === undefined || reader.problems.length > 0)
    throw new DocumentError('INVALID_CONFIG', reader.problems);
  return fleet;
}

class FleetReader {
  readonly #reader: DocumentReader;
  readonly #pools = new Set<string>();

  constructor(reader: DocumentReader) {
    this.#reader = reader;
  }

  read(root: SourceNode): Fleet | undefined {
    const fields = this.#reader.fields(root, {
      apiVersion: 'required',
      kind: 'required',
      name: 'required',
      accelerators: 'required',
    });
    if (fields?.name === undefined || fields.accelerators === undefined) return undefined;
    if (fields.apiVersion !== undefined) this.#reader.oneOf(fields.apiVersion, [API_VERSION]);
    if (fields.kind !== undefined) this.#reader.oneOf(fields.kind, ['Fleet']);
    const name = this.#reader.text(fields.name, NAME, NAME_ALLOWED);
    const accelerators = new Map<string, Accelerator>();
    for (const [accelerator, node] of this.#reader.map(fields.accelerators) ?? []) {
      if (!NAME.test(accelerator))
        this.#reader.report(node, 'not a name', { value: accelerator, allowed: NAME_ALLOWED });
      const read = this.#accelerator(node);
      if (read !== undefined) accelerators.set(accelerator, read);
    }
    if (accelerators.size === 0) this.#reader.report(fields.accelerators, 'a fleet without accelerators');
    return name === undefined ? undefined : { name, accelerators };
  }

  #accelerator(node: SourceNode): Accelerator | undefined {
    const fields = this.#reader.fields(node, {
      kernels: 'required',
      memories: 'required',
      pools: 'required',
    });
    if (fields?.kernels === undefined || fields.memories === undefined || fields.pools === undefined)
      return undefined;
    const pools = (this.#reader.list(fields.pools) ?? []).flatMap((item) => this.#pool(item) ?? []);
    if (pools.length === 0) this.#reader.report(fields.pools, 'an accelerator class without a pool');
    return { kernels: this.#names(fields.kernels), memories: this.#names(fields.memories), pools };
  }

  #names(node: SourceNode): string[] {
    const names = (this.#reader.list(node) ?? []).flatMap(
      (item) => this.#reader.text(item, NAME, NAME_ALLOWED) ?? [],
    );
    if (names.length === 0) this.#reader.report(node, 'at least one name is needed');
    return names;
  }

  #pool(node: SourceNode): FleetPool | undefined {
    const fields = this.#reader.fields(node, {
      pool: 'required',
      capacityClass: 'required',
      simulated: 'optional',
    });
    if (fields?.pool === undefined || fields.capacityClass === undefined) return undefined;
    const pool = this.#reader.text(
      fields.pool,
      POOL_NAME,
      'a small letter, then small letters, digits, "-"; at most 64; not constructor, not prototype',
    );
    const capacityClass = this.#reader.oneOf(fields.capacityClass, CAPACITY_CLASSES);
    const simulated = fields.simulated === undefined ? false : this.#reader.flag(fields.simulated);
    if (pool === undefined || capacityClass === undefined || simulated === undefined) return undefined;
    if (this.#pools.has(pool)) return this.#reader.report(node, 'the same pool twice', { value: pool });
    this.#pools.add(pool);
    return { pool, capacityClass, simulated };
  }
}
