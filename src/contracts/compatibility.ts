import type { Compatibility } from '../ports/schema-registry.ts';
import { parseType } from './avro-type.ts';

/**
 * Why a new version of a schema may not follow the earlier ones; empty where it may. BACKWARD: the new version reads what the last one
 * wrote. FULL_TRANSITIVE: it reads what any of them wrote, and each of them reads what it writes.
 * @param versions the schemas registered so far, oldest first
 */
export function incompatibilities(
  schema: string,
  versions: readonly string[],
  compatibility: Compatibility,
): readonly string[] {
  const last = versions.length - 1;
  const problems = new Set<string>();
  versions.forEach((version, index) => {
    if (compatibility === 'FULL_TRANSITIVE' || index === last) {
      addProblem(problems, 'the new version cannot read the old one', schema, version);
    }
    if (compatibility === 'FULL_TRANSITIVE') {
      addProblem(problems, 'the old version cannot read the new one', version, schema);
    }
  });
  return [...problems];
}

function addProblem(problems: Set<string>, what: string, reader: string, writer: string): void {
  try {
    parseType(reader).createResolver(parseType(writer));
  } catch (error) {
    problems.add(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
