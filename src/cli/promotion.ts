import type { Client } from '../client/client.ts';
import type { ControlCommand } from '../contracts/records.ts';
import { evolve, INITIAL_CONTROLLER_STATE, scopeState } from '../core/control/controller-state.ts';
import { MillraceError } from '../core/errors.ts';
import { missingOf, verdictOf } from '../core/rollout/readiness.ts';
import { stageOf } from '../core/rollout/rollout-state.ts';
import type { CliContext } from './context.ts';
import { readControlLog } from './control-log.ts';
import { waitingFor } from './waiting.ts';

/**
 * The controller takes a person's PROMOTE before the stage has passed, and logs what was passed over; whoever types it is asked before that. What two
 * people signed was read twice. Where no rollout runs, or the canary does harm, the controller's refusal says so.
 *
 * @throws MillraceError INVALID_COMMAND where the command is a PROMOTE of a stage that has not passed, by the log as it is
 */
export async function refuseBeforePassed(
  context: CliContext,
  client: Client,
  { type, scope, coSignature }: ControlCommand,
): Promise<void> {
  if (type !== 'PROMOTE' || coSignature !== null) return;
  const { events } = await waitingFor(context, 'reading the control events', readControlLog(client));
  const { rollout } = scopeState(events.reduce(evolve, INITIAL_CONTROLLER_STATE), scope);
  if (rollout === undefined || verdictOf(rollout)?.kind === 'roll-back') return;
  const missing = missingOf(rollout);
  if (missing.length === 0) return;
  const { candidate, hold } = rollout;
  const { name, percent } = stageOf(rollout);
  const held = hold?.reasons.map(({ text }) => `on hold    ${text}`) ?? [];
  const lines = [...held, ...missing.map((text) => `missing    ${text}`)];
  context.stderr.write(`${lines.join('\n')}\n`);
  const flags = hold === undefined ? '--before-passed' : '--before-passed and --over-hold';
  throw new MillraceError('INVALID_COMMAND', 'the stage has not passed; nothing was sent', {
    value: `${candidate.name}@${candidate.version} in ${name}, ${percent} %`,
    allowed: `${flags}, to go on all the same: the log keeps what was passed over`,
    advice: `When it can go on: millrace policy rollout status ${candidate.name}`,
  });
}
