import { Command } from 'commander';
import { readUserFile } from '../config/user-file.ts';
import type { ControlCommand } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { commandText, isCommandText, readCommandText } from './command-file.ts';
import type { CliContext } from './context.ts';
import { refuseUnknownSigner } from './known-signer.ts';
import { readValidPolicy } from './policy-check.ts';
import { newCommand, writeCommand } from './send-command.ts';
import { type SigningFlags, signerOf, signNow, withSigningOptions } from './signing.ts';

interface SignFlags extends SigningFlags {
  out?: string;
  json: boolean;
}

/** `millrace policy sign <file>`: a signature without sending anything; of a command that is signed already, the second one. */
export function signCommandCommand(context: CliContext): Command {
  const command = new Command('sign')
    .description('Sign a policy, or co-sign a command that somebody else signed; nothing is sent')
    .argument('<file>', 'a policy, or a command that --out wrote');
  return withSigningOptions(command)
    .option('--out <file>', 'where the signed command goes (default: standard output)')
    .option('--json', 'print one JSON object about what was written to --out', false)
    .addHelpText(
      'after',
      `
A policy becomes the command that publishes it, signed; it is checked first. A command file gets the signature that it lacks: the first,
or, as a second person, the co-signature; what it does is shown before. Both signatures must be valid when the command arrives: sign within
--valid-for of each other, then send it with millrace control send <file>. What was sent is decided: a signature that comes later counts for
nothing, and the command must be made anew. This needs no installation.

Examples:
  millrace policy sign my-policy.yaml --key ana-2026.pem --out publish.json
  millrace policy rollout promote starter --key ana-2026.pem --out promote.json
  millrace policy sign promote.json --key ben-2026.pem --out promote.json
  millrace control send promote.json`,
    )
    .action((file: string, flags: SignFlags) => sign(context, file, flags));
}

function sign(context: CliContext, file: string, flags: SignFlags): void {
  const signer = signerOf(context, flags);
  if (signer === undefined)
    throw new MillraceError('INVALID_CONFIG', 'say which key signs', {
      allowed: '--key <file>',
      advice: 'Make one with `millrace policy keygen`',
    });
  refuseUnknownSigner(context, signer);
  const command = commandOf(context, file);
  if (command === undefined) return;
  const slot = freeSlot(command, signer.keyId);
  context.stderr.write(
    `millrace: ${slot === 'signature' ? 'signing' : 'co-signing'} ${describeCommand(command)}\n`,
  );
  const signed = { ...command, [slot]: signNow(context, command, signer, flags) };
  if (flags.out === undefined) context.stdout.write(commandText(signed));
  else writeCommand(context, signed, flags.out, flags);
}

function commandOf(context: CliContext, file: string): ControlCommand | undefined {
  const text = readUserFile(file).toString('utf8');
  if (isCommandText(text)) return readCommandText(text, file);
  const policy = readValidPolicy(context, file);
  if (policy === undefined) return undefined;
  return newCommand(context, { scope: `policy/${policy.name}`, type: 'PUBLISH_POLICY', body: policy.bytes });
}

function freeSlot({ signature, coSignature }: ControlCommand, keyId: string): 'signature' | 'coSignature' {
  if (signature === null) return 'signature';
  if (signature.keyId === keyId)
    throw new MillraceError('INVALID_COMMAND', 'the command is signed with this key already', {
      value: keyId,
      advice: 'A co-signature is of another person',
    });
  if (coSignature === null) return 'coSignature';
  throw new MillraceError('INVALID_COMMAND', 'the command has both signatures already', {
    value: `${signature.keyId}, ${coSignature.keyId}`,
  });
}

const BODY_SHOWN = 200;

function describeCommand({ type, scope, body, commandId }: ControlCommand): string {
  const text = body.toString('utf8');
  const shown = text.length <= BODY_SHOWN ? JSON.stringify(text) : `${text.length} characters, see the file`;
  return `${type} of ${scope}, body ${shown}, command ${commandId}`;
}
