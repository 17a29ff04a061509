import { MillraceError } from '../../core/errors.ts';
import { fileUrl } from '../../core/model/model-location.ts';
import type { ModelSource } from '../../ports/model-source.ts';
import type { RequestSigner } from './s3-signer.ts';

/** A server that sends nothing for so long does not answer. */
const SILENCE_MS = 15_000;

const REDIRECTS_MAX = 5;
const REDIRECT_STATUSES: readonly number[] = [301, 302, 303, 307, 308];

/**
 * A place on an HTTP server, read by GET: any web server, and any S3-compatible store, by signed requests or where its objects may be read without. A redirect is followed within the origin that was published, and not out of it: what people signed
 * says where workers go, and inside their network there is more than model files.
 */
export function httpModelSource({
  silenceMs = SILENCE_MS,
  sign = async () => ({}),
}: HttpModelSourceOptions = {}): ModelSource {
  return {
    read: (url, file, bytesMax, over) =>
      readUrl(fileUrl(url, file), file, bytesMax, over, { silenceMs, sign }),
  };
}

export interface HttpModelSourceOptions {
  silenceMs?: number;
  sign?: RequestSigner;
}

async function* readUrl(
  url: string,
  file: string,
  bytesMax: number,
  over: AbortSignal,
  { silenceMs, sign }: Required<HttpModelSourceOptions>,
): AsyncGenerator<Uint8Array> {
  const silence = new Silence(silenceMs);
  try {
    const response = await get(url, AbortSignal.any([over, silence.signal]), sign);
    if (!response.ok) {
      await response.body?.cancel();
      throw unavailable(url, `the server answers ${response.status}`);
    }
    const announced = Number(response.headers.get('content-length') ?? 0);
    let bytes = 0;
    const count = (more: number): void => {
      bytes += more;
      if (Math.max(bytes, announced) > bytesMax) throw tooLarge(file, Math.max(bytes, announced), bytesMax);
    };
    count(0);
    for await (const chunk of response.body ?? []) {
      silence.heard();
      count(chunk.byteLength);
      yield chunk;
    }
  } catch (error) {
    if (error instanceof MillraceError) throw error;
    throw unavailable(url, over.aborted ? 'it was ended' : reasonOf(error), error);
  } finally {
    silence.end();
  }
}

/** @throws MillraceError INVALID_MODEL for a redirect to another origin, or for too many */
async function get(url: string, signal: AbortSignal, sign: RequestSigner): Promise<Response> {
  let asked = url;
  for (let redirects = 0; ; redirects += 1) {
    // Compressed, its length says nothing of what comes.
    const headers = { 'accept-encoding': 'identity', ...(await sign(asked)) };
    const response = await fetch(asked, { headers, signal, redirect: 'manual' });
    const location = REDIRECT_STATUSES.includes(response.status) ? response.headers.get('location') : null;
    if (location === null) return response;
    await response.body?.cancel();
    if (redirects === REDIRECTS_MAX)
      throw new MillraceError('INVALID_MODEL', 'the server redirects without end', {
        value: shown(url),
        allowed: `${REDIRECTS_MAX} redirects`,
      });
    asked = sameOrigin(asked, location);
  }
}

/** @throws MillraceError INVALID_MODEL */
function sameOrigin(from: string, location: string): string {
  const target = URL.parse(location, from);
  const { origin } = new URL(from);
  if (target?.origin === origin && target.username === '' && target.password === '') return target.href;
  throw new MillraceError(
    'INVALID_MODEL',
    `${shown(from)} is redirected out of the place that was published`,
    {
      // No more of it than where it leads: its query may be a signature.
      value: target === null ? 'no URL' : target.origin,
      allowed: origin,
      advice: 'Publish the version with the address that its files have',
    },
  );
}

/** Aborts when nothing was heard for too long. */
class Silence {
  readonly #controller = new AbortController();
  readonly #ms: number;
  #timer: NodeJS.Timeout;

  constructor(ms: number) {
    this.#ms = ms;
    this.#timer = this.#start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #start(): NodeJS.Timeout {
    const reason = new Error(`nothing came for ${this.#ms} ms`);
    return setTimeout(() => this.#controller.abort(reason), this.#ms);
  }
}

/** `fetch` hides the reason in a cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

function unavailable(url: string, why: string, cause?: unknown): MillraceError {
  return new MillraceError('MODEL_UNAVAILABLE', `the file cannot be read: ${why}`, {
    value: shown(url),
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Without its query, which may hold a signature. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

function tooLarge(file: string, bytes: number, bytesMax: number): MillraceError {
  return new MillraceError('INVALID_MODEL', `${file} is larger than was published`, {
    value: bytes,
    allowed: `${bytesMax} bytes`,
  });
}
