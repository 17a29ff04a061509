import { Command, Option } from 'commander';
import { readUserFile } from '../config/user-file.ts';
import type { CommandType } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { SUPPORTED_TYPES } from '../stages/policy-controller/read-command.ts';
import { readCommandText } from './command-file.ts';
import type { CliContext } from './context.ts';
import { controlEventsCommand } from './control-events.ts';
import { controlReplayCommand } from './control-replay.ts';
import {
  BEFORE_PASSED,
  dispatchCommand,
  newCommand,
  type SendFlags,
  sendCommand,
  withSendOptions,
} from './send-command.ts';

interface ControlSendFlags extends SendFlags {
  type?: CommandType;
  scope?: string;
  body?: string;
  bodyFile?: string;
}

/** `millrace control send|events|replay`: the control topic and its log. */
export function controlCommand(context: CliContext): Command {
  return new Command('control')
    .description('The control topic: send any command, watch what the controller decides, derive it again')
    .addCommand(sendSubcommand(context))
    .addCommand(controlEventsCommand(context))
    .addCommand(controlReplayCommand(context));
}

function sendSubcommand(context: CliContext): Command {
  const command = new Command('send')
    .description('Send a command to the controller, and show what it made of it')
    .argument('[file]', 'a command that --out wrote, signed or not; in place of --type and --scope')
    .addOption(new Option('--type <type>', 'what to do').choices(SUPPORTED_TYPES))
    .option('--scope <scope>', 'what it acts on, such as policy/starter')
    .option('--body <text>', 'what the command needs; docs/clients/control.md says what, by type')
    .option('--body-file <file>', 'the same, from a file')
    .option('--before-passed', `PROMOTE ${BEFORE_PASSED}`, false);
  return withSendOptions(command)
    .addHelpText(
      'after',
      `
millrace policy publish and millrace policy rollout send the usual ones; this is for the others, and for command files. A command acts once:
sending a file again shows what was decided the first time, whoever signed it since.

Needs a running installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL. Exit code: 0 accepted, 1 refused by the controller or not
answered in time, 2 not sent for something that you can correct.

Examples:
  millrace control send promote.json
  millrace control send --type RESEED --scope policy/starter --key ana-2026.pem
  millrace control send --type REVOKE_KEY --scope keys --body '{"keyId": "ana-2025"}' --key ana-2026.pem
  millrace control send --type TUNE --scope policy/starter --body '{"name": "sparse-floor", "value": 0.65}' --json`,
    )
    .action((file: string | undefined, flags: ControlSendFlags) => send(context, file, flags));
}

async function send(context: CliContext, file: string | undefined, flags: ControlSendFlags): Promise<void> {
  if (file === undefined) {
    await dispatchCommand(context, newCommand(context, fieldsOf(flags)), flags);
    return;
  }
  const given = [flags.type, flags.scope, flags.body, flags.bodyFile, flags.key, flags.out];
  if (given.some((flag) => flag !== undefined))
    throw new MillraceError('INVALID_CONFIG', 'a command file is sent as it is', {
      allowed: 'no --type, --scope, --body, --body-file, --key or --out beside it',
      advice: 'To sign it: millrace policy sign',
    });
  await sendCommand(context, readCommandText(readUserFile(file).toString('utf8'), file), flags, {
    isKnown: true,
  });
}

function fieldsOf(flags: ControlSendFlags): { scope: string; type: CommandType; body: Buffer | string } {
  const { type, scope, body, bodyFile } = flags;
  if (type === undefined || scope === undefined)
    throw new MillraceError('INVALID_CONFIG', 'say what to send', {
      allowed: 'a command file, or --type and --scope',
    });
  if (body !== undefined && bodyFile !== undefined)
    throw new MillraceError('INVALID_CONFIG', 'the body is given twice', {
      allowed: 'either --body or --body-file',
    });
  return { type, scope, body: bodyFile === undefined ? (body ?? '') : readUserFile(bodyFile) };
}
