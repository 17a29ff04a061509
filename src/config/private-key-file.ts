const ID_LINE = /^# key-id: (\S+)$/m;
const BEGIN = '-----BEGIN';

/** A private key in PEM, with the id of its key in a line before it: tools that read PEM pass over what stands there (RFC 7468). */
export function withKeyId(privateKeyPem: string, keyId: string): string {
  return `# key-id: ${keyId}\n${privateKeyPem}`;
}

/** The id that `withKeyId` wrote; undefined where there is none, as in a file of other tools. */
export function keyIdOf(pem: string): string | undefined {
  const begin = pem.indexOf(BEGIN);
  return ID_LINE.exec(begin < 0 ? '' : pem.slice(0, begin))?.[1];
}
