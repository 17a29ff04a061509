import type { PolicyDocument } from '../../core/policy/document.ts';
import type { Fleet } from '../../core/policy/fleet.ts';

export interface PolicyCall {
  call: number;
  bytes: Uint8Array;
  /** Of which the policy may differ in tuned constants only. */
  root: Uint8Array | undefined;
  fleet: Fleet;
}

export interface PolicyReply {
  call: number;
  verdict: { status: 'passed'; document: PolicyDocument } | { status: 'refused'; message: string };
}
