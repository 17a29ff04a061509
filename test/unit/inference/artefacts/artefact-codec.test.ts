import { createHmac, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ARTEFACT_REFUSALS,
  type ArtefactIdentity,
  artefactBytesMax,
  decodeArtefact,
  encodeArtefact,
  type LayerInput,
  type LayerTensor,
} from '../../../../src/inference/artefacts/artefact-codec.ts';
import { ARTEFACT_BYTES_MAX } from '../../../../src/ports/artefact-store.ts';

const SECRET = createSecretKey(Buffer.from('a secret of the workers'));
const IDENTITY: ArtefactIdentity = {
  key: Buffer.alloc(32, 7),
  modelDigest: `sha256:${'ab'.repeat(32)}`,
};
const LAYOUT: LayerInput[] = [
  { name: 'hidden', datatype: 'FP32', shape: [1, 4] },
  { name: 'keys', datatype: 'FP32', shape: [1, null, 2] },
  { name: 'length', datatype: 'INT64', shape: [1] },
];
const TENSORS: LayerTensor[] = [
  { name: 'hidden', datatype: 'FP32', shape: [1, 4], contents: Buffer.alloc(16, 1) },
  { name: 'keys', datatype: 'FP32', shape: [1, 3, 2], contents: Buffer.alloc(24, 2) },
  { name: 'length', datatype: 'INT64', shape: [1], contents: Buffer.alloc(8, 3) },
];

const tensor: fc.Arbitrary<LayerTensor> = fc
  .record({
    name: fc.string({ unit: 'grapheme', maxLength: 20 }),
    datatype: fc.constantFrom('FP32', 'INT64'),
    shape: fc.array(fc.nat({ max: 4 }), { maxLength: 4 }),
  })
  .chain(({ shape, datatype, name }) => {
    const length = shape.reduce((product, size) => product * size, datatype === 'FP32' ? 4 : 8);
    return fc
      .uint8Array({ minLength: length, maxLength: length })
      .map((bytes) => ({ name, datatype, shape, contents: Buffer.from(bytes) }));
  });
const tensors = fc.array(tensor, { maxLength: 5 });
const bytes32 = fc.uint8Array({ minLength: 32, maxLength: 32 });

function sealed(body: Uint8Array): Buffer {
  return Buffer.concat([body, createHmac('sha256', SECRET).update(body).digest()]);
}

const encoded = () => encodeArtefact(IDENTITY, TENSORS, SECRET);
const bodyOf = (bytes: Buffer) => bytes.subarray(0, -32);

describe('an artefact as bytes', () => {
  test('comes back as it was, for the layout that it has, whichever sizes are left open', () => {
    const property = fc.property(
      tensors,
      bytes32,
      bytes32,
      fc.infiniteStream(fc.boolean()),
      (all, key, digest, open) => {
        const identity = { key, modelDigest: `sha256:${Buffer.from(digest).toString('hex')}` };
        const isOpen = () => open.next().value === true;
        const layout = all.map((one) => ({
          ...one,
          shape: one.shape.map((size) => (isOpen() ? null : size)),
        }));
        expect(decodeArtefact(encodeArtefact(identity, all, SECRET), identity, layout, SECRET)).toEqual(all);
      },
    );
    fc.assert(property);
  });

  test('with any byte changed, cut or added is refused', () => {
    const whole = encoded();
    const at = fc.nat({ max: whole.length - 1 });
    const changed = fc.oneof(
      fc.tuple(at, fc.integer({ min: 1, max: 255 })).map(([place, mask]) => {
        const other = Buffer.from(whole);
        other[place] = (other[place] ?? 0) ^ mask;
        return other;
      }),
      at.map((length) => whole.subarray(0, length)),
      fc.uint8Array({ minLength: 1, maxLength: 64 }).map((more) => Buffer.concat([whole, more])),
    );
    const property = fc.property(changed, (bytes) => {
      expect(ARTEFACT_REFUSALS).toContain(decodeArtefact(bytes, IDENTITY, LAYOUT, SECRET));
    });
    fc.assert(property, { numRuns: 500 });
  });

  test('that somebody made up is refused, sealed or not', () => {
    const head = bodyOf(encoded()).subarray(0, 4 + 64);
    const madeUp = fc
      .tuple(
        fc.constantFrom(head, head.subarray(0, 4), head.subarray(0, 0)),
        fc.uint8Array({ maxLength: 300 }),
      )
      .map((parts) => Buffer.concat(parts));
    const property = fc.property(madeUp, fc.boolean(), (body, isSealed) => {
      const bytes = isSealed ? sealed(body) : body;
      expect(ARTEFACT_REFUSALS).toContain(decodeArtefact(bytes, IDENTITY, LAYOUT, SECRET));
    });
    fc.assert(property, { numRuns: 500 });
  });

  test.each<[string, Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'not-an-artefact'],
    ['another text', Buffer.alloc(200, 'x'), 'not-an-artefact'],
    ['one cut within its head', encoded().subarray(0, 60), 'not-an-artefact'],
    ['another form', sealed(Buffer.from(bodyOf(encoded())).fill(2, 3, 4)), 'form-version'],
    ['one without its last byte', encoded().subarray(0, -1), 'seal'],
    [
      'one made with another secret',
      encodeArtefact(IDENTITY, TENSORS, createSecretKey(Buffer.from('another'))),
      'seal',
    ],
    ['of another request', encodeArtefact({ ...IDENTITY, key: Buffer.alloc(32) }, TENSORS, SECRET), 'key'],
    [
      'of another model',
      encodeArtefact({ ...IDENTITY, modelDigest: `sha256:${'00'.repeat(32)}` }, TENSORS, SECRET),
      'model',
    ],
    ['a tensor too few', encodeArtefact(IDENTITY, TENSORS.slice(1), SECRET), 'layout'],
    ['in another order', encodeArtefact(IDENTITY, TENSORS.toReversed(), SECRET), 'layout'],
    ['another number of tensors', sealed(Buffer.from(bodyOf(encoded())).fill(4, 68, 69)), 'layout'],
    ['values left over', sealed(Buffer.concat([bodyOf(encoded()), Buffer.alloc(4)])), 'layout'],
    ['values missing', sealed(bodyOf(encoded()).subarray(0, -4)), 'layout'],
    ['sizes missing', sealed(bodyOf(encoded()).subarray(0, 4 + 64 + 2 + 10)), 'layout'],
    [
      'a size of 4 294 967 295 where any is taken',
      // After the head, the first tensor, and the second one's name, type, rank and first size.
      sealed(Buffer.from(bodyOf(encoded())).fill(0xff, 112, 116)),
      'layout',
    ],
  ])('is refused with the reason: %s', (_what, bytes, reason) => {
    expect(decodeArtefact(bytes, IDENTITY, LAYOUT, SECRET)).toBe(reason);
  });

  test.each<[string, LayerInput]>([
    ['name', { name: 'Hidden', datatype: 'FP32', shape: [1, 4] }],
    ['type', { name: 'hidden', datatype: 'INT64', shape: [1, 4] }],
    ['size', { name: 'hidden', datatype: 'FP32', shape: [1, 5] }],
    ['rank', { name: 'hidden', datatype: 'FP32', shape: [4] }],
  ])('is refused where the model takes another %s', (_what, first) => {
    expect(decodeArtefact(encoded(), IDENTITY, [first, ...LAYOUT.slice(1)], SECRET)).toBe('layout');
  });

  test('is refused where its sizes multiply to what is no number', () => {
    const sizes = [...new Array<number>(40).fill(0xff_ff_ff_ff), 0];
    const first: LayerTensor = { name: 'a', datatype: 'FP32', shape: sizes, contents: Buffer.alloc(0) };
    const layout = [{ ...first, shape: sizes.map(() => null) }, ...LAYOUT];
    const bytes = encodeArtefact(IDENTITY, [first, ...TENSORS], SECRET);
    expect(decodeArtefact(bytes, IDENTITY, layout, SECRET)).toBe('layout');
  });

  test('is as long as its layout says, and no longer than a store takes where sizes are open', () => {
    const property = fc.property(tensors, (all) => {
      expect(encodeArtefact(IDENTITY, all, SECRET).length).toBe(artefactBytesMax(all));
    });
    fc.assert(property);
    expect(artefactBytesMax(LAYOUT)).toBe(ARTEFACT_BYTES_MAX);
  });

  test('is not made where no store would take it', () => {
    const large = { ...TENSORS[0], contents: Buffer.alloc(ARTEFACT_BYTES_MAX) } as LayerTensor;
    expect(() => encodeArtefact(IDENTITY, [large], SECRET)).toThrow(/too long to be kept .*at most 1048576/);
  });
});
