import { SIGNAL_TYPES, type SignalType } from '../../src/core/policy/document.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { oneIn, pick } from './pick.ts';
import { Conditions, type Declared } from './policy-conditions.ts';

/** A document before it is text. Maps are lists of entries, so that they may have a key twice. */
export type Tree =
  | { kind: 'map'; entries: [string, Tree][] }
  | { kind: 'list'; items: Tree[] }
  | { kind: 'scalar'; value: string | number | boolean | null }
  /** Text that stands as it is. */
  | { kind: 'raw'; text: string };

export const scalar = (value: string | number | boolean | null): Tree => ({ kind: 'scalar', value });
export const list = (items: Tree[]): Tree => ({ kind: 'list', items });
export const map = (...entries: [string, Tree | undefined][]): Tree => ({
  kind: 'map',
  entries: entries.flatMap(([key, value]): [string, Tree][] => (value === undefined ? [] : [[key, value]])),
});

/** Names that an object has by itself among those that are free to choose. */
export const NAMES = [
  ...['a', 'rest', 'x1', 'feed-router', 'toString', 'valueOf', 'hasOwnProperty', 'isPrototypeOf', 'a.b_c-d'],
  ...['constructor', 'prototype', '__proto__', `n${'9'.repeat(63)}`],
];
const SIGNAL_NAMES = ['a', 'b', 'n', 'm', 'f', 'g', 's', 't', 'toString', 'valueOf', 'x_1', 'Z9'];
const TARGETS = [
  ...[
    ['cpu', 'dense', 'host'],
    ['gpu-a100', 'sparse', 'l2'],
    ['gpu-v100', 'dense', 'hbm'],
    ['fpga', 'attention', 'hbm'],
  ],
  ...[
    ['mtia', 'bias-fused', 'l2'],
    ['cpu', 'dense', undefined],
    ['fpga', 'dense', undefined],
  ],
] as const;
const UNKNOWN_TARGETS = [
  ['tpu', 'dense', 'hbm'],
  ['constructor', 'dense', undefined],
  ['cpu', 'toString', 'l3'],
] as const;
const DURATIONS = ['500ms', '30s', '15m', '2h', '1d', '0s', '30d'];

/** A policy that is mostly right: of most parts some, and few slips. */
export function policyTree(draw: Generator): Tree {
  const signals = declared(draw);
  const branches = new Branches(draw, signals);
  const tree = branches.list(draw.below(3));
  return map(
    ['apiVersion', scalar('millrace/v1')],
    ['kind', scalar('RoutingPolicy')],
    ['name', scalar(oneIn(draw, 8) ? pick(draw, NAMES) : 'feed-router')],
    ['version', scalar(draw.below(1_000))],
    ['parent', oneIn(draw, 8) ? scalar(`sha256:${'0a'.repeat(32)}`) : undefined],
    ['signals', signals.size === 0 ? undefined : map(...typed(signals))],
    ['tuned', oneIn(draw, 12) ? map(['edge', scalar(pick(draw, [1, 1.5, 2, 3]))]) : undefined],
    ['expect', oneIn(draw, 6) ? expectation(draw, branches.leaves) : undefined],
    ['tree', tree],
    ['tests', oneIn(draw, 3) ? tests(draw, signals, branches.leaves) : undefined],
    ['rollout', oneIn(draw, 5) ? rollout(draw) : undefined],
  );
}

function declared(draw: Generator): Declared {
  const signals = new Map<string, SignalType>();
  for (let left = draw.below(7); left > 0; left--)
    signals.set(pick(draw, SIGNAL_NAMES), pick(draw, SIGNAL_TYPES));
  return signals;
}

function typed(signals: Declared): [string, Tree][] {
  return [...signals].map(([name, type]) => [name, scalar(type)]);
}

class Branches {
  readonly leaves: string[] = [];
  readonly #draw: Generator;
  readonly #conditions: Conditions;
  #count = 0;

  constructor(draw: Generator, signals: Declared) {
    this.#draw = draw;
    this.#conditions = new Conditions(draw, signals);
  }

  list(depth: number): Tree {
    const draw = this.#draw;
    const guarded = Array.from({ length: draw.below(3) }, () => this.#branch(depth - 1, true));
    return list([...guarded, this.#branch(depth - 1, oneIn(draw, 200))]);
  }

  #branch(depth: number, isGuarded: boolean): Tree {
    const draw = this.#draw;
    const id = oneIn(draw, 12) ? pick(draw, NAMES) : `node-${this.#count++}`;
    const when = isGuarded ? scalar(this.#conditions.condition(draw.below(4))) : undefined;
    if (depth > 0 && oneIn(draw, 4))
      return map(['id', scalar(id)], ['when', when], ['tree', this.list(depth)]);
    this.leaves.push(id);
    const [accelerator, kernel, memory] = oneIn(draw, 40) ? pick(draw, UNKNOWN_TARGETS) : pick(draw, TARGETS);
    const to = map(
      ['accelerator', scalar(accelerator)],
      ['kernel', scalar(kernel)],
      ['memory', memory === undefined ? undefined : scalar(memory)],
      ['variant', oneIn(draw, 8) ? scalar(pick(draw, ['baseline', 'enhanced'])) : undefined],
    );
    const fallback = oneIn(draw, 6) ? list([scalar('gpu-v100'), scalar('cpu')]) : undefined;
    return map(['id', scalar(id)], ['when', when], ['to', to], ['fallback', fallback]);
  }
}

function expectation(draw: Generator, leaves: readonly string[]): Tree {
  return map(
    ['changedShare', oneIn(draw, 2) ? list([scalar(0.1), scalar(pick(draw, [0.14, 1, 0.05]))]) : undefined],
    ['leaves', oneIn(draw, 2) ? list([scalar(pick(draw, leaves))]) : undefined],
  );
}

function tests(draw: Generator, signals: Declared, leaves: readonly string[]): Tree {
  return list(
    Array.from({ length: 1 + draw.below(3) }, () =>
      map(
        [
          'signals',
          map(
            ...[...signals]
              .filter(() => oneIn(draw, 2))
              .map(([name, type]): [string, Tree] => [name, exampleOf(draw, type)]),
          ),
        ],
        ['leaf', scalar(pick(draw, leaves))],
      ),
    ),
  );
}

function exampleOf(draw: Generator, type: SignalType): Tree {
  switch (type) {
    case 'bool':
      return scalar(oneIn(draw, 2));
    case 'string':
      return scalar(pick(draw, ['eu', 'us', '', 'toString', '__proto__']));
    case 'int':
      return scalar(pick(draw, [0, 1, 2, -1, 3, 256, Number.MAX_SAFE_INTEGER]));
    case 'double':
      return oneIn(draw, 6)
        ? { kind: 'raw', text: pick(draw, ['.nan', '.inf', '-.inf', '1e999', '-0']) }
        : scalar(pick(draw, [0, 0.5, 1, 1.5, -1, 1e308]));
    default:
      return type satisfies never;
  }
}

function rollout(draw: Generator): Tree {
  const some = (tree: Tree): Tree | undefined => (oneIn(draw, 2) ? tree : undefined);
  const duration = (): Tree => scalar(pick(draw, DURATIONS));
  return map(
    ['shadow', some(duration())],
    [
      'canary',
      some(map(['percent', some(scalar(pick(draw, [1, 5, 0.01, 20])))], ['dwell', some(duration())])),
    ],
    ['ramp', some(list([10, 25, 50].slice(draw.below(4)).map(scalar)))],
    ['rampDwell', some(duration())],
    ['unit', some(scalar(pick(draw, ['bucketKey', 'requestId'])))],
  );
}
