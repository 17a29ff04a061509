import type { PolicyDocument } from '../../core/policy/document.ts';
import type { Fleet } from '../../core/policy/fleet.ts';

export interface PolicyCall {
  call: number;
  bytes: Uint8Array;
  fleet: Fleet;
}

export interface PolicyReply {
  call: number;
  verdict: { status: 'passed'; document: PolicyDocument } | { status: 'refused'; message: string };
}
