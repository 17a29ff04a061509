/** A request is named by where it lies on its ingress topic. */
export interface RequestIdentity {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** The identity as one text: `topic/partition/offset`. Topic names hold no slash, so no two identities share one. */
export function identityKey(identity: RequestIdentity): string {
  return `${identity.topic}/${identity.partition}/${identity.offset}`;
}

/**
 * What two results of one request share. An ingress topic that was deleted and made again gives its places anew: then the id tells the requests
 * apart.
 */
export function answerKey(result: {
  readonly identity: RequestIdentity;
  readonly requestId: string;
}): string {
  return `${identityKey(result.identity)}/${result.requestId}`;
}
