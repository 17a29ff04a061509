import { AwsV4Signer } from 'aws4fetch';
import { MillraceError } from '../../core/errors.ts';
import type { Clock } from '../../ports/clock.ts';

export interface S3SignerOptions {
  /** Origins whose objects are read by signed requests. */
  origins: readonly string[];
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Of temporary credentials; empty where they are not. */
  sessionToken: string;
  clock: Clock;
}

/** Of no bytes, which is what a GET sends. */
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** The headers that a GET of this URL needs besides its own. */
export type RequestSigner = (url: string) => Promise<Readonly<Record<string, string>>>;

/**
 * Signs GETs of objects by AWS Signature Version 4, as S3 and stores that are compatible with it take them; only those of the given origins, so that a
 * source that somebody publishes sends nobody's credentials anywhere else. A URL that carries a signature is left as it is.
 *
 * @throws MillraceError INVALID_CONFIG for origins without a key
 */
export function s3Signer(options: S3SignerOptions): RequestSigner {
  const { region, accessKeyId, secretAccessKey, sessionToken, clock } = options;
  if (options.origins.length > 0 && (accessKeyId === '' || secretAccessKey === ''))
    throw new MillraceError('INVALID_CONFIG', 's3.origins are read by signed requests, and there is no key', {
      value: options.origins,
      allowed: 's3.accessKeyId and s3.secretAccessKey',
    });
  const origins = new Set(options.origins.map((origin) => new URL(origin).origin));
  return async (url) => {
    const { origin, searchParams } = new URL(url);
    if (!origins.has(origin) || searchParams.has('X-Amz-Signature')) return {};
    const signer = new AwsV4Signer({
      url,
      method: 'GET',
      headers: { 'x-amz-content-sha256': EMPTY_SHA256 },
      service: 's3',
      region,
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === '' ? {} : { sessionToken }),
      datetime: basicTime(clock.wallMs()),
    });
    const { headers } = await signer.sign();
    return Object.fromEntries(headers);
  };
}

/** ISO 8601 in its basic form: `20130524T000000Z`. */
function basicTime(ms: number): string {
  return new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '');
}
