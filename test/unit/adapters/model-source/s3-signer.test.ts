import { describe, expect, it } from 'vitest';
import { type S3SignerOptions, s3Signer } from '../../../../src/adapters/model-source/s3-signer.ts';
import { signatureOf } from '../../../conformance/aws-signature.ts';

/**
 * The examples of AWS: "Signature Calculations for the Authorization Header", Amazon S3 API Reference
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
 */
const ORIGIN = 'https://examplebucket.s3.amazonaws.com';
const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const LIFECYCLE = 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543';
const LIST = '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7';
const GET_OBJECT = 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41';
const credential = 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request';

const options: S3SignerOptions = {
  origins: [ORIGIN],
  region: 'us-east-1',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: SECRET,
  sessionToken: '',
  clock: {
    wallMs: () => Date.UTC(2013, 4, 24),
    monotonicMs: () => 0,
    after: () => () => undefined,
    every: () => () => undefined,
  },
};

describe('signed requests to an S3-compatible store', () => {
  it.each([
    ['/?lifecycle', LIFECYCLE],
    ['/?max-keys=2&prefix=J', LIST],
    ['/?prefix=J&max-keys=2', LIST],
  ])('are signed as AWS shows it: GET %s', async (target, signature) => {
    expect(await s3Signer(options)(`${ORIGIN}${target}`)).toEqual({
      authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
      'x-amz-content-sha256': EMPTY,
      'x-amz-date': '20130524T000000Z',
    });
  });

  it('with temporary credentials carry their token, signed', async () => {
    const headers = await s3Signer({ ...options, sessionToken: 'a token' })(`${ORIGIN}/test.txt`);
    expect(headers['x-amz-security-token']).toBe('a token');
    expect(headers.authorization).toContain(
      'SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token',
    );
  });

  it.each([
    'https://other.s3.amazonaws.com/test.txt',
    'http://examplebucket.s3.amazonaws.com/test.txt',
    'https://examplebucket.s3.amazonaws.com:8443/test.txt',
    'https://examplebucket.s3.amazonaws.com.evil.example/test.txt',
    'https://examplebucket.s3.amazonaws.com@evil.example/test.txt',
    `${ORIGIN}/test.txt?X-Amz-Signature=0123`,
  ])('carry no credentials to %s', async (url) => {
    expect(await s3Signer(options)(url)).toEqual({});
  });

  it('need a key where there is anything to sign', () => {
    const without = { ...options, secretAccessKey: '' };
    expect(() => s3Signer(without)).toThrow(/s3\.accessKeyId and s3\.secretAccessKey/);
    expect(() => s3Signer({ ...without, origins: [] })).not.toThrow();
  });

  it.each<[string, string, Record<string, string>, string]>([
    ['GET', '/test.txt', { range: 'bytes=0-9' }, GET_OBJECT],
    ['GET', '/?lifecycle', {}, LIFECYCLE],
    ['GET', '/?prefix=J&max-keys=2', {}, LIST],
    [
      'PUT',
      '/test$file.text',
      {
        date: 'Fri, 24 May 2013 00:00:00 GMT',
        'x-amz-storage-class': 'REDUCED_REDUNDANCY',
        'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      },
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
    ],
  ])('are checked by the tests as AWS shows it: %s %s', (method, target, more, signature) => {
    const headers: Record<string, string> = {
      host: 'examplebucket.s3.amazonaws.com',
      'x-amz-content-sha256': EMPTY,
      'x-amz-date': '20130524T000000Z',
      ...more,
    };
    const signed = Object.keys(headers).sort().join(';');
    headers.authorization = `AWS4-HMAC-SHA256 Credential=${credential},SignedHeaders=${signed},Signature=${signature}`;
    expect(signatureOf({ method, target, headers }, SECRET)).toBe(signature);
  });
});
