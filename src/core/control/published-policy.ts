/** A policy document that was checked and published, by the digest of its exact bytes (`sha256:<hex>`). */
export interface PublishedPolicy {
  readonly digest: string;
  readonly name: string;
  readonly version: number;
}
