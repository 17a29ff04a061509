import { existsSync } from 'node:fs';
import { Command, Option } from 'commander';
import { generateEd25519 } from '../adapters/system/ed25519.ts';
import { checkInstallation, checkKeyId, checkScopePattern } from '../config/key-file.ts';
import { withKeyId } from '../config/private-key-file.ts';
import { writeUserFile } from '../config/user-file.ts';
import { KEY_ROLES, type KeyRole } from '../core/control/key-ring.ts';
import { toSpki } from '../core/control/spki.ts';
import { MillraceError } from '../core/errors.ts';
import type { CliContext } from './context.ts';

interface KeygenFlags {
  role: KeyRole;
  scope: readonly string[];
  installation?: string;
  out?: string;
  json: boolean;
}

/** `millrace policy keygen <id>`: a pair of keys for signing commands. */
export function keygenCommand(context: CliContext): Command {
  return new Command('keygen')
    .description(
      'Make a key for signing commands: a private key file, and the entry for the key file of the controller',
    )
    .argument('<key-id>', 'name of the key, such as ana-2026; the log of decisions shows it')
    .addOption(new Option('--role <role>', 'whose key it is').choices(KEY_ROLES).default('person'))
    .addOption(
      new Option(
        '--scope <scope...>',
        'what it may sign for: policy/starter, policy/*, model/*, keys, *',
      ).default(['policy/*'], 'policy/*'),
    )
    .option(
      '--installation <name>',
      'signatures of the key have to name this installation, and count in no other that knows the key',
    )
    .option('--out <file>', 'where the private key goes (default: <key-id>.pem)')
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
The private key stays with its owner: only they can read the file, and nothing else is told of it. The file holds the key's id too, so --key
finds it whatever the file is called; a key that other tools made takes its id from the file's name, or from --key-id. The entry goes into the key file that
controller.keys names (MILLRACE_CONTROLLER_KEYS), then the controller is restarted. A person signs everything in the key's scopes; a
controller's key signs steps of a rollout and tuning only. To revoke keys takes the scope keys.

To replace a key, add the new one beside it, sign with that from then on, and revoke the old one:
millrace control send --type REVOKE_KEY --scope keys --body '{"keyId": "ana-2025"}' --key ana-2026.pem

Examples:
  millrace policy keygen ana-2026
  millrace policy keygen ben-2026 --scope 'policy/*' keys --json
  openssl genpkey -algorithm ed25519 -out ci.pem      (a key that other tools made works as well)`,
    )
    .action((keyId: string, flags: KeygenFlags) => keygen(context, keyId, flags));
}

function keygen(context: CliContext, name: string, flags: KeygenFlags): void {
  const keyId = checkKeyId(name);
  const scopes = flags.scope.map(checkScopePattern);
  const file = flags.out ?? `${keyId}.pem`;
  if (existsSync(file))
    throw new MillraceError('INVALID_CONFIG', 'the file is there already, and a key is never overwritten', {
      value: file,
      advice: 'Give the new key another id, or another --out',
    });
  const { privateKeyPem, publicKey } = generateEd25519();
  writeUserFile(file, withKeyId(privateKeyPem, keyId), { mode: 0o600, isNew: true });
  const entry = {
    keyId,
    role: flags.role,
    publicKey: Buffer.from(toSpki(publicKey)).toString('base64'),
    scopes,
    ...(flags.installation === undefined ? {} : { installation: checkInstallation(flags.installation) }),
  };
  context.stdout.write(
    flags.json
      ? `${JSON.stringify({ privateKey: file, entry })}\n`
      : `# The private key is in ${file}: keep it. This is for the key file that controller.keys names:\n${entryText(entry)}`,
  );
}

function entryText(entry: {
  keyId: string;
  role: string;
  publicKey: string;
  scopes: readonly string[];
  installation?: string;
}): string {
  const scopes = entry.scopes.map((scope) => JSON.stringify(scope)).join(', ');
  return [
    'keys:',
    `  - keyId: ${entry.keyId}`,
    `    role: ${entry.role}`,
    `    publicKey: ${entry.publicKey}`,
    `    scopes: [${scopes}]`,
    ...(entry.installation === undefined ? [] : [`    installation: ${entry.installation}`]),
    '',
  ].join('\n');
}
