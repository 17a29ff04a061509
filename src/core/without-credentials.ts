/** A URL's user and password; a password may hold an `@` that nobody encoded. */
const CREDENTIALS = /([a-z][a-z0-9+.-]*:\/\/)[^\s/?#]*@/gi;

/** A text whose URLs have no credentials, for logs and messages. */
export function withoutCredentials(text: string): string {
  return text.replace(CREDENTIALS, '$1');
}
