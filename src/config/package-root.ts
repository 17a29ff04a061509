import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of millrace's package.json: above the sources of a clone as above `dist/` of an install. */
export function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${import.meta.dirname}`);
    folder = parent;
  }
  return folder;
}

/** A file or folder that ships with the package, unless the setting names another. */
export function packaged(setting: string, ...path: string[]): string {
  return setting === '' ? join(packageRoot(), ...path) : setting;
}
