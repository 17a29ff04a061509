import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of millrace's package.json, above this file in a clone (src) as in an install (dist/src). */
export function packageRoot(from: string = import.meta.dirname): string {
  if (existsSync(join(from, 'package.json'))) return from;
  const parent = dirname(from);
  if (parent === from) throw new Error(`no package.json above ${import.meta.dirname}`);
  return packageRoot(parent);
}
