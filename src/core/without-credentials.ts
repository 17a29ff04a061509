/**
 * A URL's user and password; a password may hold an `@` that nobody encoded. Begins at the `://`, not at the scheme: a pattern that could begin at every
 * letter of a long word would take a time that grows with its square.
 */
const CREDENTIALS = /(?<=[a-z0-9+.-]:\/\/)[^\s/?#]*@/gi;

/** A text whose URLs have no credentials, for logs and messages. */
export function withoutCredentials(text: string): string {
  return text.replace(CREDENTIALS, '');
}
