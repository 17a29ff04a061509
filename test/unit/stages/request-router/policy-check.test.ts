import { describe, expect, it } from 'vitest';
import { MillraceError } from '../../../../src/core/errors.ts';
import { REFERENCE_FLEET } from '../../../../src/core/policy/fleet.ts';
import { PolicyCheck, type PolicySupply } from '../../../../src/stages/request-router/policy-check.ts';
import { compileChecked, digestOf } from '../../../../src/wiring/policy-files.ts';

const GOOD = `
apiVersion: millrace/v1
kind: RoutingPolicy
name: feed
version: 1
signals: {sequenceLength: int}
tree:
  - {id: long, when: sequenceLength > 256, to: {accelerator: fpga, kernel: attention}}
  - {id: rest, to: {accelerator: gpu-a100, kernel: dense}}
tests:
  - {signals: {sequenceLength: 300}, leaf: long}
`;

/** The real checks of a router, and how often they had to compile. */
function start() {
  let compiled = 0;
  const check = new PolicyCheck({
    scope: 'policy/feed',
    digest: digestOf,
    compile: (bytes) => {
      compiled += 1;
      return compileChecked(bytes, REFERENCE_FLEET);
    },
  });
  return { check, compiled: () => compiled };
}

/** A store with this one text, whatever digest is asked for, and nobody who vouches for it. */
const only = (bytes: Uint8Array | undefined): PolicySupply => ({
  document: async () => bytes,
  envelope: async () => undefined,
});
const refOf = (bytes: Uint8Array) => ({ digest: digestOf(bytes), name: 'feed', version: 1 });

describe('a document', () => {
  it.each<{ what: string; text: string; reason: RegExp; lasting: boolean }>([
    { what: 'is blank', text: '', reason: /empty|expected|document/i, lasting: true },
    { what: 'is only white space', text: ' \n ', reason: /./, lasting: true },
    { what: 'is null', text: 'null', reason: /./, lasting: true },
    { what: 'is no policy', text: '[1, 2]', reason: /./, lasting: true },
    { what: 'is no text', text: '\u0000\u0001', reason: /./, lasting: true },
    {
      what: 'is too large',
      text: `${GOOD}# ${'x'.repeat(65_536)}`,
      reason: /allowed: 65536/,
      lasting: false,
    },
    { what: 'is nested too deep', text: '['.repeat(40) + ']'.repeat(40), reason: /./, lasting: true },
    {
      what: 'names an accelerator that is not there',
      text: GOOD.replace('fpga', 'abacus'),
      reason: /abacus/,
      lasting: true,
    },
    {
      what: 'fails its golden test',
      text: GOOD.replace('leaf: long', 'leaf: rest'),
      reason: /rest/,
      lasting: true,
    },
  ])('that $what is refused with its reason', async ({ text, reason, lasting }) => {
    const bytes = Buffer.from(text);
    const verdict = await start().check.check(refOf(bytes), only(bytes));
    if (verdict.status !== 'refused') throw new Error('it passed');
    expect(verdict.reason).toMatch(reason);
    expect(verdict.lasting).toBe(lasting);
  });

  it.each([
    ['is missing', undefined, /the store has no document sha256:/],
    ['is not that of its digest', Buffer.from(GOOD.replace('256', '255')), /digest/],
  ])('that %s is refused, for now', async (_name, bytes, reason) => {
    const { check } = start();
    const ref = refOf(Buffer.from(GOOD));
    expect(await check.check(ref, only(bytes))).toMatchObject({ status: 'refused', lasting: false });
    expect(await check.check(ref, only(bytes))).toMatchObject({ reason: expect.stringMatching(reason) });
    expect(check.known(ref)).toBeUndefined();
    expect((await check.check(ref, only(Buffer.from(GOOD)))).status).toBe('passed');
  });

  it('that passed is known from then on, with its bytes, without being compiled again', async () => {
    const { check, compiled } = start();
    const bytes = Buffer.from(GOOD);
    expect(check.known(refOf(bytes))).toBeUndefined();
    expect((await check.check(refOf(bytes), only(bytes))).status).toBe('passed');
    expect(check.known(refOf(bytes))?.status).toBe('passed');
    expect(check.evidenceOf(refOf(bytes))?.documents).toEqual(new Map([[digestOf(bytes), bytes]]));
    expect(compiled()).toBe(1);
  });

  it('that was refused for good is known as such', async () => {
    const { check, compiled } = start();
    const bytes = Buffer.from('null');
    await check.check(refOf(bytes), only(bytes));
    expect(check.known(refOf(bytes))).toMatchObject({ status: 'refused', lasting: true });
    expect(check.evidenceOf(refOf(bytes))).toBeUndefined();
    expect(compiled()).toBe(1);
  });

  it('that could not be checked, for no fault of its own, is refused for now', async () => {
    let isBroken = true;
    const check = new PolicyCheck({
      scope: 'policy/feed',
      digest: digestOf,
      compile: async (bytes) => {
        if (isBroken) throw new MillraceError('CLOSED', 'its thread ended');
        return compileChecked(bytes, REFERENCE_FLEET);
      },
    });
    const bytes = Buffer.from(GOOD);
    expect(await check.check(refOf(bytes), only(bytes))).toEqual({
      status: 'refused',
      reason: 'its thread ended',
      lasting: false,
    });
    isBroken = false;
    expect(check.known(refOf(bytes))).toBeUndefined();
    expect((await check.check(refOf(bytes), only(bytes))).status).toBe('passed');
  });

  it('that was not asked for lately is forgotten, one that was asked for is kept', async () => {
    const { check } = start();
    const texts = Array.from({ length: 6 }, (_, n) => Buffer.from(`${GOOD}# ${n}`));
    const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = texts;
    for (const bytes of texts) {
      await check.check(refOf(bytes), only(bytes));
      check.known(refOf(first));
    }
    expect(check.known(refOf(first))?.status).toBe('passed');
    expect(check.known(refOf(second))).toBeUndefined();
  });
});
