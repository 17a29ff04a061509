import { readCondition } from './condition.ts';
import {
  type Branch,
  type SignalType,
  type Tunable,
  VARIANTS,
  type When,
  type WrittenTarget,
} from './document.ts';
import type { DocumentReader } from './reader.ts';
import type { SourceNode } from './source.ts';
import { WEIGHT_MAX, weightOf } from './weight.ts';

/** Names of branches, accelerators, kernels, memory domains: they become keys of the maps that records carry, which may not have every key. */
export const NAME = /^(?!(?:constructor|prototype)$)[A-Za-z][A-Za-z0-9._-]{0,63}$/;
export const NAME_ALLOWED =
  'a letter, then letters, digits, ".", "_", "-"; at most 64; not constructor, not prototype';

const FALLBACKS_MAX = 8;

/** Reads lists of branches; knows the signals, and gathers the ids and the tunable constants of the whole tree. */
export class TreeReader {
  /** Branch id to where it was first used. */
  readonly ids = new Map<string, SourceNode>();
  readonly leafIds: string[] = [];
  readonly tunables = new Map<string, Tunable>();
  readonly #reader: DocumentReader;
  readonly #signals: ReadonlyMap<string, SignalType>;
  #weight = 0;

  constructor(reader: DocumentReader, signals: ReadonlyMap<string, SignalType>) {
    this.#reader = reader;
    this.#signals = signals;
  }

  /** A list of branches, of which the last takes whatever is left: so every request reaches a leaf. */
  tree(node: SourceNode): readonly Branch[] {
    const items = this.#reader.list(node);
    if (items === undefined) return [];
    const branches = items.map((item) => this.#branch(item));
    const last = items.at(-1);
    if (last === undefined)
      this.#reader.report(node, 'a list of branches is empty', { allowed: 'at least one branch' });
    else if (last.kind === 'map' && last.entries.has('when')) {
      this.#reader.report(
        last,
        'the last branch of a list has a condition, so some requests would reach no leaf',
        {
          advice: 'Remove its `when`, or add a branch without one after it.',
        },
      );
    }
    return branches.filter((branch) => branch !== undefined);
  }

  #branch(node: SourceNode): Branch | undefined {
    const fields = this.#reader.fields(node, {
      id: 'required',
      when: 'optional',
      to: 'optional',
      fallback: 'optional',
      tree: 'optional',
    });
    if (fields === undefined) return undefined;
    const id = fields.id === undefined ? undefined : this.#id(fields.id);
    const when = fields.when === undefined ? undefined : this.#when(fields.when);
    const { to, tree } = fields;
    const head = { id: id ?? '', when, path: node.path };
    if (tree !== undefined) {
      if (to !== undefined || fields.fallback !== undefined) {
        this.#reader.report(node, 'a branch has both a target and branches of its own', {
          allowed: 'either `to` or `tree`',
        });
      }
      return { kind: 'tree', ...head, tree: this.tree(tree) };
    }
    const target = to === undefined ? undefined : this.#target(to);
    const fallback = fields.fallback === undefined ? [] : this.#fallback(fields.fallback);
    if (id !== undefined) this.leafIds.push(id);
    if (to === undefined)
      this.#reader.report(node, 'a branch leads nowhere', {
        allowed: '`to` (a target) or `tree` (branches)',
      });
    return target === undefined ? undefined : { kind: 'leaf', ...head, to: target, fallback };
  }

  #id(node: SourceNode): string | undefined {
    const id = this.#reader.text(node, NAME, NAME_ALLOWED);
    if (id === undefined) return undefined;
    const first = this.ids.get(id);
    if (first !== undefined) {
      const advice = `It is first used at line ${first.position.line}.`;
      return this.#reader.report(node, 'the same branch id twice', { value: id, advice });
    }
    this.ids.set(id, node);
    return id;
  }

  #when(node: SourceNode): When | undefined {
    if (node.kind !== 'scalar' || node.text === '') {
      const advice = 'Leave `when` out for a branch that takes every request.';
      return this.#reader.report(node, 'a condition is expected here', {
        allowed: 'such as sparsityRatio > 0.7',
        advice,
      });
    }
    const { when, tunables, problems } = readCondition(node.text, this.#signals);
    for (const { offset, ...problem } of problems) {
      const at = { severity: 'error', path: node.path, position: node.positionOf(offset) } as const;
      this.#reader.add({ ...at, ...problem });
    }
    for (const tunable of tunables) this.#addTunable(tunable, node);
    if (when !== undefined) this.#weigh(when, node);
    return when;
  }

  /** Reported once, where it becomes too much. */
  #weigh({ condition }: When, node: SourceNode): void {
    const before = this.#weight;
    this.#weight += weightOf(condition);
    if (before > WEIGHT_MAX || this.#weight <= WEIGHT_MAX) return;
    this.#reader.report(node, 'the conditions of the policy are too many to check and to decide in time', {
      allowed: `at most ${WEIGHT_MAX} comparisons, items of lists and calculations in all`,
      advice: 'Replace long lists by ranges, or make what they say a signal.',
    });
  }

  #addTunable(tunable: Tunable, node: SourceNode): void {
    const known = this.tunables.get(tunable.name);
    if (known === undefined) this.tunables.set(tunable.name, tunable);
    else if (JSON.stringify(known) !== JSON.stringify(tunable)) {
      const advice = 'Repeat it with the same default, bounds and step, or give it another name.';
      this.#reader.report(node, 'the same tunable constant with other numbers', {
        value: tunable.name,
        advice,
      });
    }
  }

  #target(node: SourceNode): WrittenTarget | undefined {
    const fields = this.#reader.fields(node, {
      accelerator: 'required',
      kernel: 'required',
      memory: 'optional',
      variant: 'optional',
    });
    if (fields === undefined) return undefined;
    const name = (field: SourceNode | undefined): string =>
      (field === undefined ? undefined : this.#reader.text(field, NAME, NAME_ALLOWED)) ?? '';
    const accelerator = name(fields.accelerator);
    const kernel = name(fields.kernel);
    const memory =
      fields.memory === undefined ? undefined : this.#reader.text(fields.memory, NAME, NAME_ALLOWED);
    const variant = fields.variant === undefined ? undefined : this.#reader.oneOf(fields.variant, VARIANTS);
    // What is missing was reported and is empty, so that the rest of the target is checked all the same.
    return { accelerator, kernel, memory, variant };
  }

  #fallback(node: SourceNode): string[] {
    const items = this.#reader.list(node) ?? [];
    if (items.length > FALLBACKS_MAX) {
      this.#reader.report(node, 'too many fallbacks', {
        value: items.length,
        allowed: `at most ${FALLBACKS_MAX}`,
      });
    }
    return items.flatMap((item) => this.#reader.text(item, NAME, NAME_ALLOWED) ?? []);
  }
}
