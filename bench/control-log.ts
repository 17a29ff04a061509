import type { ControllerCommand } from '../src/core/control/controller-command.ts';
import { decide, evolve, INITIAL_CONTROLLER_STATE } from '../src/core/control/controller-state.ts';
import { INITIAL_SIGNATURE_STATE, isUsed, rememberSignatures } from '../src/core/control/signature-state.ts';
import type { BenchRow } from './run.ts';

const SCOPE = 'policy/feed';
const HOUR_MS = 3_600_000;
/** Of the longer log, and of one a tenth as long: a time that grows with the length alone is ten times the other's. */
const LENGTHS = [10_000, 100_000] as const;

/** What a new leader does with the log, without Kafka and without checking signatures: it decides each command, folds it, and remembers its nonce. */
export async function run(): Promise<{ rows: BenchRow[] }> {
  return {
    rows: LENGTHS.flatMap((length): BenchRow[] => [
      { metric: `${length} commands decided and folded`, value: ms(() => foldCommands(length)), unit: 'ms' },
      { metric: `${length} nonces remembered`, value: ms(() => rememberNonces(length)), unit: 'ms' },
    ]),
  };
}

function ms(work: () => void): number {
  const started = performance.now();
  work();
  return performance.now() - started;
}

function foldCommands(length: number): void {
  let state = INITIAL_CONTROLLER_STATE;
  for (let n = 0; n < length; n += 1)
    for (const event of decide(state, commandAt(n))) state = evolve(state, event);
  if (state.decided.size !== length) throw new Error(`${state.decided.size} of ${length} were decided`);
}

/** Two versions, and then rollbacks from one to the other. */
function commandAt(n: number): ControllerCommand {
  const sent = { commandId: `c${n}`, scope: SCOPE, actor: 'ana' };
  if (n >= 2) return { kind: 'roll-back', ...sent, toVersion: 1 + (n % 2), atMs: n };
  const policy = { digest: `d${n}`, name: 'feed', version: n + 1 };
  return { kind: 'publish-policy', ...sent, policy, mode: 'immediate', start: undefined };
}

/** A command every 3.6 s, each signed for an hour. */
function rememberNonces(length: number): void {
  let state = INITIAL_SIGNATURE_STATE;
  for (let n = 0; n < length; n += 1) {
    const atMs = n * 3_600;
    const signature = { keyId: 'ana', nonce: `n${n}`, notAfter: atMs + HOUR_MS };
    if (isUsed(state, signature)) throw new Error(`nonce ${n} was used`);
    state = rememberSignatures(state, [signature], atMs);
  }
}
