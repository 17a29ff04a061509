import { describe, expect, it } from 'vitest';
import { candidatesWithin } from '../../../../src/inference/new-version/input-bounds.ts';
import { planInputs, type SaidInputs } from '../../../../src/inference/new-version/input-plan.ts';
import type { Dim, OnnxGraph } from '../../../../src/inference/onnx-file/graph.ts';

const [FLOAT, INT64, DOUBLE] = [1, 7, 11];

type Written = readonly [name: string, shape: readonly Dim[] | undefined, type?: number];

/** A graph that is nothing but its inputs and an output. */
function graphOf(inputs: readonly Written[], output: readonly Dim[] = ['N']): OnnxGraph {
  return {
    ...{ name: 'test', irVersion: 10n, opset: 20, constants: new Map(), nodes: [] },
    inputs: inputs.map(([name, shape, type = FLOAT]) => ({ name, shape, type })),
    outputs: [{ name: 'score', type: FLOAT, shape: output }],
  };
}

function plan(graph: OnnxGraph, said: Partial<SaidInputs> = {}): string[] {
  return planInputs(graph, { lengths: new Map(), ...said }).inputs.map(
    ({ name, side, rows, rowShape, lengthOf }) =>
      `${name}: ${side} ${rows} [${rowShape.join(', ')}]${lengthOf === undefined ? '' : ` of ${lengthOf}`}`,
  );
}

const ITEM: Written = ['item', ['N', 4]];

describe('which inputs are the request’s', () => {
  it.each<[string, OnnxGraph, string[]]>([
    ['one row', graphOf([['user', [1, 8]], ITEM]), ['user: request one [8]', 'item: candidate each [4]']],
    [
      'no axis for rows',
      graphOf([['user', [8]], ITEM]),
      ['user: request none [8]', 'item: candidate each [4]'],
    ],
    ['a number', graphOf([['hour', []], ITEM]), ['hour: request none []', 'item: candidate each [4]']],
    [
      'another axis than the output',
      graphOf([['user', ['batch', 8]], ITEM]),
      ['user: request one [8]', 'item: candidate each [4]'],
    ],
    [
      'an axis without a name, where the output has none either',
      graphOf(
        [
          ['user', [1, 8]],
          ['item', ['item.0', 4]],
        ],
        ['score.0'],
      ),
      ['user: request one [8]', 'item: candidate each [4]'],
    ],
    [
      'a row per request, behind an index',
      graphOf([
        ['user', ['requests', 8]],
        ['item', ['candidates', 4]],
        ['request_index', ['candidates'], INT64],
      ]),
      ['user: request one [8]', 'item: candidate each [4]'],
    ],
    [
      'candidates alone, behind an index',
      graphOf([
        ['item', ['candidates', 4]],
        ['request_index', ['candidates'], INT64],
      ]),
      ['item: candidate each [4]'],
    ],
    [
      'a sequence and what counts its rows',
      graphOf([['history', [1, 'T', 3]], ['length', [1], INT64], ITEM]),
      ['history: request one [T, 3]', 'length: request one [] of history', 'item: candidate each [4]'],
    ],
    [
      'two sequences, by the names of what counts them',
      graphOf([['a', [1, 'A', 3]], ['b', [1, 'B', 3]], ['b_len', [1], INT64], ['a_len', [1], INT64], ITEM]),
      [
        ...['a: request one [A, 3]', 'b: request one [B, 3]', 'b_len: request one [] of b'],
        ...['a_len: request one [] of a', 'item: candidate each [4]'],
      ],
    ],
  ])('reads off the shapes: %s', (_, graph, want) => {
    expect(plan(graph)).toEqual(want);
  });

  it.each<[string, OnnxGraph, Partial<SaidInputs>, string[]]>([
    [
      'the request’s, the rest are the candidates’',
      graphOf([['user', ['N', 8]], ITEM]),
      { requestInputs: ['user'] },
      ['user: request each [8]', 'item: candidate each [4]'],
    ],
    [
      'the candidates’, the rest are the request’s',
      graphOf([['user', ['N', 8]], ITEM]),
      { candidateInputs: ['item'] },
      ['user: request each [8]', 'item: candidate each [4]'],
    ],
    [
      'against the shapes',
      graphOf([['user', ['batch', 8]], ITEM]),
      { candidateInputs: ['user', 'item'] },
      ['user: candidate each [8]', 'item: candidate each [4]'],
    ],
    [
      'what counts the rows of a sequence',
      graphOf([['history', [1, 'T', 3]], ['a', [1], INT64], ['b', [1], INT64], ITEM]),
      { lengths: new Map([['b', 'history']]) },
      [
        ...['history: request one [T, 3]', 'a: request one []'],
        ...['b: request one [] of history', 'item: candidate each [4]'],
      ],
    ],
  ])('takes what is said: %s', (_, graph, said, want) => {
    expect(plan(graph, said)).toEqual(want);
  });

  it.each<[string, OnnxGraph, Partial<SaidInputs>, RegExp]>([
    [
      'all inputs have the same first axis',
      graphOf([['user', ['N', 8]], ITEM]),
      {},
      /shapes do not tell.*"user \[N, 8\], item \[N, 4\]".*--request-inputs user;/,
    ],
    ['there is one input', graphOf([ITEM]), {}, /shapes do not tell.*--candidate-inputs item/],
    [
      'axes have no names',
      graphOf(
        [
          ['user', ['user.0', 8]],
          ['item', ['item.0', 4]],
        ],
        ['score.0'],
      ),
      {},
      /shapes do not tell/,
    ],
    [
      'one axis has a name and the other none',
      graphOf([['user', ['user.0', 8]], ITEM]),
      {},
      /shapes do not tell/,
    ],
    [
      'a first axis may be that of a sequence',
      graphOf([['history', ['T', 8]], ITEM]),
      {},
      /shapes do not tell.*--request-inputs history/,
    ],
    [
      'no input is dynamic',
      graphOf([
        ['user', [8]],
        ['item', [4]],
      ]),
      {},
      /no input of the model is of the cand/,
    ],
    [
      'an input is on both sides',
      graphOf([['user', [1, 8]], ITEM]),
      { requestInputs: ['user', 'item'], candidateInputs: ['item'] },
      /input item is on both sides/,
    ],
    [
      'an input is on no side',
      graphOf([['user', [1, 8]], ITEM]),
      { requestInputs: [], candidateInputs: ['item'] },
      /input user is on no side/,
    ],
    [
      'a candidate input has one row',
      graphOf([['user', [1, 8]], ITEM]),
      { candidateInputs: ['user', 'item'] },
      /input user has no axis that counts candidates/,
    ],
    [
      'a candidate input has a sequence',
      graphOf([
        ['user', [1, 8]],
        ['item', ['N', 'T', 4]],
      ]),
      {},
      /input item has an axis whose size each call decides.*"T".*--size T=<n>/,
    ],
    [
      'a request input has two axes of rows',
      graphOf([['user', [1, 'A', 'B']], ITEM]),
      {},
      /input user has an axis .*"B"/,
    ],
    [
      'nothing counts a sequence',
      graphOf([['history', [1, 'T', 3]], ITEM]),
      {},
      /history has as many rows .*no INT64 input.*--size T=<n>/,
    ],
    [
      'two may count it',
      graphOf([['history', [1, 'T', 3]], ['a', [1], INT64], ['b', [1], INT64], ITEM]),
      {},
      /not clear which.*"a, b".*--lengths a=history/,
    ],
    [
      'what is said to count does not',
      graphOf([['history', [1, 'T', 3]], ['a', [1], INT64], ITEM]),
      { lengths: new Map([['item', 'history']]) },
      /does not count .*"item=history".*one of a = one of history/,
    ],
    [
      'requests cannot send a datatype',
      graphOf([['user', [1, 8], DOUBLE], ITEM]),
      {},
      /input user is of a datatype .*"DOUBLE".*INT64.*Cast/,
    ],
    [
      'an input has no shape',
      graphOf([['user', undefined], ITEM]),
      { candidateInputs: ['item'] },
      /input user has/,
    ],
    ['rows hold nothing', graphOf([['user', [1, 0]], ITEM]), {}, /input user has rows without numbers/],
  ])('refuses where %s', (_, graph, said, reason) => {
    expect(() => plan(graph, said)).toThrow(reason);
  });
});

describe('what no request could send', () => {
  it.each<[string, OnnxGraph, RegExp]>([
    ['a size below 0', graphOf([['user', [1, -4]], ITEM]), /input user has an axis of a size.*-4.*from 1/],
    ['rows below 0', graphOf([['user', [-1, 4]], ITEM]), /input user has an axis of a size.*-1/],
    [
      'a size that is no whole number any more',
      graphOf([['user', [1, 2 ** 62]], ITEM]),
      /input user has an axis/,
    ],
    [
      'a row of the request larger than it',
      graphOf([['user', [1, 2_000_000_000]], ITEM]),
      /a row of input user is larger than any request.*8000000000 bytes.*1048576 bytes \(limits\.requestBytesMax/,
    ],
    [
      'a candidate larger than it',
      graphOf([
        ['user', [1, 8]],
        ['item', ['N', 1_000, 1_000]],
      ]),
      /a row of input item/,
    ],
    [
      'integers larger than it',
      graphOf([['user', [1, 200_000], INT64], ITEM]),
      /a row of input user.*1600000 bytes/,
    ],
    [
      'rows that are too many together',
      graphOf([['user', [1, 200_000]], ['more', [1, 200_000]], ITEM]),
      /with input more, the tensors of one candidate are larger.*1600000 bytes/,
    ],
  ])('refuses %s by the name of the input', (_, graph, reason) => {
    expect(() => candidatesWithin(planInputs(graph, { lengths: new Map() }), 1_048_576)).toThrow(reason);
  });

  it('says how many candidates a request has room for', () => {
    const within = (bytes: number) =>
      candidatesWithin(planInputs(graphOf([['user', [1, 8]], ITEM]), { lengths: new Map() }), bytes);
    expect([within(48), within(63), within(64), within(1_048_576)]).toEqual([1, 1, 2, 65_534]);
  });

  it.each([
    '__proto__',
    'constructor',
    'toString',
    'prototype',
    'a\nb',
    'a\tb',
    '\u2028',
    '\u202e',
    '',
    'x'.repeat(257),
  ])('refuses an input or an output that is called %j', (name) => {
    expect(() => plan(graphOf([[name, [1, 8]], ITEM]))).toThrow(
      /an input has a name that requests cannot use/,
    );
    const graph = graphOf([['user', [1, 8]], ITEM]);
    const outputs = [{ name, type: FLOAT, shape: ['N'] }];
    expect(() => plan({ ...graph, outputs })).toThrow(/an output has a name/);
  });
});
