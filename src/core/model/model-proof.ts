import { fields, MISFIT, optional, type Shape, text } from '../control/json-shape.ts';
import { plainCommand, type SignedEnvelope, signedEnvelopeShape } from '../control/policy-envelope.ts';
import type { SignaturePolicy, VerifySignature } from '../control/verify-command.ts';
import { verifyEnvelope } from '../control/verify-envelope.ts';
import { MillraceError } from '../errors.ts';
import type { PublishedModel } from './published-model.ts';
import { readPublishedModel } from './read-published-model.ts';

/** Who vouches for a version, beside it in the catalogue: the signed command that published it. */
export interface ModelProof {
  readonly command: SignedEnvelope;
  /** Its exact body; undefined where that is `modelBody` of the version, as `millrace model publish` writes it. */
  readonly body: string | undefined;
}

/** `unreadable`: there is something, and it is no proof of any version. */
export type FoundProof = ModelProof | 'unreadable' | undefined;

/** The body of PUBLISH_MODEL for a version: the same text for the same version. */
export function modelBody({ family, version, digest, files, source }: PublishedModel): string {
  const listed = files.map((file) => ({ name: file.name, bytes: file.bytes, digest: file.digest }));
  return JSON.stringify({ family, version, digest, files: listed, source });
}

const proofShape: Shape<ModelProof> = fields({
  command: signedEnvelopeShape,
  body: optional(text, undefined),
});

export const foundProofShape: Shape<FoundProof> = (value) => {
  if (value === undefined || value === null) return undefined;
  const read = proofShape(value);
  return read === MISFIT ? 'unreadable' : read;
};

/** As JSON has it. */
export function plainProof({ command, body }: ModelProof): object {
  return { command: plainCommand(command), body };
}

/**
 * Why a worker must not take the version, by who vouches for it; undefined where it may. All that people signed counts: files, digests, and where they
 * are fetched from.
 *
 * @param digest `sha256:<hex>` of a text's UTF-8
 */
export function modelProofRefusal(
  trust: SignaturePolicy,
  revoked: ReadonlySet<string>,
  { model, proof }: { readonly model: PublishedModel; readonly proof: FoundProof },
  digest: (text: string) => string,
  verify: VerifySignature,
): string | undefined {
  if (proof === 'unreadable') return 'what should vouch for it cannot be read';
  const body = proof?.body ?? modelBody(model);
  const checked = verifyEnvelope(
    trust,
    revoked,
    proof?.command,
    {
      type: 'PUBLISH_MODEL',
      scope: `model/${model.family}`,
      body: new TextEncoder().encode(body),
      what: 'a model version',
      taker: 'worker',
    },
    verify,
  );
  if (checked.status === 'refused') return checked.reason;
  if (checked.status === 'unchecked' || isBodyOf(body, model, digest)) return undefined;
  return 'what was signed are other files, or another place of them, than the catalogue says';
}

function isBodyOf(body: string, model: PublishedModel, digest: (text: string) => string): boolean {
  try {
    return modelBody(readPublishedModel(body, digest)) === modelBody(model);
  } catch (error) {
    if (error instanceof MillraceError) return false;
    throw error;
  }
}
