import { join } from 'node:path';
import { writeUserFile } from '../config/user-file.ts';
import type { AcceleratorProfile, TargetProfile } from '../core/profile/profile.ts';
import { costText } from '../inference/new-version/measured-cost.ts';

/** The kernel that cost.json is about. */
const KERNEL = 'dense';

/**
 * Writes what requests cost into the cost.json of each version that was measured.
 * @returns the files
 * @throws MillraceError INVALID_CONFIG where one cannot be written
 */
export function writeCosts(root: string, { versions, machine, software }: AcceleratorProfile): string[] {
  return versions.flatMap(({ family, version, targets }) => {
    const target = targets.find(({ kernel }) => kernel === KERNEL);
    if (target === undefined) return [];
    const file = join(root, family, version, 'cost.json');
    writeUserFile(
      file,
      costText({ family, version: Number(version) }, fitted(target), `${machine}, ${software}`),
    );
    return [file];
  });
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
