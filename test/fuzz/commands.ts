import { createHash, createPrivateKey } from 'node:crypto';
import { ed25519PublicKey, ed25519Signer } from '../../src/adapters/system/ed25519.ts';
import { signCommand } from '../../src/client/sign-command.ts';
import { type ControlCommand, makeControlCommand } from '../../src/contracts/records.ts';
import type { ControlKey } from '../../src/core/control/key-ring.ts';
import { manifestText } from '../../src/core/model/published-model.ts';
import type { Generator } from '../../src/core/random/generator.ts';
import type { Signer } from '../../src/ports/signatures.ts';
import { oneIn, pick } from './pick.ts';

const NAMES = ['feed', 'feed', 'feed', 'feed', 'feed', 'feed', 'toString', 'a.b'];
const SCOPES = [
  ...NAMES.map((name) => `policy/${name}`),
  'model/ranker',
  'model/__proto__',
  'keys',
  '',
  'policy/__proto__',
  'policy/',
  '__proto__',
  'x\u0000y',
];
const ACTORS = ['ana', 'ci', '', '__proto__', 'ü\u{1F600}', 'rollout', 'a\nb'];
export const TYPES = [
  ...[
    'PUBLISH_POLICY',
    'PUBLISH_POLICY',
    'PUBLISH_MODEL',
    'START',
    'START',
    'START',
    'START',
    'PROMOTE',
    'PROMOTE',
    'PROMOTE',
  ],
  ...[
    'PROMOTE',
    'HOLD',
    'HOLD',
    'ABORT',
    'ROLL_BACK',
    'ROLL_BACK',
    'RESEED',
    'REVOKE_KEY',
    'SET_TARGETS',
    'UNKNOWN',
  ],
] as const satisfies readonly ControlCommand['type'][];

const LEAVES = ['wide', 'toString'];

/** A policy of few branches: its cost is not what is looked at here. */
export function policyText(draw: Generator, name: string, version: number): string {
  const leaf = pick(draw, LEAVES);
  const when = pick(draw, [
    'a > 1',
    'a > tune("edge", 1, min: 0, max: 4, step: 1)',
    'a > 1 && b != 2',
    'a > tune("toString", 8, min: 1, max: 64, step: 10%)',
  ]);
  const rollout = pick(draw, [
    '',
    ', "rollout": {"shadow": "0s", "canary": {"percent": 5, "dwell": "0s"}, "ramp": [50], "rampDwell": "0s"}',
    ', "rollout": {"shadow": "1s", "canary": {"percent": 50, "dwell": "1s"}, "ramp": [], "unit": "requestId"}',
  ]);
  const models = oneIn(draw, 8) ? `, "models": {"ranker": ${1 + draw.below(4)}}` : '';
  const expect = oneIn(draw, 8) ? `, "expect": {"leaves": ["${leaf}"]}` : '';
  return `{"apiVersion": "millrace/v1", "kind": "RoutingPolicy", "name": "${name}", "version": ${version}, "signals": {"a": "double", "b": "int"}, "tree": [{"id": "${leaf}", "when": '${when}', "to": {"accelerator": "cpu", "kernel": "dense", "memory": "host"}}, {"id": "node", "to": {"accelerator": "gpu-a100", "kernel": "dense"}}]${rollout}${expect}${models}}`;
}

const digestOf = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;

/** A version whose files are one of two sets, so that one that is published again is often another. */
function modelText(draw: Generator): string {
  const files = ['config.yaml', pick(draw, ['model.onnx', '__proto__', 'toString'])]
    .map((name) => ({ name, bytes: 1 + draw.below(2), digest: digestOf(name) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return JSON.stringify({
    family: pick(draw, ['ranker', 'ranker', 'constructor']),
    version: String(1 + draw.below(4)),
    source: pick(draw, ['/models/ranker', 'https://models.example/ranker/', 'file:///models', '../models']),
    digest: oneIn(draw, 8) ? digestOf('') : digestOf(manifestText(files)),
    files,
  });
}

const BODIES = {
  START: [
    '{"version": V}',
    '{"version": V, "autoPromote": true}',
    '{"version": V, "waive": {"leaves": ["node", "rest"]}}',
    '{"version": V, "waive": {"leaves": ["toString"]}, "autoRollback": false, "autoPromote": true}',
  ],
  PROMOTE: ['', '{}', '{"to": "live"}', '{"overHold": true}', '{"to": "live", "overHold": true}'],
  HOLD: ['', '{"reason": "latency"}', '{"reason": ""}', '{"reason": "__proto__"}'],
  ABORT: ['', '{"reason": "enough"}'],
  ROLL_BACK: ['', 'V', '{"version": V}', '{}', ' V\n'],
  TUNE: [
    '{"name": "edge", "value": V}',
    '{"name": "toString", "value": 10}',
    '{"name": "constructor", "value": 1}',
    '{"name": "edge", "value": 1.5e0}',
  ],
  REVOKE_KEY: [
    '{"keyId": "nobody"}',
    '{"keyId": "ana"}',
    '{"keyId": "ben"}',
    '{"keyId": "robot"}',
    '{"keyId": "toString"}',
    '{"keyId": "__proto__"}',
  ],
} as const;

const ODD_BODIES = [
  ...[
    'null',
    '[]',
    '1',
    '"x"',
    '{"__proto__": {"version": 1}}',
    '{"__proto__": {"toString": 1}, "version": 1}',
    '{"constructor": {"prototype": {"x": 1}}}',
  ],
  ...[
    '{"version": 1e999}',
    '{"version": -1}',
    '{"version": 9007199254740993}',
    '{"version": 1, "version": 2}',
    '{"version": "1"}',
    '{"version": 1.5}',
  ],
  ...[
    '{"reason": "\\ud800"}',
    '{"reason": "\\u0000"}',
    '\ufeff{}',
    '{}{}',
    '{"a": 1,}',
    '{"reason": null}',
    '{"waive": null, "version": 2}',
    '{"version": 1, "extra": true}',
  ],
  ...[
    '{"name": "edge", "value": 1e308}',
    '{"name": "", "value": 0}',
    '{"name": "edge", "value": null}',
    '{"to": "toString"}',
    '{"to": "next"}',
    '0x10',
    '999999999',
    '9999999999',
  ],
];

/** Newest version published under a name; 0 where none was. */
export type Newest = (name: string) => number;

function bodyOf(draw: Generator, type: ControlCommand['type'], name: string, newest: Newest): string {
  const isNext = type === 'PUBLISH_POLICY' && !oneIn(draw, 4);
  const version = isNext ? newest(name) + 1 : oneIn(draw, 3) ? 1 + draw.below(6) : newest(name);
  if (type === 'PUBLISH_POLICY') return policyText(draw, name, version);
  if (type === 'PUBLISH_MODEL' && !oneIn(draw, 8)) return modelText(draw);
  if (oneIn(draw, 12)) return pick(draw, ODD_BODIES);
  if (oneIn(draw, 100)) return huge(draw, newest(name));
  return Object.hasOwn(BODIES, type)
    ? pick<string>(draw, BODIES[type as keyof typeof BODIES]).replaceAll('V', String(version))
    : '';
}

/** Up to what a record may hold, and more. */
function huge(draw: Generator, version: number): string {
  const many = 1 << (6 + draw.below(8));
  switch (draw.below(5)) {
    case 0:
      return `${'['.repeat(many)}${']'.repeat(many)}`;
    case 1:
      return `{"version": ${version}, "waive": {"leaves": [${Array.from({ length: many }, (_, at) => pick(draw, ['"node"', `"leaf-${at}"`])).join()}]}}`;
    case 2:
      return `{"${pick(draw, ['reason', 'keyId', 'name'])}": "${'x'.repeat(32 * many)}"}`;
    case 3:
      return `{${Array.from({ length: many }, (_, at) => `"k${at}": ${at}`).join()}}`;
    default:
      return `{"name": "edge", "value": ${'9'.repeat(many)}}`;
  }
}

export function commandOf(draw: Generator, sequence: number, newest: Newest): ControlCommand {
  const type = oneIn(draw, 60) ? 'TUNE' : pick(draw, TYPES);
  const name = pick(draw, NAMES);
  let body = bodyOf(draw, type, name, newest);
  if (oneIn(draw, 16)) body = damageText(draw, body);
  const own = ownScope(type, name);
  const command = makeControlCommand({
    commandId: oneIn(draw, 20)
      ? pick(draw, ['', '__proto__', 'toString', `c-${draw.below(sequence + 1)}`])
      : `c-${sequence}`,
    scope: oneIn(draw, 16) ? pick(draw, SCOPES) : own,
    type,
    body: Buffer.from(body),
    actor: pick(draw, ACTORS),
  });
  if (!oneIn(draw, 300)) return command;
  return { ...command, [pick(draw, ['commandId', 'scope', 'actor'])]: 'x'.repeat(1 << draw.below(20)) };
}

function ownScope(type: ControlCommand['type'], name: string): string {
  if (type === 'REVOKE_KEY') return 'keys';
  return type === 'PUBLISH_MODEL' ? 'model/ranker' : `policy/${name}`;
}

/** An earlier command once more, with something else in one place. Policies are not read anew for it. */
export function variantOf(draw: Generator, earlier: ControlCommand, sequence: number): ControlCommand {
  const again = { ...earlier, commandId: `c-${sequence}` };
  switch (draw.below(6)) {
    case 0:
      return { ...again, scope: pick(draw, SCOPES) };
    case 1:
      return earlier.type === 'PUBLISH_POLICY' ? again : { ...again, type: pick(draw, TYPES) };
    case 2:
      return { ...again, commandId: earlier.commandId };
    default:
      if (earlier.type === 'PUBLISH_POLICY')
        return { ...again, type: pick(draw, ['START', 'ABORT', 'HOLD']) };
      return { ...again, body: Buffer.from(damageText(draw, earlier.body.toString())) };
  }
}

const PIECES = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\u0000',
  '1e999',
  'null',
  '__proto__',
  '\\u0000',
  '-',
  '\n',
  '\u{1F600}',
  '&a ',
  '*a',
  '!!x ',
];

function damageText(draw: Generator, text: string): string {
  const at = draw.below(text.length + 1);
  const until = Math.min(text.length, at + draw.below(6));
  return text.slice(0, at) + (oneIn(draw, 3) ? '' : pick(draw, PIECES)) + text.slice(until);
}

export interface Person {
  readonly key: ControlKey;
  readonly signer: Signer;
}

const PKCS8_OF_ED25519 = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The same key in every run. */
function personOf(keyId: string, seed: number, fields: Partial<ControlKey> = {}): Person {
  const der = Buffer.concat([PKCS8_OF_ED25519, Buffer.alloc(32, seed)]);
  const privateKeyPem = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    .export({ format: 'pem', type: 'pkcs8' })
    .toString();
  const key: ControlKey = {
    keyId,
    role: 'person',
    publicKey: ed25519PublicKey(privateKeyPem),
    scopes: ['*'],
    person: undefined,
    installation: undefined,
    notBefore: undefined,
    notAfter: undefined,
    ...fields,
  };
  return { key, signer: ed25519Signer({ keyId, privateKeyPem, installation: key.installation }) };
}

export const PEOPLE: readonly Person[] = [
  personOf('ana', 1),
  personOf('ben', 2, { scopes: ['policy/*', 'keys'] }),
  personOf('toString', 3, { scopes: ['policy/feed'] }),
  personOf('robot', 4, { role: 'controller' }),
];

const STRANGER = personOf('ana', 9);

/** What was really signed: nothing else may be accepted. */
export class Signing {
  readonly #draw: Generator;
  readonly #signed = new Set<string>();
  #nonces = 0;

  constructor(draw: Generator) {
    this.#draw = draw;
  }

  /** Mostly signed as it should be; changed afterwards, by a stranger, by two, or not at all otherwise. */
  sign(command: ControlCommand, nowMs: number): ControlCommand {
    const draw = this.#draw;
    const signature = (): ControlCommand['signature'] => {
      const { signer, key } = oneIn(draw, 20) ? STRANGER : pick(draw, PEOPLE);
      const validMs = oneIn(draw, 10)
        ? pick(draw, [60_000, -1, 90_000_000, 0])
        : pick(draw, [3_600_000, 86_400_000]);
      const nonce = oneIn(draw, 8) ? pick(draw, ['n-1', 'n-2', '', 'x'.repeat(200)]) : `n-${this.#nonces++}`;
      const made = signCommand(command, signer, { notAfterMs: nowMs + validMs, nonce });
      if (signer !== STRANGER.signer) this.#signed.add(saying(command, made));
      return oneIn(draw, 20)
        ? { ...made, keyId: pick(draw, ['ben', 'toString', '__proto__', key.keyId]) }
        : made;
    };
    const first = oneIn(draw, 16) ? null : signature();
    const second = oneIn(draw, 5) ? signature() : null;
    const whole = { ...command, signature: first, coSignature: second };
    return oneIn(draw, 12) ? changed(draw, whole) : whole;
  }

  wasSigned(command: ControlCommand): boolean {
    return [command.signature, command.coSignature].every(
      (each) => each === null || this.#signed.has(saying(command, each)),
    );
  }
}

function saying(
  { commandId, scope, type, body }: ControlCommand,
  { keyId, notAfter, nonce, version }: NonNullable<ControlCommand['signature']>,
): string {
  return JSON.stringify([commandId, scope, type, body.toString('latin1'), keyId, notAfter, nonce, version]);
}

function changed(draw: Generator, command: ControlCommand): ControlCommand {
  const { signature } = command;
  switch (draw.below(7)) {
    case 0:
      return { ...command, body: Buffer.from(damageText(draw, command.body.toString())) };
    case 1:
      return { ...command, scope: pick(draw, SCOPES) };
    case 2:
      return { ...command, type: pick(draw, TYPES) };
    case 3:
      return { ...command, commandId: `${command.commandId}x` };
    case 4:
      return signature === null
        ? command
        : { ...command, signature: { ...signature, notAfter: signature.notAfter + 1 } };
    case 5:
      return signature === null
        ? command
        : { ...command, signature: { ...signature, bytes: signature.bytes.subarray(draw.below(65)) } };
    default:
      return { ...command, signature: command.coSignature, coSignature: signature };
  }
}
