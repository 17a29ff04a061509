import { MillraceError } from '../../core/errors.ts';
import { withoutCredentials } from '../../core/without-credentials.ts';

/** One series of a metrics page. */
export interface PageSample {
  readonly labels: ReadonlyMap<string, string>;
  readonly value: number;
}

export const PAGE_BYTES_MAX = 16 * 1024 * 1024;
const TIMEOUT_MS = 10_000;
const ESCAPED: Readonly<Record<string, string>> = { n: '\n', '\\': '\\', '"': '"' };

/**
 * The metrics page of a process. Credentials in the URL are sent, and shown nowhere.
 * @throws MillraceError INVALID_CONFIG where it cannot be reached, or is none
 */
export async function fetchMetricsPage(url: string, timeoutMs = TIMEOUT_MS): Promise<string> {
  const shown = withoutCredentials(url);
  try {
    return await pageOf(await askFor(url, shown, timeoutMs), shown);
  } catch (cause) {
    if (cause instanceof MillraceError) throw cause;
    throw new MillraceError('INVALID_CONFIG', 'the metrics page cannot be read', {
      value: shown,
      advice: 'Is the worker there, and is this its health address?',
      cause,
    });
  }
}

async function askFor(url: string, shown: string, timeoutMs: number): Promise<Response> {
  const target = URL.parse(url);
  if (target === null) throw noPage(shown);
  const credentials = `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`;
  target.username = '';
  target.password = '';
  const answer = await fetch(target, {
    redirect: 'manual',
    signal: AbortSignal.timeout(timeoutMs),
    headers:
      credentials === ':' ? {} : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
  });
  if (answer.ok) return answer;
  await answer.body?.cancel();
  throw noPage(`${shown}: status ${answer.status}`);
}

async function pageOf({ body }: Response, shown: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
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

function noPage(value: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', 'this is no metrics page', {
    value,
    allowed: 'http://<host>:<health port>/metrics',
  });
}

/** Of a series: its labels are names. */
const LINE_LENGTH_MAX = 16_384;

/** The series of one metric on a page in Prometheus' text format. What is no finite number is left out, and so are other metrics. */
export function samplesOf(page: string, metric: string): PageSample[] {
  return page.split('\n').flatMap((line) => {
    if (!line.startsWith(`${metric}{`) || line.length > LINE_LENGTH_MAX) return [];
    const labels = new Map<string, string>();
    const pair = /\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*[,}]/y;
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
    // A comma may stand before the end of the labels.
    const behind = line.slice(end).trimStart();
    const text = (behind.startsWith('}') ? behind.slice(1).trimStart() : behind).split(/\s/, 1)[0];
    const value = Number(text || 'none');
    return Number.isFinite(value) ? [{ labels, value }] : [];
  });
}
