import { MillraceError } from '../../core/errors.ts';
import { withoutCredentials } from '../../core/without-credentials.ts';

/** One series of a metrics page. */
export interface PageSample {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

const PAGE_BYTES_MAX = 16 * 1024 * 1024;
const TIMEOUT_MS = 10_000;
const ESCAPED: Readonly<Record<string, string>> = { n: '\n', '\\': '\\', '"': '"' };

/** The metrics page of a process. @throws MillraceError INVALID_CONFIG where it cannot be reached, or is none */
export async function fetchMetricsPage(url: string): Promise<string> {
  const shown = withoutCredentials(url);
  const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
    (cause: unknown) => {
      throw new MillraceError('INVALID_CONFIG', 'the metrics page cannot be read', {
        value: shown,
        advice: 'Is the worker there, and is this its health address?',
        cause,
      });
    },
  );
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new MillraceError('INVALID_CONFIG', 'this is no metrics page', {
      value: `${shown}: status ${answer.status}`,
      allowed: 'http://<host>:<health port>/metrics',
    });
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > PAGE_BYTES_MAX)
      throw new MillraceError('INVALID_CONFIG', 'the metrics page is too large', {
        value: shown,
        allowed: `at most ${PAGE_BYTES_MAX} bytes`,
      });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The series of one metric on a page in Prometheus' text format. What is no number is left out, and so are other metrics. */
export function samplesOf(page: string, metric: string): PageSample[] {
  return page.split('\n').flatMap((line) => {
    if (!line.startsWith(`${metric}{`)) return [];
    const labels = new Map<string, string>();
    const pair = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"[,}]/y;
    pair.lastIndex = metric.length + 1;
    let end = pair.lastIndex;
    for (let found = pair.exec(line); found !== null; found = pair.exec(line)) {
      const [, name = '', text = ''] = found;
      labels.set(
        name,
        text.replaceAll(/\\(.)/g, (_, escaped: string) => ESCAPED[escaped] ?? escaped),
      );
      end = pair.lastIndex;
    }
    const value = Number(line.slice(end).trim().split(' ')[0] || 'none');
    return Number.isNaN(value) ? [] : [{ labels, value }];
  });
}
