import {
  either,
  fields,
  list,
  MISFIT,
  oneOf,
  optional,
  parseJson,
  text,
} from '../../core/control/json-shape.ts';
import { shorten } from '../../core/errors.ts';
import { type MetricReading, readingOf } from '../../core/rollout/metric-reading.ts';
import type { MetricsQuery } from '../../ports/metrics-query.ts';

export interface PrometheusQueryOptions {
  /** Where Prometheus' HTTP API begins, a path before `/api/v1` included. */
  url: string;
  /** Sent as a bearer token; none where empty. */
  token?: string;
  /** From the request to the last byte of the answer. */
  timeoutMs: number;
}

/** More than a thousand series: a bound on them all is meant for another query. */
const RESPONSE_BYTES_MAX = 256 * 1024;

/**
 * Instant queries of a Prometheus, or of what speaks its API (Thanos, Mimir, VictoriaMetrics): POST `<url>/api/v1/query`. Redirects are not followed,
 * for the token would go along; an answer with warnings is none, for it may lack series.
 */
export function prometheusQuery({ url, token = '', timeoutMs }: PrometheusQueryOptions): MetricsQuery {
  const endpoint = `${url.replace(/\/+$/, '')}/api/v1/query`;
  const authorization = token === '' ? {} : { authorization: `Bearer ${token}` };
  return {
    async read(query) {
      try {
        const response = await fetch(endpoint, {
          method: 'POST',
          redirect: 'manual',
          headers: { ...authorization, 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({ query, timeout: `${timeoutMs}ms` }).toString(),
          signal: AbortSignal.timeout(timeoutMs),
        });
        return await readResponse(response);
      } catch (error) {
        return { failed: failureText(error, timeoutMs) };
      }
    },
  };
}

async function readResponse(response: Response): Promise<MetricReading> {
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    return { failed: `redirected (status ${response.status}); redirects are not followed` };
  }
  const body = await boundedText(response);
  if (body === undefined) return { failed: `the answer has more than ${RESPONSE_BYTES_MAX} bytes` };
  const answer = parseJson(body, answerShape);
  if (answer === MISFIT)
    return { failed: `no answer of Prometheus' API (status ${response.status}): ${shorten(body)}` };
  if (answer.status === 'error') return { failed: `${answer.errorType}: ${shorten(answer.error)}` };
  if (answer.warnings.length > 0)
    return { failed: `answered with a warning: ${shorten(answer.warnings.join('; '))}` };
  const { data } = answer;
  return readingOf(
    data.resultType === 'scalar' ? [numberOf(data.result)] : data.result.map(({ value }) => numberOf(value)),
  );
}

/** Undefined where there is more of it. */
async function boundedText(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    // Leaving the loop cancels the rest.
    if (size > RESPONSE_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Its time, and its value as text. */
const sample = (value: unknown): readonly [unknown, string] | typeof MISFIT =>
  Array.isArray(value) && value.length === 2 && typeof value[1] === 'string' ? [value[0], value[1]] : MISFIT;

const answerShape = either(
  fields({ status: oneOf(['error']), errorType: text, error: text }),
  fields({
    status: oneOf(['success']),
    warnings: optional(list(text), []),
    data: either(
      fields({ resultType: oneOf(['vector']), result: list(fields({ value: sample })) }),
      fields({ resultType: oneOf(['scalar']), result: sample }),
    ),
  }),
);

/** Prometheus writes `+Inf`, `-Inf` and `NaN`. */
function numberOf([, text]: readonly [unknown, string]): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number.parseFloat(text);
}

function failureText(error: unknown, timeoutMs: number): string {
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return `no answer within ${timeoutMs} ms`;
  const cause = error instanceof Error ? error.cause : undefined;
  // Without a cause nothing was sent: the text would be of the request itself, its token included.
  if (!(cause instanceof Error)) return 'the request cannot be sent';
  return `unreachable: ${shorten(cause.message === '' && 'code' in cause ? cause.code : cause.message)}`;
}
