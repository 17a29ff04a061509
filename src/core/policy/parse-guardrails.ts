import { BREACH_ACTIONS, type MetricGuardrail, NO_GUARDRAILS, type PolicyGuardrails } from './document.ts';
import { NAME, NAME_ALLOWED } from './parse-tree.ts';
import type { DocumentReader } from './reader.ts';
import type { SourceNode } from './source.ts';

const QUERIES_MAX = 100;
const QUERY_LENGTH_MAX = 2_048;
const QUERY = new RegExp(`^[^]{1,${QUERY_LENGTH_MAX}}$`);
/** Far more than any shift that is worth stopping: whoever writes it means "however far". */
export const SHIFT_MAX = 1_000;

/** The section `rollout.guardrails` of a policy. */
export function readGuardrails(reader: DocumentReader, node: SourceNode): PolicyGuardrails {
  const fields = reader.fields(node, {
    scorePsi: 'optional',
    scoreMeanShift: 'optional',
    queries: 'optional',
  });
  if (fields === undefined) return NO_GUARDRAILS;
  const { scorePsi, scoreMeanShift, queries } = fields;
  return {
    scorePsiMax: scorePsi && reader.number(scorePsi, 0, SHIFT_MAX),
    scoreMeanShiftMax: scoreMeanShift && reader.number(scoreMeanShift, 0, SHIFT_MAX),
    queries: queries === undefined ? [] : readQueries(reader, queries),
  };
}

function readQueries(reader: DocumentReader, node: SourceNode): MetricGuardrail[] {
  const items = reader.list(node) ?? [];
  if (items.length > QUERIES_MAX)
    reader.report(node, 'too many queries', { value: items.length, allowed: `at most ${QUERIES_MAX}` });
  const names = new Set<string>();
  return items.flatMap((item) => {
    const query = readQuery(reader, item);
    if (query === undefined) return [];
    if (names.has(query.name)) reader.report(item, 'two queries of one name', { value: query.name });
    names.add(query.name);
    return [query];
  });
}

function readQuery(reader: DocumentReader, node: SourceNode): MetricGuardrail | undefined {
  const fields = reader.fields(node, {
    name: 'required',
    query: 'required',
    min: 'optional',
    max: 'optional',
    for: 'optional',
    breach: 'optional',
  });
  if (fields?.name === undefined || fields.query === undefined) return undefined;
  const name = reader.text(fields.name, NAME, NAME_ALLOWED);
  const query = reader.text(fields.query, QUERY, `PromQL, at most ${QUERY_LENGTH_MAX} characters`);
  const min = fields.min && reader.number(fields.min, -Number.MAX_VALUE, Number.MAX_VALUE);
  const max = fields.max && reader.number(fields.max, -Number.MAX_VALUE, Number.MAX_VALUE);
  if (fields.min === undefined && fields.max === undefined)
    return reader.report(node, 'a query without a bound guards nothing', {
      allowed: '`min`, `max`, or both',
    });
  if (min !== undefined && max !== undefined && min > max)
    return reader.report(node, 'bounds that no value keeps', { value: [min, max], allowed: 'min ≤ max' });
  if (name === undefined || query === undefined) return undefined;
  return {
    name,
    query,
    min,
    max,
    forMs: (fields.for && reader.durationMs(fields.for)) ?? 0,
    breach: (fields.breach && reader.oneOf(fields.breach, BREACH_ACTIONS)) ?? 'hold',
  };
}
