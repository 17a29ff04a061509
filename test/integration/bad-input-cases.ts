import type { OutcomeSymbol } from '../../src/core/outcome/outcome.ts';
import {
  type Encode,
  encoder,
  fp32Tensor,
  frame,
  idsTensor,
  itemTensor,
  type RecordSchema,
  readSchema,
  requestFor,
  type StockClient,
  userTensor,
  varint,
} from './stock-client.ts';

/** What a case makes its record of. */
export interface Wire {
  /** Writes a request in the present schema, whatever its fields say. */
  encode: Encode;
  schemaId: number;
  stock: StockClient;
  ingress: string;
  /** A registry subject that no topic has: any schema can be registered there. */
  foreignSubject: string;
}

export interface SentRecord {
  /** The requestId unless given. */
  key?: Buffer | null;
  value: Buffer | null;
  headers?: Record<string, Buffer>;
}

/** One bad (or only odd) record, and what its sender is told. */
export interface InputCase {
  name: string;
  send(id: string, wire: Wire): SentRecord | Promise<SentRecord>;
  outcome: OutcomeSymbol;
  code?: string;
  /** What the message must name for its reader to understand. */
  says?: readonly string[];
  /** Under which id the result goes; the request's own unless given. */
  named?: 'by its place' | ((id: string) => string);
  /** Of a result that is a score. */
  scores?: number;
  /** Headers that the result has. */
  resultHeaders?: Readonly<Record<string, Buffer>>;
}

/** A good request, but for these fields. */
function odd(changes: Readonly<Record<string, unknown>>): InputCase['send'] {
  return (id, { encode }) => ({ value: encode(requestFor(id, changes)) });
}

/** A value that has nothing to do with the id. */
function raw(value: Buffer | null, key?: Buffer | null): InputCase['send'] {
  return () => (key === undefined ? { value } : { key, value });
}

const DEAD = { outcome: 'DEAD_LETTERED' } as const;
const REJECTED = { outcome: 'REJECTED' } as const;
const SCORED = { outcome: 'SCORED', scores: 3 } as const;

const NO_SUCH_ID = 0x7fff_fff0;
const GARBAGE = Buffer.from('not a frame at all');

/** The present schema with one more field in front, written by somebody who means harm. */
async function bomb(wire: Wire, items: 'null' | 'int', count: number): Promise<SentRecord> {
  const schema = readSchema('score-request.v1');
  const fields = [{ name: 'bomb', type: { type: 'array', items } }, ...schema.fields];
  const id = await wire.stock.register(`${wire.foreignSubject}-${items}`, { ...schema, fields });
  return { value: Buffer.concat([frame(id), varint(count)]) };
}

/** The present schema, changed as a newer or an older version would be, and registered as such. */
async function otherVersion(
  wire: Wire,
  change: (schema: RecordSchema) => RecordSchema,
  value: Record<string, unknown>,
): Promise<SentRecord> {
  const schema = change(readSchema('score-request.v1'));
  const id = await wire.stock.register(`${wire.ingress}-value`, schema);
  return { value: encoder(schema, id)(value) };
}

export const UNREADABLE: readonly InputCase[] = [
  {
    ...DEAD,
    name: 'text without a frame',
    send: raw(GARBAGE),
    code: 'NO_FRAME',
    says: ['starts with the byte 110'],
  },
  {
    ...DEAD,
    name: 'JSON in place of Avro',
    send: (id) => ({ value: Buffer.from(JSON.stringify(requestFor(id))) }),
    code: 'NO_FRAME',
    says: ['starts with the byte 123'],
  },
  {
    ...DEAD,
    name: 'a null value (tombstone)',
    send: raw(null),
    code: 'EMPTY_VALUE',
    says: ['has no value'],
  },
  {
    ...DEAD,
    name: 'an empty value',
    send: raw(Buffer.alloc(0)),
    code: 'EMPTY_VALUE',
    says: ['has no value'],
  },
  {
    ...DEAD,
    name: 'fewer bytes than a frame',
    send: raw(Buffer.from([0, 0, 0])),
    code: 'NO_FRAME',
    says: ['3 bytes'],
  },
  {
    ...DEAD,
    name: 'a frame without a body',
    send: (_, { schemaId }) => ({ value: frame(schemaId) }),
    code: 'MALFORMED',
    says: ['requestId'],
  },
  {
    ...DEAD,
    name: 'a schema id that the registry does not know',
    send: (id, { encode }) => ({
      value: Buffer.concat([frame(NO_SUCH_ID), encode(requestFor(id)).subarray(5)]),
    }),
    code: 'UNKNOWN_SCHEMA',
    says: [String(NO_SUCH_ID)],
  },
  {
    ...DEAD,
    name: 'a schema id below 1',
    send: raw(Buffer.concat([frame(-1), GARBAGE])),
    code: 'UNKNOWN_SCHEMA',
    says: ['-1', 'start at 1'],
  },
  {
    ...DEAD,
    name: 'a record of another kind',
    async send(_, { stock, foreignSubject }) {
      const schema = readSchema('outcome.v1');
      const schemaId = await stock.register(`${foreignSubject}-outcome`, schema);
      const value = { outcomeId: 'o', requestId: 'r', type: 'CLICK', token: 't', reward: 1, occurredAt: 0 };
      return { value: encoder(schema, schemaId)(value) };
    },
    code: 'UNKNOWN_SCHEMA',
    says: ['ScoreRequest', 'Outcome'],
  },
  {
    ...DEAD,
    name: 'a truncated record',
    send: (id, { encode }) => ({ value: encode(requestFor(id)).subarray(0, -200) }),
    code: 'MALFORMED',
    says: ['candidateTensors.contents', 'bytes announced'],
  },
  {
    ...DEAD,
    name: 'bytes behind the record',
    send: (id, { encode }) => ({ value: Buffer.concat([encode(requestFor(id)), GARBAGE]) }),
    code: 'MALFORMED',
    says: [`${GARBAGE.length} bytes follow`],
  },
  {
    ...DEAD,
    name: 'an Avro bomb: 5e7 items of no bytes',
    send: (_, wire) => bomb(wire, 'null', 5e7),
    code: 'TOO_LARGE',
    says: ['bomb', '50000000'],
  },
  {
    ...DEAD,
    name: 'an Avro bomb: 1e8 integers announced, none sent',
    send: (_, wire) => bomb(wire, 'int', 1e8),
    code: 'MALFORMED',
    says: ['bomb', '100000000'],
  },
  ...(['hints', 'context', 'experiments'] as const).map((field) => ({
    ...DEAD,
    name: `the key __proto__ in ${field}`,
    send: odd({ [field]: JSON.parse(`{"__proto__": ${field === 'hints' ? '1' : '"x"'}}`) as unknown }),
    code: 'MALFORMED',
    says: [field, '__proto__'],
  })),
  {
    ...DEAD,
    name: 'unreadable, without a key',
    send: raw(GARBAGE, null),
    code: 'NO_FRAME',
    named: 'by its place',
  },
  {
    ...DEAD,
    name: 'unreadable, under a key that is no text',
    send: raw(GARBAGE, Buffer.from([0xff, 0x00, 0xfe])),
    code: 'NO_FRAME',
    named: 'by its place',
  },
  {
    ...DEAD,
    name: 'unreadable, under a key of 129 bytes',
    send: raw(GARBAGE, Buffer.alloc(129, 'k')),
    code: 'NO_FRAME',
    named: 'by its place',
  },
  {
    ...DEAD,
    name: 'unreadable, with headers of its own and of an earlier failure',
    send: () => ({
      value: GARBAGE,
      headers: {
        tracestate: Buffer.from('mine'),
        '__connect.errors.exception.message': Buffer.from('old'),
      },
    }),
    code: 'NO_FRAME',
  },
];

const user = userTensor();
const item = itemTensor();

export const REFUSED: readonly InputCase[] = [
  {
    ...REJECTED,
    name: 'NaN in a request tensor',
    send: odd({ requestTensors: [userTensor({ 5: Number.NaN })] }),
    code: 'NON_FINITE',
    says: ['user', 'element 5'],
  },
  {
    ...REJECTED,
    name: 'an infinity in a request tensor',
    send: odd({
      requestTensors: [user, fp32Tensor('history', [1, 32], Array(32).fill(Number.NEGATIVE_INFINITY))],
    }),
    code: 'NON_FINITE',
    says: ['history', 'element 0'],
  },
  {
    ...REJECTED,
    name: 'NaN in a candidate tensor',
    send: odd({ candidateTensors: [itemTensor(3, { 40: Number.NaN })] }),
    code: 'NON_FINITE',
    says: ['item', 'element 40'],
  },
  {
    ...REJECTED,
    name: 'an infinity in a candidate tensor',
    send: odd({ candidateTensors: [itemTensor(3, { 95: Number.POSITIVE_INFINITY })] }),
    code: 'NON_FINITE',
    says: ['item', 'element 95'],
  },
  {
    ...REJECTED,
    name: 'NaN in candidateValues',
    send: odd({ candidateValues: fp32Tensor('', [3], [1, Number.NaN, 1]).contents }),
    code: 'NON_FINITE',
    says: ['candidateValues', 'element 1'],
  },
  {
    ...REJECTED,
    name: 'NaN as a hint',
    send: odd({ hints: { depth: Number.NaN } }),
    code: 'NON_FINITE',
    says: ['"depth"'],
  },
  {
    ...REJECTED,
    name: 'NaN as the value',
    send: odd({ value: Number.NaN }),
    code: 'NON_FINITE',
    says: ['value'],
  },
  {
    ...REJECTED,
    name: 'fewer bytes than the shape says',
    send: odd({ requestTensors: [{ ...user, contents: user.contents.subarray(1) }] }),
    code: 'INVALID_TENSOR',
    says: ['"user"', '255 bytes', '256 bytes'],
  },
  {
    ...REJECTED,
    name: 'another shape than the bytes',
    send: odd({ candidateTensors: [{ ...item, shape: [4, 32] }], candidateIds: null }),
    code: 'INVALID_TENSOR',
    says: ['"item"', '384 bytes', '[4,32]', '512 bytes'],
  },
  {
    ...REJECTED,
    name: 'a negative dimension',
    send: odd({ requestTensors: [{ ...user, shape: [-64] }] }),
    code: 'INVALID_TENSOR',
    says: ['"user"', '[-64]'],
  },
  {
    ...REJECTED,
    name: 'a shape that overflows',
    send: odd({ requestTensors: [{ ...user, shape: Array(8).fill(0x7fff_ffff) }] }),
    code: 'INVALID_TENSOR',
    says: ['"user"', 'overflows'],
  },
  {
    ...REJECTED,
    name: 'an unknown datatype',
    send: odd({ requestTensors: [{ ...user, datatype: 'FLOAT' }] }),
    code: 'INVALID_TENSOR',
    says: ['"user"', '"FLOAT"', 'FP32'],
  },
  {
    ...REJECTED,
    name: 'a tensor twice',
    send: odd({ candidateTensors: [item, item] }),
    code: 'INVALID_TENSOR',
    says: ['candidateTensors', '"item"'],
  },
  {
    ...REJECTED,
    name: 'a tensor that the model has no input for',
    send: odd({ requestTensors: [user, { ...user, name: 'usr' }] }),
    code: 'INVALID_TENSOR',
    says: ['"usr"', 'user'],
  },
  {
    ...REJECTED,
    name: 'a required tensor missing',
    send: odd({ requestTensors: [] }),
    code: 'INVALID_TENSOR',
    says: ['"user"', 'missing'],
  },
  {
    ...REJECTED,
    name: 'fewer ids than candidates',
    send: odd({ candidateIds: idsTensor([11, 12]) }),
    code: 'INVALID_TENSOR',
    says: ['candidateIds', '[2]', '[3]'],
  },
  {
    ...REJECTED,
    name: 'more baseline candidates than candidates',
    send: odd({ baselineCandidates: 5 }),
    code: 'INVALID_REQUEST',
    says: ['baselineCandidates', 'got 5', '0 to 3'],
  },
  {
    ...REJECTED,
    name: 'an unknown model',
    send: odd({ model: 'rankr' }),
    code: 'UNKNOWN_MODEL',
    says: ['"rankr"', 'ranker'],
  },
  {
    ...REJECTED,
    name: 'an unknown version',
    send: odd({ model: 'ranker@9' }),
    code: 'UNKNOWN_MODEL',
    says: ['"ranker"', '"9"', '1, 2'],
  },
  {
    ...REJECTED,
    name: 'a requestId of no bytes',
    send: odd({ requestId: '' }),
    code: 'INVALID_REQUEST',
    says: ['requestId is empty'],
    named: () => '',
  },
  {
    ...REJECTED,
    name: 'a requestId of 129 bytes',
    send: odd({ requestId: 'r'.repeat(129) }),
    code: 'LIMIT_EXCEEDED',
    says: ['requestId', '128 bytes'],
    named: () => 'r'.repeat(129),
  },
  {
    ...REJECTED,
    name: 'a requestId that no result could carry',
    send: odd({ requestId: 'r'.repeat(900_000) }),
    code: 'LIMIT_EXCEEDED',
    says: ['requestId', '128 bytes'],
  },
  {
    ...REJECTED,
    name: 'texts that no result should repeat',
    send: odd({ model: 'm'.repeat(400_000), experiments: { layout: 'x'.repeat(400_000) } }),
    code: 'LIMIT_EXCEEDED',
    says: ['experiments', '256 bytes'],
  },
  {
    ...REJECTED,
    name: 'a negative deadline',
    send: odd({ deadlineMs: -5 }),
    code: 'INVALID_REQUEST',
    says: ['deadlineMs', 'got -5'],
  },
  {
    ...REJECTED,
    name: 'a priority out of range',
    send: odd({ priority: 12 }),
    code: 'INVALID_REQUEST',
    says: ['priority', 'got 12'],
  },
  {
    ...REJECTED,
    name: 'a partition that scored-results does not have',
    send: odd({ resultPartition: 99 }),
    code: 'INVALID_REQUEST',
    says: ['resultPartition', 'got 99', '0 to 3'],
  },
  {
    ...REJECTED,
    name: 'more tensor bytes than configured',
    send: odd({ baselineCandidates: 600, candidateIds: null, candidateTensors: [itemTensor(600)] }),
    code: 'LIMIT_EXCEEDED',
    says: ['ranker', '77056 bytes', '65536 bytes'],
  },
];

const TRACE = {
  traceparent: Buffer.from('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'),
  tracestate: Buffer.from('vendor=1'),
};

/** Odd, and yet nothing that a request could be refused for. */
export const SCORED_ALL_THE_SAME: readonly InputCase[] = [
  {
    ...SCORED,
    name: 'a key that is not the requestId',
    send: (id, { encode }) => ({ key: Buffer.from('another'), value: encode(requestFor(id)) }),
  },
  {
    ...SCORED,
    name: 'no key',
    send: (id, { encode }) => ({ key: null, value: encode(requestFor(id)) }),
  },
  {
    ...SCORED,
    name: 'headers: a trace, which the result carries on, and another one',
    send: (id, { encode }) => ({
      value: encode(requestFor(id)),
      headers: { ...TRACE, tenant: Buffer.from('somebody') },
    }),
    resultHeaders: TRACE,
  },
  {
    ...SCORED,
    name: 'a traceparent that is none, and very long',
    send: (id, { encode }) => ({
      value: encode(requestFor(id)),
      headers: { traceparent: Buffer.alloc(300_000, '0') },
    }),
    resultHeaders: {},
  },
  {
    ...SCORED,
    name: 'zero candidates',
    send: odd({ baselineCandidates: 0, candidateIds: idsTensor([]), candidateTensors: [itemTensor(0)] }),
    scores: 0,
  },
  {
    ...SCORED,
    name: 'zero candidates, no tensors',
    send: odd({ baselineCandidates: 0, candidateIds: null, requestTensors: [user], candidateTensors: [] }),
    scores: 0,
  },
  {
    ...SCORED,
    name: 'a newer version of the schema, with fields that nobody here knows',
    send: (id, wire) =>
      otherVersion(
        wire,
        (schema) => ({
          ...schema,
          fields: [
            { name: 'sessionId', type: ['null', 'string'], default: null },
            ...schema.fields,
            { name: 'retries', type: 'int', default: 0 },
          ],
        }),
        { ...requestFor(id), sessionId: 'session-1', retries: 2 },
      ),
  },
  {
    ...SCORED,
    name: 'an older version of the schema, without a field that has a default',
    send: (id, wire) =>
      otherVersion(
        wire,
        (schema) => ({
          ...schema,
          fields: schema.fields.filter(({ name }) => name !== 'explain' && name !== 'priority'),
        }),
        requestFor(id),
      ),
  },
];
