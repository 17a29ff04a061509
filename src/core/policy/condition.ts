import { type ASTNode, Environment, ParseError } from '@marcbachmann/cel-js';
import { listNames } from '../errors.ts';
import type { SignalType, Tunable, When } from './document.ts';
import type { ArithmeticOp, CompareOp, Condition, Numeric } from './expression.ts';
import { didYouMean } from './nearest.ts';
import { PROBLEMS_MAX } from './problem.ts';
import { extractTunables } from './tune-syntax.ts';

/** Something wrong at a character of a condition. */
export interface ConditionProblem {
  readonly offset: number;
  readonly what: string;
  readonly value?: unknown;
  readonly allowed?: string;
  readonly advice?: string;
}

export interface ReadCondition {
  /** Undefined where there are problems. */
  readonly when: When | undefined;
  readonly tunables: readonly Tunable[];
  readonly problems: readonly ConditionProblem[];
}

export const CONDITION_LIMITS = { characters: 2_048, nodes: 256, depth: 32, listItems: 128 } as const;

const grammar = new Environment({
  limits: {
    maxAstNodes: CONDITION_LIMITS.nodes,
    maxDepth: CONDITION_LIMITS.depth,
    maxListElements: CONDITION_LIMITS.listItems,
  },
});

const ALLOWED_SYNTAX =
  '&& || !, == != < <= > >=, + - * / %, in [list], numbers, texts, true, false, signals, tune(…)';

/**
 * Parses a condition (CEL's grammar, https://github.com/google/cel-spec, less macros, functions, fields, maps and `?:`)
 * and checks its types against the declared signals. Never throws for what the text says.
 */
export function readCondition(text: string, signals: ReadonlyMap<string, SignalType>): ReadCondition {
  if (text.length > CONDITION_LIMITS.characters) {
    const allowed = `at most ${CONDITION_LIMITS.characters} characters`;
    return refuse([
      { offset: 0, what: 'the condition is too long', value: `${text.length} characters`, allowed },
    ]);
  }
  const extracted = extractTunables(text);
  if (extracted.problems.length > 0) return refuse(extracted.problems);
  const parsed = parseCel(extracted.text);
  if ('problem' in parsed) return refuse([parsed.problem]);
  const checker = new TypeChecker(signals, extracted.tunables);
  const typed = checker.convert(parsed.ast);
  if (typed !== undefined && typed.type !== 'bool')
    checker.expected('a comparison or a flag', typed, parsed.ast);
  if (typed?.type !== 'bool' || checker.problems.length > 0) return refuse(checker.problems);
  const when = { text, condition: typed.condition, reads: [...checker.reads] };
  return { when, tunables: [...extracted.tunables.values()], problems: [] };
}

function refuse(problems: readonly ConditionProblem[]): ReadCondition {
  return { when: undefined, tunables: [], problems };
}

function parseCel(text: string): { ast: ASTNode } | { problem: ConditionProblem } {
  try {
    return { ast: grammar.parse(text).ast };
  } catch (error) {
    // The parser has no other way to report; its own faults must not become ours, so all of them are problems of the text.
    const offset = error instanceof ParseError ? (error.range?.start ?? 0) : 0;
    const message = error instanceof ParseError ? error.summary : String(error);
    return {
      problem: {
        offset,
        what: `the condition cannot be read: ${message}`,
        value: text,
        allowed: ALLOWED_SYNTAX,
      },
    };
  }
}

type Typed =
  | { readonly type: 'bool'; readonly condition: Condition }
  | { readonly type: 'number'; readonly expression: Numeric; readonly integer: boolean }
  | { readonly type: 'text'; readonly name: string; readonly literal: undefined }
  | { readonly type: 'text'; readonly name: undefined; readonly literal: string };

/** Turns CEL's tree into ours; a node that cannot be turned is reported once, and yields undefined all the way up. */
class TypeChecker {
  readonly problems: ConditionProblem[] = [];
  readonly reads = new Set<string>();
  readonly #signals: ReadonlyMap<string, SignalType>;
  readonly #tunables: ReadonlyMap<number, Tunable>;

  constructor(signals: ReadonlyMap<string, SignalType>, tunables: ReadonlyMap<number, Tunable>) {
    this.#signals = signals;
    this.#tunables = tunables;
  }

  convert(node: ASTNode): Typed | undefined {
    switch (node.op) {
      case 'value':
        return this.#literal(node, node.args);
      case 'id':
        return this.#signal(node, node.args);
      case '.':
        return this.#field(node, node.args[0], node.args[1]);
      case 'call':
        return this.#call(node, node.args[0]);
      case '&&':
      case '||':
        return this.#logical(node.op === '&&' ? 'and' : 'or', node.args);
      case '!_':
        return this.#not(node.args);
      case '-_':
        return this.#negate(node.args);
      case '==':
      case '!=':
      case '<':
      case '<=':
      case '>':
      case '>=':
        return this.#compare(node, node.op, node.args);
      case '+':
      case '-':
      case '*':
      case '/':
      case '%':
        return this.#arithmetic(node.op, node.args);
      case 'in':
        return this.#member(node, node.args);
      default:
        return this.#unsupported(node);
    }
  }

  /** Reports that something else was needed here. */
  expected(what: string, found: Typed, node: ASTNode): undefined {
    return this.#report(
      node,
      `${what} is needed here, not a ${found.type === 'bool' ? 'condition' : found.type}`,
    );
  }

  #literal(node: ASTNode, value: unknown): Typed | undefined {
    if (typeof value === 'boolean') return bool({ kind: 'boolean', value });
    if (typeof value === 'string') return this.#textLiteral(node, value);
    if (typeof value === 'number') return number({ kind: 'number', value }, false);
    if (typeof value !== 'bigint')
      return this.#report(node, 'this kind of literal is not supported', ALLOWED_SYNTAX);
    const integer = Number(value);
    if (!Number.isSafeInteger(integer))
      return this.#report(node, 'a whole number is too large', 'at most 2^53 - 1');
    return number({ kind: 'number', value: integer }, true);
  }

  /** Raw and triple-quoted strings have rules of their own, and no use here: what looks for `tune(` need not know them. */
  #textLiteral(node: ASTNode, literal: string): Typed | undefined {
    const written = node.input.slice(node.start, node.end);
    if (/^(["'])(?!\1\1)/.test(written)) return { type: 'text', name: undefined, literal };
    return this.#report(node, 'this kind of text is not supported', '"text" or \'text\'');
  }

  #signal(node: ASTNode, name: string): Typed | undefined {
    const type = this.#signals.get(name);
    if (type === undefined) {
      if (this.problems.length >= PROBLEMS_MAX) return undefined;
      const names = [...this.#signals.keys()];
      this.problems.push({
        offset: node.start,
        what: 'a signal that is not declared under `signals`',
        value: name,
        allowed: listNames(names, 'none is declared'),
        ...didYouMean(name, names),
      });
      return undefined;
    }
    this.reads.add(name);
    if (type === 'string') return { type: 'text', name, literal: undefined };
    if (type === 'bool') return bool({ kind: 'flag', name });
    return number({ kind: 'signal', name, integer: type === 'int' }, type === 'int');
  }

  /** `context.surface` is `surface`, said in full. */
  #field(node: ASTNode, receiver: ASTNode, name: string): Typed | undefined {
    if (receiver.op !== 'id' || receiver.args !== 'context') return this.#unsupported(node);
    const typed = this.#signal(node, name);
    if (typed === undefined || typed.type === 'text') return typed;
    return this.#report(node, 'the context holds texts only', `${name}, without \`context.\``);
  }

  #call(node: ASTNode, name: string): Typed | undefined {
    const tunable = name === 'tune' ? this.#tunables.get(node.start) : undefined;
    return tunable === undefined
      ? this.#unsupported(node)
      : number({ kind: 'tune', name: tunable.name }, false);
  }

  #logical(kind: 'and' | 'or', [left, right]: readonly [ASTNode, ASTNode]): Typed | undefined {
    const first = this.#condition(left);
    const second = this.#condition(right);
    if (first === undefined || second === undefined) return undefined;
    const operands = [first, second].flatMap((operand) =>
      operand.kind === kind ? operand.operands : [operand],
    );
    return bool({ kind, operands });
  }

  #not(node: ASTNode): Typed | undefined {
    const operand = this.#condition(node);
    return operand === undefined ? undefined : bool({ kind: 'not', operand });
  }

  #negate(node: ASTNode): Typed | undefined {
    const operand = this.#number(node);
    if (operand === undefined) return undefined;
    const { expression, integer } = operand;
    if (expression.kind === 'number') return number({ kind: 'number', value: -expression.value }, integer);
    return number({ kind: 'negate', operand: expression }, integer);
  }

  #arithmetic(op: ArithmeticOp, [left, right]: readonly [ASTNode, ASTNode]): Typed | undefined {
    const first = this.#number(left);
    const second = this.#number(right);
    if (first === undefined || second === undefined) return undefined;
    const whole = first.integer && second.integer;
    if (op === '%' && !whole)
      return this.#report(left, '% takes whole numbers', 'int signals and whole literals');
    return number(
      { kind: 'arithmetic', op, left: first.expression, right: second.expression },
      whole && op !== '/',
    );
  }

  #compare(node: ASTNode, op: CompareOp, [left, right]: readonly [ASTNode, ASTNode]): Typed | undefined {
    const first = this.convert(left);
    const second = this.convert(right);
    if (first === undefined || second === undefined) return undefined;
    if (first.type === 'number' && second.type === 'number') {
      return bool({ kind: 'compare', op, left: first.expression, right: second.expression });
    }
    if (first.type !== second.type)
      return this.#report(node, `a ${first.type} is compared with a ${second.type}`);
    if (op !== '==' && op !== '!=') return this.#report(node, `${first.type}s have no order`, '== and !=');
    const same = first.type === 'bool' ? this.#sameFlag(node, first, second) : sameText(first, second);
    if (same === undefined) return undefined;
    return bool(op === '==' ? same : { kind: 'not', operand: same });
  }

  /** Flags and literals only: comparing whole conditions reads badly, and its tests double with every nesting. */
  #sameFlag(node: ASTNode, first: Typed, second: Typed): Condition | undefined {
    const left = first.type === 'bool' ? first.condition : undefined;
    const right = second.type === 'bool' ? second.condition : undefined;
    if (left?.kind === 'boolean' && right?.kind === 'boolean')
      return { kind: 'boolean', value: left.value === right.value };
    if (left?.kind === 'flag' && right?.kind === 'flag')
      return { kind: 'same-flag', left: left.name, right: right.name };
    if (left?.kind === 'flag' && right?.kind === 'boolean')
      return right.value ? left : { kind: 'not', operand: left };
    if (left?.kind === 'boolean' && right?.kind === 'flag')
      return left.value ? right : { kind: 'not', operand: right };
    return this.#report(
      node,
      'only flags and true or false can be compared like this',
      '&&, || and ! for conditions',
    );
  }

  #member(node: ASTNode, [left, right]: readonly [ASTNode, ASTNode]): Typed | undefined {
    const operand = this.convert(left);
    if (right.op !== 'list')
      return this.#report(right, '`in` takes a list on its right', 'such as [1, 2] or ["eu", "us"]');
    const items = right.args.map((item) => this.#listItem(item, operand?.type));
    if (operand === undefined || items.includes(undefined)) return undefined;
    if (operand.type === 'number') {
      return bool({
        kind: 'member',
        operand: operand.expression,
        values: items.filter((item) => typeof item === 'number'),
      });
    }
    if (operand.type !== 'text') return this.expected('a number or a text', operand, left);
    if (operand.name === undefined)
      return this.#report(node, 'both sides of `in` are fixed', 'a signal on the left');
    return bool({
      kind: 'text-member',
      name: operand.name,
      values: items.filter((item) => typeof item === 'string'),
    });
  }

  #listItem(node: ASTNode, type: Typed['type'] | undefined): number | string | undefined {
    const item = this.convert(node);
    if (item === undefined) return undefined;
    if (item.type === 'text' && item.literal !== undefined && type !== 'number') return item.literal;
    if (item.type === 'number' && item.expression.kind === 'number' && type !== 'text')
      return item.expression.value;
    return this.#report(node, 'a list holds literals of the type on the left of `in`', 'numbers, or texts');
  }

  #condition(node: ASTNode): Condition | undefined {
    const typed = this.convert(node);
    if (typed === undefined || typed.type === 'bool') return typed?.condition;
    return this.expected('a comparison or a flag', typed, node);
  }

  #number(node: ASTNode): Extract<Typed, { type: 'number' }> | undefined {
    const typed = this.convert(node);
    if (typed === undefined || typed.type === 'number') return typed;
    return this.expected('a number', typed, node);
  }

  #unsupported(node: ASTNode): undefined {
    const advice = node.op === '?:' ? { advice: 'Write two branches instead of `?:`.' } : {};
    const value = node.input.slice(node.start, node.end);
    this.problems.push({
      offset: node.start,
      what: 'not part of the policy language',
      value,
      allowed: ALLOWED_SYNTAX,
      ...advice,
    });
    return undefined;
  }

  #report(node: ASTNode, what: string, allowed?: string): undefined {
    const value = node.input.slice(node.start, node.end);
    this.problems.push({ offset: node.start, what, value, ...(allowed === undefined ? {} : { allowed }) });
    return undefined;
  }
}

function sameText(first: Typed, second: Typed): Condition | undefined {
  if (first.type !== 'text' || second.type !== 'text') return undefined;
  if (first.name === undefined && second.name === undefined) {
    return { kind: 'boolean', value: first.literal === second.literal };
  }
  if (first.name === undefined) return sameText(second, first);
  if (second.name !== undefined) return { kind: 'same-text', left: first.name, right: second.name };
  return { kind: 'text-member', name: first.name, values: [second.literal ?? ''] };
}

function bool(condition: Condition): Typed {
  return { type: 'bool', condition };
}

function number(expression: Numeric, integer: boolean): Typed {
  return { type: 'number', expression, integer };
}
