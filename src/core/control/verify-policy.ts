import type { PolicyEnvelope } from './policy-envelope.ts';
import type { SignaturePolicy, VerifySignature } from './verify-command.ts';
import { verifyEnvelope } from './verify-envelope.ts';

export type SignatureVerdict =
  /** `root`: the policy that people published, of which this one may differ in tuned constants only. */
  | { readonly status: 'ok'; readonly signedBy: string | undefined; readonly root: string | undefined }
  | { readonly status: 'refused'; readonly reason: string };

/**
 * Whether a router may run a policy, by who vouches for its text.
 *
 * @param scope of the pointer that names the policy
 * @param text exact bytes
 */
export function verifyPolicy(
  trust: SignaturePolicy,
  revoked: ReadonlySet<string>,
  envelope: PolicyEnvelope | undefined,
  { scope, text }: { scope: string; text: Uint8Array },
  verify: VerifySignature,
): SignatureVerdict {
  const kind = envelope?.kind ?? 'published';
  const type = kind === 'published' ? 'PUBLISH_POLICY' : 'TUNE';
  const what = `a policy that was ${kind}`;
  const vouched = { type, scope, body: text, what, taker: 'router' } as const;
  const checked = verifyEnvelope(trust, revoked, envelope?.command, vouched, verify);
  if (checked.status === 'refused') return checked;
  if (checked.status === 'unchecked') return { status: 'ok', signedBy: undefined, root: undefined };
  const { signedBy } = checked;
  // What a person signs as TUNE is the name of a constant and its value; the text is the controller's.
  if (kind === 'tuned' && trust.keys.get(signedBy ?? '')?.role !== 'controller')
    return {
      status: 'refused',
      reason: `${signedBy} is no key of a controller, which alone makes policies by tuning`,
    };
  return { status: 'ok', signedBy, root: envelope?.kind === 'tuned' ? envelope.root : undefined };
}
