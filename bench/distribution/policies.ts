import { readFileSync } from 'node:fs';

const STARTER = readFileSync('examples/policies/starter.yaml', 'utf8');

/** The starter policy under another version: another digest for each. */
export function policyText(version: number): Buffer {
  return Buffer.from(
    STARTER.replace('name: starter', 'name: bench').replace(/^version: .*$/m, `version: ${version}`),
  );
}
