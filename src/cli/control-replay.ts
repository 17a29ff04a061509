import { Command } from 'commander';
import type { ControllerEvent } from '../core/control/controller-event.ts';
import { type Disagreement, replay } from '../core/rollout/replay.ts';
import type { CliContext } from './context.ts';
import { type ReadControlLog, readControlLog } from './control-log.ts';
import { waitingFor } from './waiting.ts';
import { withClient } from './with-client.ts';

/** `millrace control replay`: every decision derived again from the log. */
export function controlReplayCommand(context: CliContext): Command {
  return new Command('replay')
    .description(
      "Derive every decision of the controller again from the log, and say where the log and this version's rules differ",
    )
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
What was commanded and what was observed stands in the log of control events; what was decided must follow from it. Leaderships and refusals are
taken as they are, as the log does not keep what was refused. Needs a running installation (MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL), no
controller. Exit code: 0 where everything agrees, 1 where something does not.

Examples:
  millrace control replay
  millrace control replay --json | jq .disagreements`,
    )
    .action((flags: { json: boolean }) => controlReplay(context, flags));
}

async function controlReplay(context: CliContext, { json }: { json: boolean }): Promise<void> {
  await withClient(context, async (client) => {
    const log = await waitingFor(context, 'reading the control events', readControlLog(client));
    const { confirmed, taken, disagreements, pending } = replay(log.events);
    if (disagreements.length > 0) context.exitCode = 1;
    const counts = { events: log.events.length, confirmed, taken, void: log.void, unknown: log.unknown };
    context.stdout.write(
      json
        ? `${JSON.stringify({ ...counts, disagreements, pending })}\n`
        : `${replayLines(log, { confirmed, taken, disagreements, pending }).join('\n')}\n`,
    );
  });
}

function replayLines(
  log: ReadControlLog,
  found: {
    confirmed: number;
    taken: number;
    disagreements: readonly Disagreement[];
    pending: readonly ControllerEvent[];
  },
): string[] {
  const { confirmed, taken, disagreements, pending } = found;
  return [
    `${log.events.length} events: ${confirmed} derived again and the same, ${taken} taken as they are (leaderships, refusals), ${disagreements.length} differ`,
    ...(log.void > 0 ? [`${log.void} of leaders whose time was over are void`] : []),
    ...(log.unknown > 0 ? [`${log.unknown} are of a version that this one does not know`] : []),
    ...disagreements.flatMap(({ index, recorded, derived }) => [
      `event ${index} differs:`,
      `  in the log   ${JSON.stringify(recorded)}`,
      `  by the rules ${derived === undefined ? 'nothing' : JSON.stringify(derived)}`,
    ]),
    ...pending.map((event) => `follows, and is not in the log yet: ${JSON.stringify(event)}`),
  ];
}
