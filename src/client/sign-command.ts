import { type ControlCommand, makeSignature, type Signature } from '../contracts/records.ts';
import { signatureVersion, signedBytes } from '../core/control/signed-bytes.ts';
import type { Signer } from '../ports/signatures.ts';

/** What a signature is made of beside the command. */
export interface SignatureTerms {
  /** Not to be accepted later, ms since the epoch; at most 24 h ahead. */
  notAfterMs: number;
  /** Never used before with this key: a random text. */
  nonce: string;
}

/** A detached signature over the command as it is; any change to it afterwards, but for `actor`, makes the signature void. */
export function signCommand(
  command: Pick<ControlCommand, 'commandId' | 'scope' | 'type' | 'body'>,
  signer: Signer,
  { notAfterMs, nonce }: SignatureTerms,
): Signature {
  const { keyId, installation } = signer;
  const terms = { keyId, notAfter: Math.round(notAfterMs), nonce, version: signatureVersion(installation) };
  const { commandId, scope, type, body } = command;
  const bytes = Buffer.from(
    signer.sign(signedBytes({ ...terms, installation, commandId, scope, type, body })),
  );
  return makeSignature({ ...terms, bytes });
}
