import type { SignalType } from '../../src/core/policy/document.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import { oneIn, pick } from './pick.ts';

/** The signals that a policy declares, by their type. */
export type Declared = ReadonlyMap<string, SignalType>;

const NUMBERS = [
  ...['0', '1', '2', '0.5', '1.5', '-1', '3', '1e308', '9007199254740991', '5e-324', '0.1', '256'],
  ...['1u', '-0.0', '0x10', '1e-3'],
];
const WHOLE = ['0', '1', '2', '3', '-1', '7', '9007199254740991'];
const TEXTS = ['"eu"', '"us"', "'ap'", '""', '"toString"', '"__proto__"', "'ü\u{1F600}'", '"a\\"b"'];
/** What the language lacks, and what looks like it. */
const FOREIGN = [
  ...[
    'a ? b : c',
    'size("x") > 0',
    'has(a.b)',
    '[1].all(x, x > 0)',
    'a.b.c',
    'f(1)',
    '{"a": 1}',
    'null',
    'a =~ "x"',
  ],
  ...[
    '1 == 1 == 1',
    '"a" < "b"',
    'a in a',
    'b"x" == b"x"',
    'r"x" == "x"',
    '"""x""" == "x"',
    'a[0]',
    'context',
    'tune()',
  ],
  ...[
    '// comment',
    'a > 1 // comment',
    '9223372036854775808 > 1',
    '1e999 > 1',
    'duration("1s")',
    '__proto__ == 1',
    'constructor',
  ],
];
const COMPARE = ['<', '<=', '>', '>=', '==', '!='];

export class Conditions {
  readonly #draw: Generator;
  readonly #numbers: readonly string[];
  readonly #whole: readonly string[];
  readonly #flags: readonly string[];
  readonly #texts: readonly string[];

  constructor(draw: Generator, signals: Declared) {
    this.#draw = draw;
    const of = (...types: SignalType[]): string[] =>
      [...signals].flatMap(([name, type]) => (types.includes(type) ? [name] : []));
    this.#numbers = of('double', 'int');
    this.#whole = of('int');
    this.#flags = of('bool');
    this.#texts = of('string');
  }

  /** A condition of every kind that the language has, of the right types; once in a while of the wrong ones. */
  condition(depth: number): string {
    const draw = this.#draw;
    if (oneIn(draw, 60)) return pick(draw, FOREIGN);
    const kinds = depth <= 0 ? 5 : 8;
    switch (draw.below(kinds)) {
      case 0:
      case 1:
        return `${this.#numeric(depth - 1)} ${pick(draw, COMPARE)} ${this.#numeric(depth - 1)}`;
      case 2:
        return this.#flag();
      case 3:
        return this.#text();
      case 4:
        return `${this.#numeric(depth - 1)} in [${this.#list(NUMBERS)}]`;
      case 5:
        return `!(${this.condition(depth - 1)})`;
      default:
        return `(${this.condition(depth - 1)} ${pick(draw, ['&&', '||'])} ${this.condition(depth - 1)})`;
    }
  }

  #numeric(depth: number): string {
    const draw = this.#draw;
    switch (draw.below(depth <= 0 ? 4 : 7)) {
      case 0:
        return pick(draw, NUMBERS);
      case 1:
      case 2:
        return this.#numbers.length === 0 ? '1' : pick(draw, this.#numbers);
      case 3:
        return oneIn(draw, 3) ? this.#tune() : pick(draw, [...this.#numbers, '2']);
      case 4:
        return `-(${this.#numeric(depth - 1)})`;
      case 5:
        return `(${this.#wholeNumber(depth - 1)} % ${this.#wholeNumber(depth - 1)})`;
      default:
        return `(${this.#numeric(depth - 1)} ${pick(draw, ['+', '-', '*', '/'])} ${this.#numeric(depth - 1)})`;
    }
  }

  #wholeNumber(depth: number): string {
    const draw = this.#draw;
    if (depth <= 0 || oneIn(draw, 2)) return pick(draw, [...this.#whole, ...WHOLE]);
    return `(${this.#wholeNumber(depth - 1)} ${pick(draw, ['+', '-', '*', '%'])} ${this.#wholeNumber(depth - 1)})`;
  }

  #flag(): string {
    const draw = this.#draw;
    if (this.#flags.length === 0) return pick(draw, ['true', 'false', '!true', 'true == false']);
    const [one, other] = [pick(draw, this.#flags), pick(draw, [...this.#flags, 'true', 'false'])];
    return pick(draw, [one, `!${one}`, `${one} == ${other}`, `${other} != ${one}`]);
  }

  #text(): string {
    const draw = this.#draw;
    if (this.#texts.length === 0) return pick(draw, ['"a" == "a"', '"a" != "b"', 'true']);
    const [one, other] = [pick(draw, this.#texts), pick(draw, [...this.#texts, ...TEXTS])];
    return pick(draw, [
      `${one} == ${other}`,
      `${other} != ${one}`,
      `context.${one} == ${pick(draw, TEXTS)}`,
      `${one} in [${this.#list(TEXTS)}]`,
    ]);
  }

  /** Mostly the same few constants, so that a name often comes twice with the same numbers. */
  #tune(): string {
    const draw = this.#draw;
    if (oneIn(draw, 20)) {
      const bound = (): string => pick(draw, [...NUMBERS, '', '1%', 'x']);
      return `tune("${pick(draw, ['t', '', 'constructor', 'a b'])}", ${bound()}, min: ${bound()}, max: ${bound()}, step: ${bound()})`;
    }
    return pick(draw, [
      'tune("edge", 1, min: 0.5, max: 2, step: 0.5)',
      "tune('floor', 2, min: 1, max: 4, step: 10%)",
      'tune("toString", 100, min: 1, max: 1e6, step: 1e3)',
      'tune( "deep" , 1e3 , step : 5 % , max : 2e3 , min : 1 )',
    ]);
  }

  #list(items: readonly string[]): string {
    return Array.from({ length: this.#draw.below(4) }, () => pick(this.#draw, items)).join(', ');
  }
}
