import { MillraceError } from '../errors.ts';

/** @throws MillraceError TOO_LARGE */
export function checkDocumentSize(digest: string, bytes: number, bytesMax: number): void {
  if (bytes <= bytesMax) return;
  throw new MillraceError('TOO_LARGE', `the document ${digest} is too long for the control store`, {
    value: bytes,
    allowed: `at most ${bytesMax} bytes`,
  });
}
