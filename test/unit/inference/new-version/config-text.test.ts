import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { configText } from '../../../../src/inference/new-version/config-text.ts';
import { checkNames } from '../../../../src/inference/new-version/input-bounds.ts';
import type { PlannedInput } from '../../../../src/inference/new-version/planned-input.ts';
import { configSchema } from '../../../../src/inference/repository/config.ts';
import { parseAs, readYaml } from '../../../../src/inference/repository/parse-file.ts';

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom('\u00a0', 'one line\n', '\u3000 ', 'a\u2028'),
);
const inputName = fc
  .oneof(
    text,
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.string({ unit: 'binary', minLength: 250, maxLength: 260 }),
    fc.constantFrom('onnx::Gather_0', 'input.1', '7', 'yes', 'null', '- x', '{a: b}', '#', "'"),
  )
  .filter((name) => name !== 'request_index' && isTaken(name));

function isTaken(name: string): boolean {
  try {
    checkNames({ inputs: [{ name, type: 1, shape: ['N', 1] }], outputs: [], nodes: [] });
    return true;
  } catch {
    return false;
  }
}

const inputs = fc
  .tuple(
    fc.uniqueArray(inputName, { minLength: 3, maxLength: 3 }),
    fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 2 }),
    fc.constantFrom('FP32' as const, 'INT64' as const),
  )
  .map(([[item = '', history = '', length = ''], rowShape, datatype]): PlannedInput[] => {
    const request = { side: 'request', rows: 'one', lengthOf: undefined, why: '' } as const;
    return [
      { ...request, name: item, side: 'candidate', datatype, rowShape },
      { ...request, name: history, datatype: 'FP32', rowShape: ['T', ...rowShape] },
      { ...request, name: length, datatype: 'INT64', rowShape: [], lengthOf: history },
    ];
  });

describe('config.yaml of a made version', () => {
  it('says what it is given, whatever names and texts are', () => {
    fc.assert(
      fc.property(
        fc.record({
          inputs,
          source: text,
          description: text,
          calibrationTarget: text,
          emptySequences: fc.boolean(),
        }),
        ({ inputs: planned, source, description, calibrationTarget, emptySequences }) => {
          const written = configText({
            ...{ source, inputs: planned, emptySequences, usesTiles: true, opset: 20 },
            digest: `sha256:${'0'.repeat(64)}`,
            heads: [{ name: 'click', probability: true, meaning: source }],
            words: {
              ...{
                family: 'feed',
                version: 3,
                variant: 'baseline',
                synthetic: false,
                description,
                calibrationTarget,
              },
              ...{ slaMs: 20, hints: [{ name: 'weight', default: 1.5 }], rankBy: 'click * weight' },
              ...{ candidatesMax: 10, rowsMax: 5 },
            },
          });
          const config = parseAs('config.yaml', configSchema, readYaml('config.yaml', written));
          expect(config).toMatchObject({
            ...{ family: 'feed', version: 3, description, calibrationTarget, rankBy: 'click * weight' },
            heads: [{ name: 'click', meaning: source }],
            hints: [{ name: 'weight', default: 1.5 }],
            tiles: { candidates: 'tile_candidates', requests: 'tile_request', slots: 'candidate_slot' },
          });
          expect(config.inputs.map(({ name }) => name)).toEqual([
            ...planned.map(({ name }) => name),
            'request_index',
          ]);
          expect(config.inputs[1]?.optional).toBe(emptySequences);
          expect(config.inputs[2]?.lengthOf).toBe(planned[1]?.name);
          const [item] = planned;
          const size = item?.rowShape.reduce<number>((product, each) => product * Number(each), 1) ?? 0;
          const bytes = item?.datatype === 'FP32' ? 4 : 8;
          expect(config.limits.tensorBytesMax).toBe(10 * size * bytes + 5 * size * 4 + 8);
        },
      ),
    );
  });
});
