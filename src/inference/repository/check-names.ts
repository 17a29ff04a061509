import { MillraceError } from '../../core/errors.ts';

/** Every file of a version names it, so that a copied folder or file cannot pass for another one. @throws MillraceError INVALID_MODEL */
export function checkNames(
  file: string,
  named: { family: string; version: number },
  { family, version }: { family: string; version: string },
): void {
  if (named.family === family && String(named.version) === version) return;
  throw new MillraceError('INVALID_MODEL', `${file} is about another version than its folder or config`, {
    value: `${named.family}/${named.version}`,
    allowed: `${family}/${version}`,
    advice: 'config.yaml, cost.json and golden.json each name family and version: export them together.',
  });
}
