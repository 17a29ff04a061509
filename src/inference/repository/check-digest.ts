import { MillraceError } from '../../core/errors.ts';

const ADVICE = {
  config: 'Export the model and its config together.',
  description: 'Build both together: millrace items build.',
};

/**
 * @param by what says which file is meant
 * @throws MillraceError INVALID_MODEL where it is another one
 */
export function checkDigest(
  label: string,
  digest: string,
  meant: { digest: string; by: keyof typeof ADVICE },
): void {
  if (digest === meant.digest) return;
  throw new MillraceError('INVALID_MODEL', `${label} is not the file that ${article(meant.by)} means`, {
    value: digest,
    allowed: meant.digest,
    advice: ADVICE[meant.by],
  });
}

function article(by: keyof typeof ADVICE): string {
  return by === 'config' ? 'the config' : 'its description';
}
