import { join } from 'node:path';
import { writeUserFiles } from '../config/user-file.ts';
import type { AcceleratorProfile, TargetProfile } from '../core/profile/profile.ts';
import { costText } from '../inference/new-version/measured-cost.ts';
import type { ModelVersion } from '../inference/repository/model-version.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';

/** The kernel that the cost model of a version is about. */
const KERNEL = 'dense';

/** Below the folder of the repository. */
export function costPath({ family, version, files }: ModelVersion): string {
  return join(family, version, files.cost);
}

/**
 * Writes what requests cost into the cost model of each version that was measured: all of them, or none.
 * @returns the files
 * @throws MillraceError INVALID_CONFIG where one cannot be written
 */
export function writeCosts({ root, families }: ModelRepository, profile: AcceleratorProfile): string[] {
  const known = families.flatMap(({ versions }) => versions);
  const texts = profile.versions.flatMap(({ family, version, targets }): [string, string][] => {
    const target = targets.find(({ kernel }) => kernel === KERNEL);
    const of = known.find((each) => each.family === family && each.version === version);
    return target === undefined || of === undefined ? [] : [[costPath(of), textOf(of, target, profile)]];
  });
  return texts.length === 0 ? [] : writeUserFiles(root, new Map(texts));
}

/** What is assumed of a request of which nothing is known is no matter of the measuring, and stays. */
function textOf(
  { family, version, typicalRows }: ModelVersion,
  target: TargetProfile,
  { machine, software }: AcceleratorProfile,
): string {
  const measured = { ...fitted(target), typicalRows };
  return costText({ family, version: Number(version) }, measured, `${machine}, ${software}`);
}

function fitted(target: TargetProfile): Parameters<typeof costText>[1] {
  const { features, coefficients, medianRelativeError: median, p95RelativeError: p95 } = target;
  const sizes = (values: readonly number[]): number[] => [...new Set(values)].toSorted((a, b) => a - b);
  return {
    ...{ features, coefficients, error: { median, p95 } },
    grid: {
      N: sizes(target.shapes.map(({ candidates }) => candidates)),
      T: sizes(target.shapes.map(({ rows }) => rows)),
      heldOutN: sizes(target.heldOut.map(({ candidates }) => candidates)),
      heldOutT: sizes(target.heldOut.map(({ rows }) => rows)),
    },
  };
}
