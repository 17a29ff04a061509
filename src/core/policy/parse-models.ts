import { FAMILY_NAME, MODEL_LIMITS, VERSION_NUMBER } from '../model/published-model.ts';
import type { ModelChoice } from './document.ts';
import type { DocumentReader } from './reader.ts';
import type { SourceNode } from './source.ts';

const VERSION_ALLOWED = 'a version, as "3", or {baseline: "3", enhanced: "4"}';

/** `models: {ranker: "3"}`: the version for whatever variant; by variant where there is a map. */
export function readModels(reader: DocumentReader, node: SourceNode): ReadonlyMap<string, ModelChoice> {
  const models = new Map<string, ModelChoice>();
  for (const [family, value] of reader.map(node) ?? []) {
    if (!FAMILY_NAME.test(family) || family.length > MODEL_LIMITS.familyLength) {
      reader.report(value, 'not the name of a model family', {
        value: family,
        allowed: `small letters, digits and -, a letter first; at most ${MODEL_LIMITS.familyLength}`,
      });
      continue;
    }
    const choice = readChoice(reader, value);
    if (choice !== undefined) models.set(family, choice);
  }
  return models;
}

function readChoice(reader: DocumentReader, node: SourceNode): ModelChoice | undefined {
  if (node.kind !== 'map') {
    const version = readVersion(reader, node);
    return version === undefined ? undefined : { baseline: version, enhanced: version };
  }
  const fields = reader.fields(node, { baseline: 'optional', enhanced: 'optional' });
  if (fields === undefined) return undefined;
  const { baseline, enhanced } = fields;
  if (baseline === undefined && enhanced === undefined)
    return reader.report(node, 'no version is named', { allowed: VERSION_ALLOWED });
  return {
    baseline: baseline && readVersion(reader, baseline),
    enhanced: enhanced && readVersion(reader, enhanced),
  };
}

/** YAML reads `3` as a number. */
function readVersion(reader: DocumentReader, node: SourceNode): string | undefined {
  const value = node.kind === 'scalar' ? node.value : undefined;
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text === 'string' && VERSION_NUMBER.test(text)) return text;
  return reader.report(node, 'not a version of a model', { value, allowed: VERSION_ALLOWED });
}
