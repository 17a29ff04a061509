import { randomUUID } from 'node:crypto';
import { type Command, Option } from 'commander';
import type { Client } from '../client/client.ts';
import type { LoggedEvent } from '../client/control-events.ts';
import { writeUserFile } from '../config/user-file.ts';
import { type CommandType, type ControlCommand, makeControlCommand } from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { commandText } from './command-file.ts';
import type { CliContext } from './context.ts';
import { duration } from './flags.ts';
import { refuseUnknownSigner } from './known-signer.ts';
import { refuseBeforePassed } from './promotion.ts';
import { eventDetail, shownEvent } from './shown-event.ts';
import { type SigningFlags, signerOf, signNow, withSigningOptions } from './signing.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

export interface SendFlags extends SigningFlags {
  timeout: number;
  out?: string;
  /** PROMOTE although the stage has not passed. */
  beforePassed?: boolean;
  json: boolean;
}

const TIMEOUT_MS = 30_000;
/** Of the option of this name, wherever a PROMOTE can be sent. */
export const BEFORE_PASSED = 'although the stage has not passed: the log keeps what was passed over';

/** The options of every command that sends one to the controller. */
export function withSendOptions(command: Command): Command {
  return withSigningOptions(command)
    .addOption(
      new Option('--timeout <time>', "how long to wait for the controller's answer")
        .argParser(duration)
        .default(TIMEOUT_MS, '30s'),
    )
    .option(
      '--out <file>',
      'write the command to this file instead of sending it: to co-sign, or to send later',
    )
    .option('--json', 'print one JSON object instead of text', false);
}

/** A command of this person, with a fresh id. */
export function newCommand(
  context: CliContext,
  fields: { scope: string; type: CommandType; body: Buffer | string },
): ControlCommand {
  const { scope, type, body } = fields;
  const actor = context.environment['USER'] ?? context.environment['LOGNAME'] ?? '';
  return makeControlCommand({ commandId: randomUUID(), scope, type, body: Buffer.from(body), actor });
}

/** Signs where a key is given, then sends the command and shows what the controller made of it; or writes it to --out. */
export async function dispatchCommand(
  context: CliContext,
  unsigned: ControlCommand,
  flags: SendFlags,
): Promise<void> {
  const signer = signerOf(context, flags);
  if (signer !== undefined && flags.out !== undefined) refuseUnknownSigner(context, signer);
  const command =
    signer === undefined ? unsigned : { ...unsigned, signature: signNow(context, unsigned, signer, flags) };
  if (flags.out === undefined) await sendCommand(context, command, flags);
  else writeCommand(context, command, flags.out, flags);
}

export function writeCommand(
  context: CliContext,
  command: ControlCommand,
  file: string,
  { json }: { json: boolean },
): void {
  writeUserFile(file, commandText(command));
  const { commandId, scope, type, signature, coSignature } = command;
  const keys = [signature, coSignature].flatMap((each) => (each === null ? [] : [each.keyId]));
  context.stdout.write(
    json
      ? `${JSON.stringify({ status: 'written', file, commandId, scope, type, keys })}\n`
      : `written to ${file}: ${type} of ${scope}, ${keys.length === 0 ? 'not signed' : `signed by ${keys.join(' and ')}`}; not sent. Send it: millrace control send ${file}\n`,
  );
}

/**
 * Sends a command as it is and shows the answer. Exit code 1 where the controller refuses it, or does not answer in time.
 *
 * @param options.isKnown it may have been decided before: then the answer of that time is shown, as the controller acts once
 */
export async function sendCommand(
  context: CliContext,
  command: ControlCommand,
  flags: Pick<SendFlags, 'timeout' | 'json' | 'beforePassed'>,
  options: { isKnown?: boolean } = {},
): Promise<void> {
  await withClient(context, async (client) => {
    const shown = { json: flags.json, isFile: options.isKnown === true };
    const earlier = options.isKnown === true ? await earlierAnswer(client, command) : undefined;
    if (earlier !== undefined) {
      show(context, command, earlier, shown);
      return;
    }
    if (flags.beforePassed !== true) await refuseBeforePassed(context, client, command);
    const answer = await waitingFor(
      context,
      "waiting for the controller's answer",
      answerInTime(context, client, command, flags),
    );
    show(context, command, answer, shown);
  });
}

interface Answer {
  event: LoggedEvent;
  isEarlier: boolean;
}

async function earlierAnswer(client: Client, { commandId }: ControlCommand): Promise<Answer | undefined> {
  const event = await answerAmong(client.control.events({ fromStart: true, follow: false }), commandId);
  return event === undefined ? undefined : { event, isEarlier: true };
}

/** What a leader that was replaced meanwhile made of it is void: the one after it decides. */
async function answerAmong(
  events: AsyncIterable<LoggedEvent>,
  commandId: string,
): Promise<LoggedEvent | undefined> {
  for await (const event of events) if (!event.isVoid && event.commandId === commandId) return event;
  return undefined;
}

async function answerInTime(
  context: CliContext,
  client: Client,
  command: ControlCommand,
  { timeout }: Pick<SendFlags, 'timeout'>,
): Promise<Answer | undefined> {
  const stop = new AbortController();
  const events = client.control.events({ signal: AbortSignal.any([stop.signal, context.interruption()]) });
  await events.ready;
  const { signature, coSignature, ...rest } = command;
  await client.control.publish({
    ...rest,
    ...(signature === null ? {} : { signature }),
    ...(coSignature === null ? {} : { coSignature }),
  });
  const cancel = context.clock.after(timeout, () => stop.abort());
  try {
    const event = await answerAmong(events, command.commandId);
    return event === undefined ? undefined : { event, isEarlier: false };
  } finally {
    cancel();
  }
}

function show(
  context: CliContext,
  command: ControlCommand,
  answer: Answer | undefined,
  { json, isFile }: { json: boolean; isFile: boolean },
): void {
  const { commandId, scope, type } = command;
  if (answer?.event.accepted !== true) context.exitCode = 1;
  if (json) {
    const status = answer === undefined ? 'unanswered' : answer.event.accepted ? 'accepted' : 'refused';
    const event = answer === undefined ? null : shownEvent(answer.event);
    const decidedBefore = answer?.isEarlier === true;
    context.stdout.write(`${JSON.stringify({ status, commandId, scope, type, decidedBefore, event })}\n`);
    return;
  }
  if (answer === undefined)
    throw new MillraceError('BUDGET_EXHAUSTED', 'the controller did not answer in time', {
      value: commandId,
      advice: `The command is on the control topic, and is decided as soon as a controller leads: millrace control events --from-start --command ${commandId}`,
    });
  context.stdout.write(`${answerLine(command, answer, isFile)}\n`);
}

/** Whoever signed the file since would wait for another answer. */
const MAKE_ANEW = 'Make it anew with --out, have everybody sign that (millrace policy sign), then send it';
const DECIDED_ONCE = `nothing was sent: a command is decided once, and signatures that came to it since count for nothing. ${MAKE_ANEW}`;
/** Of a file: without a word it would be signed again and sent again. */
const USED_UP = `the file is used up: a command is decided once, however it is signed later. ${MAKE_ANEW}`;

function answerLine({ type, scope }: ControlCommand, { event, isEarlier }: Answer, isFile: boolean): string {
  const when = isEarlier ? ` (decided before, at ${new Date(event.occurredAt).toISOString()})` : '';
  if (!event.accepted) {
    const what = `refused: ${type} of ${scope}: ${event.reason ?? 'no reason was given'}${when}`;
    return [what, ...(isEarlier ? [DECIDED_ONCE] : isFile ? [USED_UP] : [])].join('\n');
  }
  const detail = eventDetail(event);
  return `accepted: ${event.type} in ${scope}, epoch ${event.epoch}, term ${event.term}${detail === '' ? '' : `: ${detail}`}${when}`;
}
