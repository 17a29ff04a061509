import type { Generator } from '../../src/core/random/generator.ts';
import { oneIn, pick } from './pick.ts';
import { list, map, NAMES, scalar, type Tree } from './policy-tree.ts';

const ODD_NUMBERS = [0, -1, 1e308, -1e308, 5e-324, 2 ** 53, 2 ** 31, 0.1, 100, 99];
const ODD_TEXTS = [
  ...[
    '',
    ' ',
    'x'.repeat(200),
    'a\u0000b',
    'a\nb',
    'a\r\nb',
    '\u2028',
    'ü',
    '\u{1F600}',
    '<<',
    '&a',
    '*a',
    '!!str x',
    '- a',
    '? a',
  ],
  ...[
    '{',
    '[',
    '#',
    '%YAML 1.2',
    '---',
    '...',
    '|',
    '>',
    '"',
    "'",
    '`',
    '@',
    'true',
    'null',
    '.nan',
    '0x1F',
    '15m',
    'int',
    'double',
  ],
];
const ODD_RAW = [
  ...[
    '.nan',
    '.inf',
    '-.inf',
    '1e999',
    '-0',
    '0o17',
    '0x7fffffffffffffff',
    '1e309',
    '.5',
    '~',
    'null',
    'yes',
    '!!int "1"',
    '&x 1',
    '*x',
  ],
  ...[
    '[]',
    '{}',
    '""',
    "''",
    '[[[[]]]]',
    '{a: {a: {a: 1}}}',
    '99999999999999999999',
    '1_000',
    '+1',
    '1.',
    '|\n    text\n',
    '2001-01-01',
  ],
];
const ODD_KEYS = [
  ...NAMES,
  '',
  '<<',
  'x'.repeat(300),
  '1',
  'null',
  'when ',
  'tre',
  'idd',
  'a b',
  '\u{1F600}',
  'to',
  'tree',
  'id',
];

/** A subtree that has no business where it is put. */
function odd(draw: Generator): Tree {
  switch (draw.below(6)) {
    case 0:
      return scalar(pick(draw, ODD_NUMBERS));
    case 1:
      return scalar(pick(draw, ODD_TEXTS));
    case 2:
      return { kind: 'raw', text: pick(draw, ODD_RAW) };
    case 3:
      return scalar(pick(draw, NAMES));
    case 4:
      return nested(draw, draw.below(40));
    default:
      return pick(draw, [scalar(true), scalar(null), list([]), map(), list([scalar(1), scalar('a')])]);
  }
}

function nested(draw: Generator, levels: number): Tree {
  let tree: Tree = scalar(1);
  for (let left = levels; left > 0; left--) tree = oneIn(draw, 2) ? list([tree]) : map(['a', tree]);
  return tree;
}

/** Something wrong within a document, put into it. The document stays one as far as YAML goes, but for a raw text here and there. */
export function slip(draw: Generator, root: Tree): void {
  const place = placeIn(draw, root);
  switch (place.kind) {
    case 'map':
      slipInMap(draw, place);
      return;
    case 'list':
      slipInList(draw, place);
      return;
    default:
      return;
  }
}

/** A map or a list, by a walk down from the root that stops at any level. */
function placeIn(draw: Generator, root: Tree): Tree {
  let place = root;
  for (;;) {
    const children = (
      place.kind === 'map' ? place.entries.map(([, each]) => each) : place.kind === 'list' ? place.items : []
    ).filter(({ kind }) => kind === 'map' || kind === 'list');
    if (children.length === 0 || oneIn(draw, 4)) return place;
    place = pick(draw, children);
  }
}

function slipInMap(draw: Generator, { entries }: Extract<Tree, { kind: 'map' }>): void {
  const at = draw.below(entries.length + 1);
  const [key, value] = entries[at] ?? [pick(draw, ODD_KEYS), odd(draw)];
  switch (draw.below(7)) {
    case 0:
      entries[at] = [key, odd(draw)];
      return;
    case 1:
      entries.splice(at, 1);
      return;
    case 2:
      entries[at] = [pick(draw, ODD_KEYS), value];
      return;
    case 3:
      entries.splice(at, 0, [key, value]);
      return;
    case 4:
      entries.splice(at, 0, [pick(draw, ODD_KEYS), odd(draw)]);
      return;
    case 5:
      entries[at] = [key, oneIn(draw, 2) ? list([value]) : map([pick(draw, ODD_KEYS), value])];
      return;
    default:
      if (value.kind === 'scalar' && typeof value.value === 'string')
        entries[at] = [key, scalar(slipInText(draw, value.value))];
  }
}

function slipInList(draw: Generator, { items }: Extract<Tree, { kind: 'list' }>): void {
  const at = draw.below(items.length + 1);
  const item = items[at] ?? odd(draw);
  switch (draw.below(5)) {
    case 0:
      items[at] = odd(draw);
      return;
    case 1:
      items.splice(at, 1);
      return;
    case 2:
      items.splice(at, 0, item);
      return;
    case 3:
      items.push(item);
      return;
    default:
      items.reverse();
  }
}

const SLIPS = [
  '(',
  ')',
  '[',
  ']',
  '!',
  '&&',
  '||',
  '"',
  "'",
  ' ',
  '.',
  ',',
  '==',
  '\\',
  '\u0000',
  'tune(',
  '%',
  '-',
  '1',
  'in',
];

function slipInText(draw: Generator, text: string): string {
  const at = draw.below(text.length + 1);
  const removed = draw.below(3);
  return text.slice(0, at) + (oneIn(draw, 3) ? '' : pick(draw, SLIPS)) + text.slice(at + removed);
}

/**
 * Far more of something than anybody writes, up to the limits of a document and beyond: branches, signals, tests, names that are nearly others'. What
 * costs time by the product of two of them shows here.
 */
export function widen(draw: Generator, root: Tree): void {
  if (root.kind !== 'map') return;
  const many = 1 << (4 + draw.below(8));
  const name = (index: number): string => pick(draw, ['s', 'signal', 'x'.repeat(50)]) + index;
  const { entries } = root;
  const field = (key: string): Tree | undefined => entries.find(([each]) => each === key)?.[1];
  const set = (key: string, value: Tree): void => void entries.push([key, value]);
  const numbered = (value: Tree): Tree =>
    map(...Array.from({ length: many }, (_, at): [string, Tree] => [name(at), value]));
  const tree = field('tree');
  switch (draw.below(6)) {
    case 0:
      set('signals', numbered(scalar('int')));
      set('tests', list([map(['signals', numbered(scalar(1))], ['leaf', scalar('node-0')])]));
      return;
    case 1:
      set(
        'tests',
        list(Array.from({ length: many }, (_, at) => map(['signals', map()], ['leaf', scalar(name(at))]))),
      );
      return;
    case 2:
      if (tree?.kind === 'list') widenBranches(draw, tree, many);
      return;
    case 3:
      set('expect', map(['leaves', list(Array.from({ length: many }, (_, at) => scalar(name(at))))]));
      return;
    case 4:
      set('tuned', numbered(scalar(1)));
      return;
    default:
      entries.push(...Array.from({ length: many }, (_, at): [string, Tree] => [name(at), scalar(at)]));
  }
}

function widenBranches(draw: Generator, tree: Extract<Tree, { kind: 'list' }>, many: number): void {
  const condition = pick(draw, [
    'a > 1',
    'a != 1 && b != 2',
    'zz > 1',
    'a in [1, 2, 3, 4, 5, 6, 7, 8]',
    '!(s in ["a", "b"])',
    'x > tune("t", 1, min: 0, max: 2, step: 1)',
  ]);
  for (let at = 0; at < many; at++) {
    tree.items.unshift(
      map(
        ['id', scalar(oneIn(draw, 8) ? 'same' : `wide-${at}`)],
        ['when', scalar(condition.replaceAll('1', String(at)))],
        ['to', map(['accelerator', scalar('cpu')], ['kernel', scalar('dense')])],
      ),
    );
  }
}
