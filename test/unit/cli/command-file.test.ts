import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commandText, isCommandText, readCommandText } from '../../../src/cli/command-file.ts';
import { COMMAND_TYPES, type ControlCommand, type Signature } from '../../../src/contracts/records.ts';
import { MillraceError } from '../../../src/core/errors.ts';

const text = fc.string({ minLength: 1, unit: 'grapheme' });
const signature: fc.Arbitrary<Signature | null> = fc.option(
  fc.record({
    keyId: text,
    version: fc.nat(),
    notAfter: fc.nat({ max: 4_000_000_000_000 }),
    nonce: text,
    bytes: fc.uint8Array({ minLength: 64, maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  }),
  { nil: null },
);
const command: fc.Arbitrary<ControlCommand> = fc.record({
  commandId: text,
  scope: text,
  type: fc.constantFrom(...COMMAND_TYPES),
  actor: fc.string(),
  body: fc.string({ unit: 'grapheme' }).map((body) => Buffer.from(body)),
  signature,
  coSignature: signature,
});

describe('a command file', () => {
  it('holds a command exactly, and is told from a policy', () => {
    fc.assert(
      fc.property(command, (written) => {
        const file = commandText(written);
        expect(isCommandText(file)).toBe(true);
        expect(readCommandText(file, 'c.json')).toEqual(written);
      }),
    );
    expect(isCommandText('apiVersion: millrace/v1')).toBe(false);
    expect(isCommandText('{"apiVersion": "millrace/v1", "kind": "RoutingPolicy"}')).toBe(false);
  });

  it('holds no body that is no text', () => {
    const binary = { ...fc.sample(command, 1)[0], body: Buffer.from([0xff, 0x00]) } as ControlCommand;
    expect(() => commandText(binary)).toThrow(/no text in UTF-8.*got "?2 bytes.*without --out/);
  });

  it('is refused in words, whatever it holds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (content) => {
        expect(() => readCommandText(content, 'c.json')).toThrow(MillraceError);
      }),
    );
  });
});
