import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { checked } from '../core/json-values.ts';
import { packageRoot } from './package-root.ts';

/** The version that millrace's package.json says. */
export function packageVersion(): string {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8');
  return checked('package.json', v.object({ version: v.string() }), JSON.parse(text)).version;
}
