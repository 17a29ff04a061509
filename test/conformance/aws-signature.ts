import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** What a server of an S3-compatible store knows of a request, and of the key that it should be signed with. */
export interface SignedRequest {
  method: string;
  /** Path and query, as they came. */
  target: string;
  headers: IncomingHttpHeaders;
}

/** AWS Signature Version 4 from the side of the store, after its documentation alone: nothing here is of the library that signs. */
export function signatureOf(request: SignedRequest, secretAccessKey: string): string {
  const { scope, signedHeaders } = authorization(request.headers);
  const [day = '', region = '', service = '', end = ''] = scope;
  const key = [day, region, service, end].reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`);
  const text = [
    'AWS4-HMAC-SHA256',
    request.headers['x-amz-date'],
    scope.join('/'),
    createHash('sha256').update(canonicalRequest(request, signedHeaders)).digest('hex'),
  ].join('\n');
  return hmac(key, text).toString('hex');
}

/** Why the store refuses the request; undefined where it does not. */
export function signatureProblem(
  request: SignedRequest,
  credentials: { accessKeyId: string; secretAccessKey: string; sessionToken?: string; region: string },
  nowMs: number,
): string | undefined {
  if (request.headers.authorization === undefined) return 'AccessDenied';
  const { accessKeyId, scope, signedHeaders, signature } = authorization(request.headers);
  if (accessKeyId !== credentials.accessKeyId) return 'InvalidAccessKeyId';
  if (scope.slice(1).join('/') !== `${credentials.region}/s3/aws4_request`)
    return 'AuthorizationHeaderMalformed';
  if (request.headers['x-amz-security-token'] !== credentials.sessionToken) return 'InvalidToken';
  const mustBeSigned = Object.keys(request.headers).filter(
    (name) => name === 'host' || name.startsWith('x-amz-'),
  );
  if (!mustBeSigned.every((name) => signedHeaders.includes(name))) return 'AccessDenied';
  const date = String(request.headers['x-amz-date']);
  const sentMs = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'));
  if (!(Math.abs(sentMs - nowMs) <= 900_000) || !date.startsWith(scope[0] ?? '-'))
    return 'RequestTimeTooSkewed';
  const [given, expected] = [
    Buffer.from(signature),
    Buffer.from(signatureOf(request, credentials.secretAccessKey)),
  ];
  const isSame = given.length === expected.length && timingSafeEqual(given, expected);
  return isSame ? undefined : 'SignatureDoesNotMatch';
}

function authorization(headers: IncomingHttpHeaders) {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    );
  const [, accessKeyId = '', scope = '', signedHeaders = '', signature = ''] = match ?? [];
  return { accessKeyId, scope: scope.split('/'), signedHeaders: signedHeaders.split(';'), signature };
}

function canonicalRequest(
  { method, target, headers }: SignedRequest,
  signedHeaders: readonly string[],
): string {
  const [path = '', query = ''] = target.split('?');
  const parameters = query.split('&').filter((each) => each !== '');
  return [
    method,
    path.split('/').map(encoded).join('/'),
    parameters
      .map((each) => {
        const [name = '', value = ''] = each.split('=').map(encoded);
        return `${name}=${value}`;
      })
      .sort()
      .join('&'),
    ...signedHeaders.map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    signedHeaders.join(';'),
    headers['x-amz-content-sha256'],
  ].join('\n');
}

/** Every byte but letters, digits, `-`, `.`, `_` and `~`, whichever of them the request had encoded. */
function encoded(part: string): string {
  return encodeURIComponent(decodeURIComponent(part)).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
