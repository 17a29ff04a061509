import type { Clock } from '../ports/clock.ts';
import type { Stage } from '../stages/stage.ts';

const CHECK_MS = 20;

/** Resolves when every stage can do its work, or with the first reason why one cannot when that was not so in time. */
export async function whenReady(
  stages: readonly Stage[],
  clock: Clock,
  timeoutMs: number,
): Promise<string | undefined> {
  const untilMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    const reason = unreadyReason(stages);
    if (reason === undefined || clock.monotonicMs() >= untilMs) return reason;
    await new Promise<void>((resolve) => clock.after(CHECK_MS, resolve));
  }
}

export function unreadyReason(stages: readonly Stage[]): string | undefined {
  for (const stage of stages) {
    const reason = stage.unready();
    if (reason !== undefined) return `${stage.name}: ${reason}`;
  }
  return undefined;
}
