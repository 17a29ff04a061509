import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../../../src/core/errors.ts';
import { type AcceptedRequest, checkRequest } from '../../../../src/core/request/check.ts';
import type { RequestFields } from '../../../../src/core/request/fields.ts';
import { DEFAULT_REQUEST_LIMITS } from '../../../../src/core/request/limits.ts';
import { DATATYPES, ELEMENT_BYTES, type Tensor } from '../../../../src/core/request/tensor.ts';
import { FAMILIES, numbers, RANKER, request, texts, unaligned } from './requests.ts';

const LIMITS = { ...DEFAULT_REQUEST_LIMITS, contextKeys: new Set(['surface']) };

const oddNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(0, -0, 1, -1, 0.5, 2 ** 31 - 1, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY),
);
const oddText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '__proto__', 'surface', 'x'.repeat(300)),
);
const contents = fc.uint8Array({ maxLength: 96 }).map(unaligned);

const anyTensor: fc.Arbitrary<Tensor> = fc.record({
  name: fc.oneof(fc.constantFrom(...RANKER.inputs.map(({ name }) => name)), oddText),
  datatype: fc.oneof(fc.constantFrom(...DATATYPES), oddText),
  shape: fc.array(fc.oneof(fc.nat({ max: 9 }), oddNumber), { maxLength: 10 }),
  contents,
});

const float = fc.oneof(
  { weight: 30, arbitrary: fc.float() },
  { weight: 1, arbitrary: fc.constant(Number.NaN) },
);

/** A tensor that fits, with N candidates and T rows; its values may be anything. */
const fitting = (name: string, shape: number[]): fc.Arbitrary<Tensor> => {
  const size = shape.reduce((product, dimension) => product * dimension, 1);
  return fc
    .array(float, { minLength: size, maxLength: size })
    .map((values) => numbers(name, 'FP32', shape, values));
};

const tagsOf = (n: number): fc.Arbitrary<Tensor> =>
  fc.array(fc.string(), { minLength: n, maxLength: n }).map((tags) => texts('tags', [n], tags));

/** Mostly good requests: each part fits for N candidates and T rows unless the draw replaces it by something odd. */
const mostlyGood: fc.Arbitrary<RequestFields> = fc
  .record({ n: fc.nat({ max: 9 }), t: fc.nat({ max: 7 }), otherN: fc.nat({ max: 9 }), slip: fc.boolean() })
  .chain(({ n, t, otherN, slip }) => {
    const idsN = slip ? otherN : n;
    return fc.record({
      requestTensors: fc.oneof(
        { weight: 8, arbitrary: fc.tuple(fitting('user', [4]), fitting('history', [t, 8])) },
        {
          weight: 2,
          arbitrary: fc.tuple(
            fitting('user', [1, 4]),
            fc.constant(numbers('history_length', 'INT64', [1], [0])),
          ),
        },
        { weight: 1, arbitrary: fc.array(anyTensor, { maxLength: 4 }) },
      ),
      candidateTensors: fc.oneof(
        { weight: 8, arbitrary: fc.tuple(fitting('item', [n, 2])) },
        { weight: 4, arbitrary: fc.tuple(fitting('item', [n, 2]), tagsOf(idsN)) },
        { weight: 1, arbitrary: fc.array(anyTensor, { maxLength: 4 }) },
      ),
      candidateIds: fc.oneof(
        { weight: 8, arbitrary: fc.constant(numbers('ids', 'INT64', [idsN], Array<number>(idsN).fill(7))) },
        { weight: 4, arbitrary: fc.constant(null) },
        { weight: 1, arbitrary: anyTensor },
      ),
      candidateValues: fc.oneof(
        { weight: 8, arbitrary: fc.constant(null) },
        { weight: 4, arbitrary: fitting('values', [n]).map((values) => values.contents) },
        { weight: 1, arbitrary: contents },
      ),
      baselineCandidates: fc.oneof(
        { weight: 8, arbitrary: fc.nat({ max: n }) },
        { weight: 1, arbitrary: oddNumber },
      ),
    });
  })
  .map((changes) => request(changes));

const anyRequest: fc.Arbitrary<RequestFields> = fc
  .record(
    {
      requestId: oddText,
      model: fc.oneof(
        fc.constantFrom('ranker', 'ranker@1', 'retriever', 'constructor', '@', 'ranker@@1'),
        oddText,
      ),
      deadlineMs: fc.option(oddNumber),
      priority: oddNumber,
      value: fc.option(oddNumber),
      candidateValues: fc.option(contents),
      bucketKey: fc.option(oddText),
      region: fc.option(oddText),
      baselineCandidates: oddNumber,
      candidateIds: fc.option(anyTensor),
      requestTensors: fc.array(anyTensor, { maxLength: 4 }),
      candidateTensors: fc.array(anyTensor, { maxLength: 4 }),
      hints: fc.dictionary(oddText, oddNumber),
      context: fc.dictionary(oddText, oddText),
      experiments: fc.dictionary(oddText, oddText),
      optOut: fc.array(oddText, { maxLength: 10 }),
      pin: fc.option(oddText),
      resultPartition: fc.option(oddNumber),
    },
    { requiredKeys: [] },
  )
  .map((changes) => request(changes));

/** How many elements the contents hold, counted without the code under test; NaN where they end within one. */
function elementsOf(tensor: Tensor): number {
  const datatype = DATATYPES.find((known) => known === tensor.datatype);
  if (datatype === undefined) return Number.NaN;
  if (datatype !== 'BYTES') return tensor.contents.length / ELEMENT_BYTES[datatype];
  let rest: Buffer = tensor.contents;
  let elements = 0;
  for (; rest.length >= 4; elements++) {
    const end = 4 + rest.readUInt32LE(0);
    if (end > rest.length) return Number.NaN;
    rest = rest.subarray(end);
  }
  return rest.length === 0 ? elements : Number.NaN;
}

function floats(bytes: Buffer): number[] {
  return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
}

/** What every later stage relies on. */
function expectConsistent(sent: RequestFields, accepted: AcceptedRequest): void {
  const n = accepted.candidateCount;
  const tensors = [...sent.requestTensors, ...sent.candidateTensors];
  for (const tensor of sent.candidateIds === null ? tensors : [...tensors, sent.candidateIds])
    expect(elementsOf(tensor)).toBe(tensor.shape.reduce((product, size) => product * size, 1));
  for (const tensor of sent.candidateTensors) expect(tensor.shape[0]).toBe(n);
  if (sent.candidateIds !== null) expect(sent.candidateIds.shape).toEqual([n]);
  if (sent.candidateValues !== null) {
    expect(sent.candidateValues.length).toBe(4 * n);
    expect(floats(sent.candidateValues).every(Number.isFinite)).toBe(true);
  }
  expect(n).toBeLessThanOrEqual(accepted.family.candidatesMax);
  expect(sent.baselineCandidates).toBeGreaterThanOrEqual(0);
  expect(sent.baselineCandidates).toBeLessThanOrEqual(n);
  expect(accepted.sequenceLength).toBeLessThanOrEqual(accepted.family.sequenceLengthMax);
  expect(accepted.budgetMs > 0 && accepted.budgetMs <= LIMITS.deadlineMsMax).toBe(true);
  expect([accepted.value, ...Object.values(sent.hints)].every(Number.isFinite)).toBe(true);
  const { region, ...context } = accepted.context;
  expect(region).toBe(sent.region ?? undefined);
  expect(Object.keys(context).every((key) => LIMITS.contextKeys.has(key))).toBe(true);
  expectPlaced(tensors, accepted);
}

function expectPlaced(sent: readonly Tensor[], { family, tensors, candidateCount }: AcceptedRequest): void {
  const placed = tensors.filter((tensor) => tensor !== undefined);
  expect(new Set(placed)).toEqual(new Set(sent));
  for (const [index, input] of family.inputs.entries()) {
    const tensor = tensors[index];
    if (tensor === undefined) {
      const needed = input.required && (input.side === 'request' || candidateCount > 0);
      expect(needed).toBe(false);
      continue;
    }
    expect([tensor.name, tensor.datatype]).toEqual([input.name, input.datatype]);
    if (input.side === 'request') expect(floats(tensor.contents).every(Number.isFinite)).toBe(true);
  }
}

describe('checkRequest', () => {
  it.each([
    ['mostly good', mostlyGood, 1_000],
    ['any', anyRequest, 2_000],
  ])('never throws and accepts nothing inconsistent: %s requests', (_, requests, numRuns) => {
    fc.assert(
      fc.property(requests, (sent) => {
        const checked = checkRequest(sent, FAMILIES, LIMITS);
        if (checked.status === 'accepted') expectConsistent(sent, checked);
        else expect(ERROR_CODES).toHaveProperty(checked.code);
      }),
      { numRuns },
    );
  });

  it('accepts a good part of the mostly good requests, so that the property above says something', () => {
    const sample = fc.sample(mostlyGood, { numRuns: 500, seed: 1 });
    const accepted = sample.filter((sent) => checkRequest(sent, FAMILIES, LIMITS).status === 'accepted');
    expect(accepted.length).toBeGreaterThan(50);
  });
});
