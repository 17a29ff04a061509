import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findExternalData } from '../../../../src/inference/repository/external-data.ts';
import { bytesField, FLOAT, initializer, message, model, node, numberField } from '../onnx-bytes.ts';
import { toyGraph } from '../toy-model.ts';

const location = message(13, bytesField(1, 'location'), bytesField(2, '../../etc/passwd'));
const external = numberField(14, 1);

/** An initializer's fields, as a tensor in another message's field. */
function tensorIn(field: number, ...rest: Uint8Array[]): Uint8Array {
  return message(field, numberField(2, FLOAT), bytesField(8, 'hidden'), ...rest);
}

describe('external data', () => {
  test('is not in a whole model', () => {
    expect(findExternalData(toyGraph())).toBeUndefined();
  });

  test.each<[string, Uint8Array]>([
    ['an initializer with a location', initializer('hidden', FLOAT, [1], new Uint8Array(4), location)],
    ['an initializer that says external', initializer('hidden', FLOAT, [1], new Uint8Array(0), external)],
    ['a sparse initializer', message(15, tensorIn(1, external))],
    ['a constant', node('Constant', [], 'c', message(5, bytesField(1, 'value'), tensorIn(5, location)))],
    ['a sparse constant', node('X', [], 'c', message(5, message(22, tensorIn(1, external))))],
    ['a list of sparse constants', node('X', [], 'c', message(5, message(23, tensorIn(2, external))))],
    ['a list of constants', node('X', [], 'c', message(5, tensorIn(10, location)))],
    [
      'a branch',
      node(
        'If',
        ['c'],
        'o',
        message(5, message(6, node('Constant', [], 'c', message(5, tensorIn(5, external))))),
      ),
    ],
  ])('is found in %s', (_, field) => {
    expect(findExternalData(model(node('Identity', ['a'], 'b'), field))).toBe('hidden');
  });

  test('is found in a function', () => {
    const constant = message(7, message(5, tensorIn(5, external)));
    expect(findExternalData(message(25, constant))).toBe('hidden');
  });

  test('a tensor that says it is in the file is in the file', () => {
    expect(
      findExternalData(model(initializer('w', FLOAT, [1], new Uint8Array(4), numberField(14, 0)))),
    ).toBeUndefined();
  });

  test('refuses a cut file wherever it is cut inside the graph', () => {
    const graph = toyGraph();
    for (let length = 3; length < graph.length - 4; length++) {
      expect(() => findExternalData(graph.subarray(0, length))).toThrowError(RangeError);
    }
  });

  test('refuses messages that nest without end', () => {
    let graph = node('If', ['c'], 'o');
    for (let depth = 0; depth < 30; depth++) graph = node('If', ['c'], 'o', message(5, message(6, graph)));
    expect(() => findExternalData(model(graph))).toThrowError(/nest/);
  });

  test('any bytes are either searched or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          findExternalData(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(RangeError);
        }
      }),
    );
  });
});
