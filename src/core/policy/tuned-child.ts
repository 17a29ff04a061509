import { parsePolicy } from './parse.ts';
import { amendSource } from './source.ts';

export interface TuningChange {
  /** Digest of the exact bytes of the policy that is tuned: `sha256:<hex>`. */
  readonly parent: string;
  readonly version: number;
  /** All tuned values of the child; what is not named has its default again. */
  readonly tuned: ReadonlyMap<string, number>;
}

/**
 * The text of a policy that differs from its parent in tuned constants only: a step of the feedback controller, to be
 * published, audited and undone like any other policy. What the parent's author expected to change does not carry over.
 *
 * @throws DocumentError INVALID_POLICY: the parent does not parse, or the child would not (unknown constant, out of bounds)
 */
export function tunedChild(parentText: string, change: TuningChange): string {
  parsePolicy(parentText);
  const child = amendSource(
    parentText,
    new Map<string, string | number | Record<string, number> | undefined>([
      ['version', change.version],
      ['parent', change.parent],
      ['tuned', Object.fromEntries(change.tuned)],
      ['expect', undefined],
    ]),
  );
  parsePolicy(child);
  return child;
}
