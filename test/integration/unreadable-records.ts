import { type InputCase, odd, raw, type SentRecord, type Wire } from './input-case.ts';
import { encoder, frame, readSchema, requestFor, varint } from './stock-client.ts';

const DEAD = { outcome: 'DEAD_LETTERED' } as const;
const NO_SUCH_ID = 0x7fff_fff0;
const GARBAGE = Buffer.from('not a frame at all');

/** The present schema with one more field in front, written by somebody who means harm. */
async function bomb(wire: Wire, items: 'null' | 'int', count: number): Promise<SentRecord> {
  const schema = readSchema('score-request.v1');
  const fields = [{ name: 'bomb', type: { type: 'array', items } }, ...schema.fields];
  const id = await wire.stock.register(`${wire.foreignSubject}-${items}`, { ...schema, fields });
  return { value: Buffer.concat([frame(id), varint(count)]) };
}

/** Records that no reader can make sense of. */
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
