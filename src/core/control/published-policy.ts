/** A policy document that was checked and published, by the digest of its exact bytes (`sha256:<hex>`). */
export interface PublishedPolicy {
  readonly digest: string;
  readonly name: string;
  readonly version: number;
}

const VERSIONS_LISTED_MAX = 20;

/** The versions published, oldest first, as a message may list them: the latest of many. */
export function listVersions(published: readonly PublishedPolicy[]): string {
  if (published.length === 0) return 'none';
  const latest = published.slice(-VERSIONS_LISTED_MAX).map(({ version }) => version);
  const before = published.length - latest.length;
  return `${before > 0 ? `${before} older, ` : ''}${latest.join(', ')}`;
}
