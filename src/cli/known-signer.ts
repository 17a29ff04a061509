import { existsSync } from 'node:fs';
import { ed25519Verifier } from '../adapters/system/ed25519.ts';
import { readKeyFile } from '../config/key-file.ts';
import { loadSettings } from '../config/load-settings.ts';
import { MillraceError } from '../core/errors.ts';
import type { Signer } from '../ports/signatures.ts';
import type { CliContext } from './context.ts';

const PROBE = Buffer.from('millrace: does this key sign as the key file says?');

/**
 * Before a signature is written to a file that others then sign or send: where the key file of the installation is at hand, it must know the key.
 * @throws MillraceError INVALID_CONFIG where the controller would refuse the signature
 */
export function refuseUnknownSigner({ environment, stderr }: CliContext, { keyId, sign }: Signer): void {
  const { keys: file } = loadSettings(environment).settings.controller;
  if (file === '') return;
  if (!existsSync(file)) {
    stderr.write(
      `millrace: ${file}, which MILLRACE_CONTROLLER_KEYS names, is not here: whether it knows the key ${keyId} is not checked\n`,
    );
    return;
  }
  const ring = readKeyFile(file);
  const key = ring.get(keyId);
  if (key === undefined)
    throw new MillraceError('INVALID_CONFIG', `${file} has no key of this id; nothing was written`, {
      value: keyId,
      allowed: [...ring.keys()].join(', '),
      advice: 'Name the id that the key has there with --key-id, or sign with another --key',
    });
  if (ed25519Verifier().verify(key.publicKey, PROBE, sign(PROBE))) return;
  const own = [...ring.values()].find((each) => ed25519Verifier().verify(each.publicKey, PROBE, sign(PROBE)));
  throw new MillraceError('INVALID_CONFIG', `another key has this id in ${file}; nothing was written`, {
    value: keyId,
    advice:
      own === undefined
        ? 'Sign with the key that has it, or put this one into the key file under an id of its own'
        : `There this key is called ${own.keyId}: add --key-id ${own.keyId}`,
  });
}
