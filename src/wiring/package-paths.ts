import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The package's own folder, from the sources of a clone as from `dist/` of an install. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('millrace is not in a package folder');
    folder = parent;
  }
  return folder;
}

/** A file or folder that ships with the package, unless the setting names another. */
export function packaged(setting: string, ...path: string[]): string {
  return setting === '' ? join(packageRoot(), ...path) : setting;
}
