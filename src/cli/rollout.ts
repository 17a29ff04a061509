import { Command } from 'commander';
import type { CommandType } from '../contracts/records.ts';
import type { CliContext } from './context.ts';
import { count } from './flags.ts';
import { scopeOfPolicy } from './policy-name.ts';
import { rolloutStatusCommand } from './rollout-status.ts';
import {
  BEFORE_PASSED,
  dispatchCommand,
  newCommand,
  type SendFlags,
  withSendOptions,
} from './send-command.ts';

/** `millrace policy rollout …`: a published policy on its way to live. */
export function rolloutCommand(context: CliContext): Command {
  return new Command('rollout')
    .description(
      'The way of a published policy to live: shadow, canary, ramp; see where it stands, and step in',
    )
    .addCommand(rolloutStatusCommand(context))
    .addCommand(startCommand(context))
    .addCommand(promoteCommand(context))
    .addCommand(holdCommand(context))
    .addCommand(abortCommand(context))
    .addCommand(rollbackCommand(context));
}

const SENT = `
The command says what the controller made of it: exit code 0 accepted, 1 refused or not answered in time, 2 not sent. Needs a running
installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL.
`;

type Send = (type: CommandType, name: string, body: string, flags: SendFlags) => Promise<void>;

function sending(context: CliContext): Send {
  return (type, name, body, flags) =>
    dispatchCommand(context, newCommand(context, { scope: scopeOfPolicy(name), type, body }), flags);
}

function stepCommand(name: string, description: string): Command {
  return withSendOptions(
    new Command(name).description(description).argument('<policy>', 'name of the policy'),
  );
}

function startCommand(context: CliContext): Command {
  type Flags = SendFlags & {
    policyVersion: number;
    waive?: readonly string[];
    autoPromote?: boolean;
    autoRollback?: boolean;
  };
  return stepCommand('start', 'Begin the rollout of a version that was published: shadow first')
    .requiredOption('--policy-version <n>', 'the version, as its document has it', count)
    .option('--waive <leaf...>', 'leaves that may get too few requests in shadow to be judged')
    .option(
      '--auto-promote',
      "a stage that passed goes on by itself (default: as the controller's settings say)",
    )
    .option('--no-auto-promote', 'a stage that passed waits for promote')
    .option('--auto-rollback', "proven harm rolls back by itself (default: as the controller's settings say)")
    .option('--no-auto-rollback', 'proven harm is a hold')
    .addHelpText(
      'after',
      `${SENT}
In shadow both policies decide every request and only the live one acts. A leaf that is hit fewer than 30 times there puts the rollout on
hold, unless it is waived. START of the version that is being rolled out ends a hold.

Examples:
  millrace policy rollout start starter --policy-version 2 --key ana-2026.pem
  millrace policy rollout start starter --policy-version 2 --waive few-non-zeros large-bias`,
    )
    .action((name: string, { policyVersion, waive, autoPromote, autoRollback, ...flags }: Flags) => {
      const body = {
        version: policyVersion,
        ...(waive === undefined ? {} : { waive: { leaves: waive } }),
        ...(autoPromote === undefined ? {} : { autoPromote }),
        ...(autoRollback === undefined ? {} : { autoRollback }),
      };
      return sending(context)('START', name, JSON.stringify(body), flags);
    });
}

function promoteCommand(context: CliContext): Command {
  type Flags = SendFlags & { toLive: boolean; overHold: boolean };
  return stepCommand('promote', 'Take the rollout to its next stage; from the last one, to live')
    .option('--to-live', 'over all stages that are left', false)
    .option('--before-passed', BEFORE_PASSED, false)
    .option('--over-hold', 'although the rollout is on hold: you read why', false)
    .addHelpText(
      'after',
      `${SENT}
Where the stage has not passed, what it lacks is shown and nothing is sent, unless you say --before-passed. What speaks against the step is in
millrace policy rollout status too, and stays in the log as passed over. To go live against it needs a second person where signatures are
required: write the command with --out, let them sign it, then send the file. A command is decided once: one that was sent cannot be signed
by a second person later. A proven harm cannot be passed over.

Examples:
  millrace policy rollout promote starter --key ana-2026.pem
  millrace policy rollout promote starter --before-passed --key ana-2026.pem
  millrace policy rollout promote starter --to-live --key ana-2026.pem --out promote.json
  millrace policy sign promote.json --key ben-2026.pem --out promote.json && millrace control send promote.json`,
    )
    .action((name: string, { toLive, overHold, ...flags }: Flags) => {
      const body = { ...(toLive ? { to: 'live' } : {}), ...(overHold ? { overHold } : {}) };
      return sending(context)('PROMOTE', name, JSON.stringify(body), flags);
    });
}

type ReasonFlags = SendFlags & { reason: string };

function holdCommand(context: CliContext): Command {
  return stepCommand('hold', 'Stop the rollout where it is; after 2 h on hold it is rolled back')
    .requiredOption('--reason <text>', 'why, for the log')
    .addHelpText(
      'after',
      `${SENT}
Examples:
  millrace policy rollout hold starter --reason 'looking into the p99 of pool a100' --key ana-2026.pem
  millrace policy rollout hold starter --reason lunch --json`,
    )
    .action((name: string, flags: ReasonFlags) =>
      sending(context)('HOLD', name, JSON.stringify({ reason: flags.reason }), flags),
    );
}

function abortCommand(context: CliContext): Command {
  return stepCommand('abort', 'End the rollout: all requests back to the live policy')
    .requiredOption('--reason <text>', 'why, for the log')
    .addHelpText(
      'after',
      `${SENT}
Without a rollout nothing happens. To leave a policy that is live already: millrace policy rollout rollback.

Examples:
  millrace policy rollout abort starter --reason 'wrong threshold' --key ana-2026.pem
  millrace policy rollout abort starter --reason 'wrong threshold' --json`,
    )
    .action((name: string, flags: ReasonFlags) =>
      sending(context)('ABORT', name, JSON.stringify({ reason: flags.reason }), flags),
    );
}

function rollbackCommand(context: CliContext): Command {
  type Flags = SendFlags & { toVersion?: number };
  return stepCommand('rollback', 'Go back to a policy that was live before, at once')
    .option('--to-version <n>', 'the version to go back to (default: the one before the live one)', count)
    .addHelpText(
      'after',
      `${SENT}
The older policy gets a new, higher epoch: nothing ever goes back in the log. What was live: millrace policy history.

Examples:
  millrace policy rollout rollback starter --key ana-2026.pem
  millrace policy rollout rollback starter --to-version 1 --json`,
    )
    .action((name: string, flags: Flags) =>
      sending(context)(
        'ROLL_BACK',
        name,
        flags.toVersion === undefined ? '' : String(flags.toVersion),
        flags,
      ),
    );
}
