import { int64 } from '../onnx-file/constant.ts';
import type { Dim, OnnxConstant, OnnxNode, OnnxValue } from '../onnx-file/graph.ts';
import type { AttributeProto } from '../onnx-file/onnx-proto.ts';
import { intAttribute, intsAttribute } from '../onnx-file/write-graph.ts';
import { productOf, ROWS, rowsFactor, termsOf } from './size.ts';
import { CONSTANT_LEVEL, type Level, type Part, type TensorValue } from './value.ts';

/** A node of the compiled graph, and whose rows it computes. */
export interface LoweredNode extends OnnxNode {
  readonly level: Level;
}

/** Inputs of the compiled graph that the batch planner makes. */
export interface IndexInputs {
  /** By level ≥ 1: INT64 [rows of the level], the row of the level before. The first has no meaning. */
  readonly rowOf: readonly string[];
  /** INT64 [tiles, slots]: which candidate is in a slot; any candidate where it is empty. */
  readonly tileCandidates: string;
  /** INT64 [tiles]: the row of the level before the candidates' that the tile belongs to. */
  readonly tileRow: string;
  /** INT64 [candidates]: tile · slots + slot. */
  readonly candidateSlot: string;
}

export const INDEX_INPUTS = {
  tileCandidates: 'tile_candidates',
  tileRow: 'tile_request',
  candidateSlot: 'candidate_slot',
} as const;

/** The compiled graph while it grows. Nodes have fresh names; what was gathered once is gathered once. */
export class Lowering {
  readonly nodes: LoweredNode[] = [];
  readonly constants: Map<string, OnnxConstant>;
  readonly index: IndexInputs;
  readonly candidateLevel: Level;
  readonly #made = new Map<string, string>();
  /** By level: a tensor whose first axis is its rows. */
  readonly #anchors = new Map<Level, string>();
  readonly #symbols = new Map<string, { name: string; axis: number }>();
  #names = 0;

  constructor(constants: ReadonlyMap<string, OnnxConstant>, index: IndexInputs, candidateLevel: Level) {
    this.constants = new Map(constants);
    this.index = index;
    this.candidateLevel = candidateLevel;
  }

  /** An input of the graph: its rows are those of its level, and it tells the sizes that only a call knows. */
  input(level: Level, { name, shape }: OnnxValue): void {
    if (!this.#anchors.has(level)) this.#anchors.set(level, name);
    shape?.forEach((size, axis) => {
      if (axis > 0 && typeof size === 'string' && !this.#symbols.has(size))
        this.#symbols.set(size, { name, axis });
    });
  }

  /** A size that a call decides, as INT64 [1]; `undefined` where it follows from no input's. */
  size(dim: Dim): string | undefined {
    const terms = termsOf(dim).map(({ count, symbols }) => {
      const factors = symbols.map((symbol) => this.#symbol(symbol));
      if (factors.some((factor) => factor === undefined)) return undefined;
      return factors.reduce<string>(
        (product, factor) => this.emit('Mul', [product, factor ?? ''], CONSTANT_LEVEL),
        this.integers([count]),
      );
    });
    const [first, ...rest] = terms;
    if (terms.includes(undefined)) return undefined;
    return rest.reduce((sum, term) => this.emit('Add', [sum ?? '', term ?? ''], CONSTANT_LEVEL), first);
  }

  #symbol(size: string): string | undefined {
    const found = this.#symbols.get(size);
    if (found === undefined) return undefined;
    return this.#once(`symbol ${size}`, () => {
      const shape = this.emit('Shape', [found.name], CONSTANT_LEVEL);
      return this.emit('Gather', [shape, this.integers([found.axis])], CONSTANT_LEVEL, [
        intAttribute('axis', 0),
      ]);
    });
  }

  emit(
    op: string,
    inputs: readonly string[],
    level: Level,
    attributes: readonly AttributeProto[] = [],
  ): string {
    return this.emitAll(op, inputs, level, attributes, 1)[0] ?? '';
  }

  emitAll(
    op: string,
    inputs: readonly string[],
    level: Level,
    attributes: readonly AttributeProto[],
    outputs: number,
  ): string[] {
    const name = this.#fresh(op);
    const names = Array.from({ length: outputs }, (_, n) => (outputs === 1 ? name : `${name}.${n}`));
    this.nodes.push({ op, name, inputs, outputs: names, attributes, level });
    return names;
  }

  constant(constant: OnnxConstant): string {
    const name = this.#fresh('constant');
    this.constants.set(name, constant);
    return name;
  }

  integers(values: readonly number[]): string {
    return this.#once(`integers ${values.join()}`, () => this.constant(int64([values.length], values)));
  }

  /** One part of all of it, with a row for each row of `level`. */
  at(value: TensorValue, level: Level): Part {
    if ((rowsFactor(value.shape) ?? 1) > 1 && value.parts.some((part) => isBefore(part, level))) {
      throw new Unshareable('heads are folded into its rows where candidates meet it');
    }
    const parts = value.parts.map((part) => this.partAt(part, level));
    const [first] = parts;
    if (first !== undefined && parts.length === 1) return first;
    const names = parts.map(({ name }) => name);
    const name = this.#once(`join ${value.axis} ${names.join()}`, () =>
      this.emit('Concat', names, level, [intAttribute('axis', value.axis)]),
    );
    return { level, name, size: value.shape[value.axis] ?? 1, layout: 'rows' };
  }

  /** A part of a level before (or of constants) with a row for each row of `level`. */
  partAt(part: Part, level: Level): Part {
    if (part.level === level || part.level === CONSTANT_LEVEL) return part;
    const { name } = part;
    const gathered = this.#once(`gather ${name} ${level}`, () =>
      this.emit('Gather', [name, this.#rowOf(level, part.level)], level, [intAttribute('axis', 0)]),
    );
    return { ...part, level, name: gathered };
  }

  /** A part of a level before the candidates' with a row for each tile. */
  perTile(part: Part): string {
    if (part.level === CONSTANT_LEVEL) return part.name;
    return this.#once(`tile ${part.name}`, () => {
      const before = this.candidateLevel - 1;
      const index =
        part.level === before
          ? this.index.tileRow
          : this.#once(`tile row ${part.level}`, () =>
              this.emit('Gather', [this.#rowOf(before, part.level), this.index.tileRow], this.candidateLevel),
            );
      return this.emit('Gather', [part.name, index], this.candidateLevel, [intAttribute('axis', 0)]);
    });
  }

  /** The number of rows of a level, INT64 [1]. */
  rowsOf(level: Level): string {
    return this.#once(`rows ${level}`, () => {
      const anchor = this.#anchors.get(level);
      if (anchor === undefined) throw new RangeError(`level ${level} has no input`);
      const shape = this.emit('Shape', [anchor], level);
      return this.emit('Gather', [shape, this.integers([0])], level);
    });
  }

  /** Candidates [rows, (heads,) q, d] laid out in tiles. */
  toTiles(part: Part, shape: readonly Dim[]): Part {
    if (part.layout === 'tiles') return part;
    const level = this.candidateLevel;
    const name = this.#once(`to tiles ${part.name}`, () => {
      const slots = this.emit('Gather', [part.name, this.index.tileCandidates], level, [
        intAttribute('axis', 0),
      ]);
      if (shape.length === 3)
        return this.emit('Reshape', [slots, this.integers([0, -1, wholeOf(shape[2])])], level);
      const byHead = this.emit('Transpose', [slots], level, [intsAttribute('perm', [0, 2, 1, 3, 4])]);
      return this.emit('Reshape', [byHead, this.integers([0, 0, -1, wholeOf(shape[3])])], level);
    });
    return { ...part, name, layout: 'tiles' };
  }

  /** The inverse of `toTiles`: empty slots are dropped. */
  toRows(part: Part, shape: readonly Dim[]): Part {
    if (part.layout === 'rows') return part;
    const level = this.candidateLevel;
    const name = this.#once(`to rows ${part.name}`, () => {
      const rows = shape.length === 3 ? this.#slotsOf(part, shape) : this.#slotsByHead(part, shape);
      return this.emit('Gather', [rows, this.index.candidateSlot], level, [intAttribute('axis', 0)]);
    });
    return { ...part, name, layout: 'rows' };
  }

  #slotsOf(part: Part, [, q, d]: readonly Dim[]): string {
    return this.emit(
      'Reshape',
      [part.name, this.integers([-1, wholeOf(q), wholeOf(d)])],
      this.candidateLevel,
    );
  }

  #slotsByHead(part: Part, [, heads, q, d]: readonly Dim[]): string {
    const level = this.candidateLevel;
    const apart = this.emit('Reshape', [part.name, this.integers([0, 0, -1, wholeOf(q), wholeOf(d)])], level);
    const bySlot = this.emit('Transpose', [apart], level, [intsAttribute('perm', [0, 2, 1, 3, 4])]);
    return this.emit('Reshape', [bySlot, this.integers([-1, wholeOf(heads), wholeOf(q), wholeOf(d)])], level);
  }

  /** Index from rows of `level` to rows of `before`, over the levels between. */
  #rowOf(level: Level, before: Level): string {
    const own = this.index.rowOf[level];
    if (own === undefined) throw new RangeError(`level ${level} points at no level before`);
    if (before === level - 1) return own;
    return this.#once(`row ${level} ${before}`, () =>
      this.emit('Gather', [this.#rowOf(level - 1, before), own], level, [intAttribute('axis', 0)]),
    );
  }

  #once(what: string, make: () => string): string {
    const made = this.#made.get(what) ?? make();
    this.#made.set(what, made);
    return made;
  }

  #fresh(what: string): string {
    this.#names += 1;
    return `rocs.${this.#names}.${what}`;
  }
}

/** What is right as it stands cannot be had at the level that asks for it. */
export class Unshareable extends Error {}

function isBefore({ level }: Part, asked: Level): boolean {
  return level !== CONSTANT_LEVEL && level < asked;
}

/** Whether candidates of this shape can lie in tiles: the axes that a tile folds and unfolds are known at compile time. */
export function fitsTiles(shape: readonly Dim[]): boolean {
  if (shape[0] !== ROWS) return false;
  const folded = shape.slice(1);
  return (shape.length === 3 || shape.length === 4) && folded.every((size) => typeof size === 'number');
}

function wholeOf(size: Dim | undefined): number {
  if (typeof size !== 'number') throw new RangeError(`${size} is known to a call only`);
  return size;
}

/** One tensor of a level, without a split. */
export function tensorOf(
  level: Level,
  name: string,
  type: number,
  shape: readonly Dim[],
  layout: Part['layout'] = 'rows',
): TensorValue {
  return { kind: 'tensor', type, shape, axis: 1, parts: [{ level, name, size: shape[1] ?? 1, layout }] };
}

/** Numbers in a row of it, for messages and for choosing what to gather. */
export function rowSize(shape: readonly Dim[]): Dim {
  return productOf(shape[0] === ROWS ? shape.slice(1) : shape);
}
