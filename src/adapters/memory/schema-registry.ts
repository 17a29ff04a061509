import { parseType } from '../../contracts/avro-type.ts';
import { incompatibilities } from '../../contracts/compatibility.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Compatibility, SchemaRegistry } from '../../ports/schema-registry.ts';

interface Subject {
  compatibility: Compatibility;
  versions: string[];
}

/** A registry inside the process, for the embedded run and for tests; it refuses what a real one refuses. */
export function memorySchemaRegistry(): SchemaRegistry {
  const subjects = new Map<string, Subject>();
  const schemas: string[] = [];

  return {
    async register(name, schema, compatibility) {
      const text = canonical(schema);
      const subject = subjects.get(name) ?? { compatibility, versions: [] };
      checkCompatibility(name, subject, text, compatibility);
      subjects.set(name, subject);
      if (!subject.versions.includes(text)) subject.versions.push(text);
      if (!schemas.includes(text)) schemas.push(text);
      return schemas.indexOf(text) + 1;
    },
    async schemaById(id) {
      return schemas[id - 1];
    },
  };
}

function canonical(schema: string): string {
  try {
    parseType(schema);
    return JSON.stringify(JSON.parse(schema));
  } catch (cause) {
    throw new MillraceError('INVALID_CONFIG', 'not an Avro schema', { value: schema, cause });
  }
}

function checkCompatibility(
  name: string,
  subject: Subject,
  schema: string,
  compatibility: Compatibility,
): void {
  if (subject.compatibility !== compatibility) {
    throw new MillraceError('INVALID_CONFIG', `the subject ${name} has another compatibility`, {
      value: compatibility,
      allowed: subject.compatibility,
    });
  }
  if (subject.versions.includes(schema)) return;
  const [problem] = incompatibilities(schema, subject.versions, compatibility);
  if (problem === undefined) return;
  throw new MillraceError(
    'INVALID_CONFIG',
    `the schema of ${name} is not ${compatibility} with its earlier versions`,
    {
      value: problem,
      advice: 'Add fields with defaults only; see schemas/README.md',
    },
  );
}
