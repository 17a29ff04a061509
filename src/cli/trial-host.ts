import { systemClock } from '../adapters/system/clock.ts';
import { MillraceError } from '../core/errors.ts';
import { carryOutTrial, type TrialJob } from './trial-job.ts';

// The process in which a model is tried: one job, one answer. Whoever asked ends it.
process.once('message', (job: TrialJob) => {
  carry(job).then((answer) => process.send?.(answer));
});
process.once('disconnect', () => process.exit());

async function carry(job: TrialJob): Promise<unknown> {
  try {
    return { value: await carryOutTrial(job, systemClock()) };
  } catch (error) {
    if (error instanceof MillraceError) return { code: error.code, message: error.message };
    return {
      code: undefined,
      message: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}
