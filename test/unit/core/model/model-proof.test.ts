import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ControlCommand, makeControlCommand } from '../../../../src/contracts/records.ts';
import { catalogueOf, readCatalogue, writeCatalogue } from '../../../../src/core/model/catalogue.ts';
import {
  type FoundProof,
  type ModelProof,
  modelBody,
  modelProofRefusal,
  plainProof,
} from '../../../../src/core/model/model-proof.ts';
import type { PublishedModel } from '../../../../src/core/model/published-model.ts';
import { readPublishedModel } from '../../../../src/core/model/read-published-model.ts';
import { modelProof } from '../../../../src/stages/policy-controller/model-proofs.ts';
import { HOUR_MS, NOW_MS, type Person, person, ringOf, signed, verify } from '../control/keys.fixture.ts';
import { anyModel, publishedModel, sha256 } from './model.fixture.ts';

const ana = person('ana', { scopes: ['model/*'] });
const feed = person('feed', { scopes: ['policy/*'] });
const old = person('old', { scopes: ['*'], notAfter: NOW_MS - HOUR_MS });
const controller = person('controller', { role: 'controller', scopes: ['*'] });
const keys = ringOf(ana, feed, old, controller);
const strict = { keys, acceptUnsigned: false };
const none: ReadonlySet<string> = new Set();
const model = publishedModel();

const sent = (fields: Partial<ControlCommand> = {}): ControlCommand =>
  makeControlCommand({
    commandId: 'm-1',
    scope: 'model/ranker',
    type: 'PUBLISH_MODEL',
    body: Buffer.from(modelBody(model)),
    actor: 'ana',
    ...fields,
  });

function proofBy(by: Person, unsigned = sent()): ModelProof {
  const proof = modelProof(signed(unsigned, by), model, NOW_MS);
  if (proof === undefined) throw new Error('that has no proof');
  return proof;
}

/** Bytes are a Buffer's before, and an array's after. */
const plainOf = (proof: FoundProof): unknown => (typeof proof === 'object' ? plainProof(proof) : proof);

const refusal = (proof: FoundProof, { trust = strict, revoked = none, of = model } = {}) =>
  modelProofRefusal(trust, revoked, { model: of, proof }, sha256, verify);

describe('a model version at a worker', () => {
  it('that a person published is taken', () => {
    expect(refusal(proofBy(ana))).toBeUndefined();
  });

  it('is taken by a body that another client wrote, which then lies beside it', () => {
    const { files, ...head } = model;
    const body = JSON.stringify({ ...head, files: files.toReversed() }, null, 2);
    const proof = proofBy(ana, sent({ body: Buffer.from(body) }));
    expect(proof.body).toBe(body);
    expect(refusal(proof)).toBeUndefined();
    expect(proofBy(ana).body).toBeUndefined();
  });

  it.each<[string, FoundProof, RegExp]>([
    ['that nobody signed', undefined, /nobody signed it, and this worker takes nothing unsigned/],
    ['with anything for a proof', 'unreadable', /cannot be read/],
    ['of a key that nobody knows', proofBy(person('eve')), /eve.*not in the controller's key file/],
    ['of a key for policies', proofBy(feed), /may not sign for model\/ranker/],
    ['of a key that ran out', proofBy(old), /was valid until/],
    ['of a controller', proofBy(controller), /may not sign PUBLISH_MODEL/],
    [
      'of another command',
      proofBy(ana, sent({ type: 'PUBLISH_POLICY' })),
      /a PUBLISH_POLICY does not vouch for a model version/,
    ],
    [
      'of another family',
      proofBy(ana, sent({ scope: 'model/ads' })),
      /signed for model\/ads, not for model\/ranker/,
    ],
    [
      'of other files',
      proofBy(ana, sent({ body: Buffer.from(modelBody(publishedModel('4'))) })),
      /other files, or another place/,
    ],
    [
      'of another place',
      proofBy(ana, sent({ body: Buffer.from(modelBody({ ...model, source: '/elsewhere' })) })),
      /other files, or another place/,
    ],
    [
      'of a body that is none',
      proofBy(ana, sent({ body: Buffer.from('{}') })),
      /other files, or another place/,
    ],
    [
      'whose body was left out',
      { ...proofBy(ana, sent({ body: Buffer.from('{}') })), body: undefined },
      /does not fit/,
    ],
  ])('%s is not', (_name, proof, reason) => expect(refusal(proof)).toMatch(reason));

  it('that was moved or renamed in the store is not', () => {
    const proof = proofBy(ana);
    for (const of of [
      { ...model, source: '/elsewhere' },
      publishedModel('3', { 'config.yaml': 'format: 2' }),
    ])
      expect(refusal(proof, { of })).toMatch(/does not fit/);
    expect(refusal(proof, { of: { ...model, family: 'ads' } })).toMatch(/not for model\/ads/);
  });

  it('of a key that was revoked is not', () => {
    expect(refusal(proofBy(ana), { revoked: new Set(['ana']) })).toBe('the key ana is revoked');
  });

  it.each<[string, { keys: typeof keys; acceptUnsigned: boolean }, FoundProof, 'taken' | RegExp]>([
    ['unsigned, no keys', { keys: new Map(), acceptUnsigned: true }, undefined, 'taken'],
    ['signed, no keys', { keys: new Map(), acceptUnsigned: true }, proofBy(person('eve')), 'taken'],
    ['unsigned', { keys, acceptUnsigned: true }, undefined, 'taken'],
    [
      'badly signed',
      { keys, acceptUnsigned: true },
      proofBy(person('eve')),
      /not in the controller's key file/,
    ],
    ['no keys and no leave', { keys: new Map(), acceptUnsigned: false }, proofBy(ana), /worker has no key/],
  ])(
    'is taken as routers take policies where unsigned ones may pass: %s',
    (_name, trust, proof, expected) => {
      const reason = refusal(proof, { trust });
      if (expected === 'taken') expect(reason).toBeUndefined();
      else expect(reason).toMatch(expected);
    },
  );
});

describe('the proof of a model version', () => {
  it('is not of a command that nobody signed, nor of one with names that nobody reads', () => {
    expect(modelProof(sent(), model, NOW_MS)).toBeUndefined();
    const long = signed(sent({ commandId: 'x'.repeat(20_000) }), ana);
    expect(modelProof(long, model, NOW_MS)).toBeUndefined();
  });

  it('comes through the catalogue as it was', () => {
    const spaced = proofBy(ana, sent({ body: Buffer.from(`${modelBody(model)} `) }));
    for (const proof of [proofBy(ana), spaced]) {
      const catalogue = catalogueOf([{ model, publication: 1 }], { inUse: none, ever: none }, () => proof);
      const [version] = readCatalogue(writeCatalogue(catalogue))?.versions ?? [];
      expect(plainOf(version?.proof)).toEqual(plainOf(proof));
      expect(refusal(version?.proof)).toBeUndefined();
    }
  });

  it('that cannot be read takes no other version with it', () => {
    const text = JSON.stringify({
      versions: [
        { model, publication: 1, isNamed: false, proof: { command: 'anybody' } },
        { model: publishedModel('4'), publication: 2, isNamed: false },
      ],
    });
    expect(readCatalogue(text)?.versions.map(({ proof }) => proof)).toEqual(['unreadable', undefined]);
  });

  it('has a body that is read as the version, whatever the version', () => {
    fc.assert(
      fc.property(anyModel, (any: PublishedModel) => {
        expect(readPublishedModel(modelBody(any), sha256)).toEqual(any);
      }),
    );
  });
});
