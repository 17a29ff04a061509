import type { LoadedModel } from '../../ports/accelerator.ts';
import type { Logger } from '../../ports/telemetry.ts';

/** Says once, where a version is loaded, which of the backend's kernels cannot run it, and why. */
export function tellRefusedKernels(
  { family, version, refusedKernels }: Pick<LoadedModel, 'family' | 'version' | 'refusedKernels'>,
  logger: Logger,
): void {
  for (const [kernel, reason] of refusedKernels ?? [])
    logger.warn({ family, version, kernel, reason }, 'a kernel cannot run a model version');
}
