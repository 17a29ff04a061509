import { type InputCase, odd, type SentRecord, type Wire } from './input-case.ts';
import {
  encoder,
  idsTensor,
  itemTensor,
  type RecordSchema,
  readSchema,
  requestFor,
  userTensor,
} from './stock-client.ts';

const SCORED = { outcome: 'SCORED', scores: 3 } as const;

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
    send: odd({
      baselineCandidates: 0,
      candidateIds: null,
      requestTensors: [userTensor()],
      candidateTensors: [],
    }),
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
