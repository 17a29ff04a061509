import { randomUUID } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { type Command, Option } from 'commander';
import { ed25519Signer } from '../adapters/system/ed25519.ts';
import { signCommand } from '../client/sign-command.ts';
import { checkInstallation, checkKeyId } from '../config/key-file.ts';
import { loadSettings } from '../config/load-settings.ts';
import { keyIdOf } from '../config/private-key-file.ts';
import { fileError } from '../config/user-file.ts';
import type { ControlCommand, Signature } from '../contracts/records.ts';
import { VALIDITY_MS_MAX } from '../core/control/verify-command.ts';
import { MillraceError } from '../core/errors.ts';
import type { Signer } from '../ports/signatures.ts';
import type { CliContext } from './context.ts';
import { duration } from './flags.ts';

export interface SigningFlags {
  key?: string;
  keyId?: string;
  installation?: string;
  validFor: number;
}

const VALID_FOR_MS = 3_600_000;

/** The options by which a command is signed. */
export function withSigningOptions(command: Command): Command {
  return command
    .option('--key <file>', 'sign with this private key (PEM), as millrace policy keygen writes it')
    .option(
      '--key-id <id>',
      "id of the key in the controller's key file; else the one that the file holds, or the file's name without .pem",
    )
    .option(
      '--installation <name>',
      'installation that the command is for, where the key has one in the key file (default: the setting installation)',
    )
    .addOption(
      new Option('--valid-for <time>', 'how long the signature is valid, at most 24h')
        .argParser(duration)
        .default(VALID_FOR_MS, '1h'),
    );
}

/** The signer that the flags name. @throws MillraceError INVALID_CONFIG where there is no such key, or --key-id has no --key */
export function signerOf(context: CliContext, flags: SigningFlags): Signer | undefined {
  if (flags.key === undefined) {
    if (flags.keyId === undefined) return undefined;
    throw new MillraceError('INVALID_CONFIG', '--key-id names the key of --key', {
      allowed: 'both, or neither',
    });
  }
  const privateKeyPem = readPrivateKeyFile(context, flags.key);
  const named = flags.keyId ?? keyIdOf(privateKeyPem.toString('latin1'));
  const keyId = checkKeyId(named ?? basename(flags.key).replace(/\.(pem|key)$/, ''));
  const installation = flags.installation ?? loadSettings(context.environment).settings.installation;
  return ed25519Signer({
    keyId,
    privateKeyPem,
    ...(installation === '' ? {} : { installation: checkInstallation(installation) }),
  });
}

/** Signs with a fresh nonce, from now on for as long as the flags say. */
export function signNow(
  context: CliContext,
  command: ControlCommand,
  signer: Signer,
  { validFor }: SigningFlags,
): Signature {
  if (validFor > VALIDITY_MS_MAX)
    throw new MillraceError(
      'INVALID_CONFIG',
      'the controller would refuse a signature that is valid for so long',
      {
        value: `${validFor / 3_600_000} h`,
        allowed: '--valid-for up to 24h',
      },
    );
  return signCommand(command, signer, {
    notAfterMs: context.clock.wallMs() + validFor,
    nonce: randomUUID(),
  });
}

const OTHERS = 0o077;

function readPrivateKeyFile(context: CliContext, file: string): Buffer {
  try {
    const bytes = readFileSync(file);
    if ((statSync(file).mode & OTHERS) !== 0)
      context.stderr.write(`millrace: warning: others may read the private key ${file}; chmod 600 ${file}\n`);
    return bytes;
  } catch (error) {
    const advice = 'Correct --key, or make a key with `millrace policy keygen`';
    throw fileError('the private key cannot be read', file, error, 'read', advice);
  }
}
