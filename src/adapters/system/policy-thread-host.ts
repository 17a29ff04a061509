/** The thread that reads and validates policies: for a large one that takes a tenth of a second, in which a router would answer nobody. */
import { parentPort } from 'node:worker_threads';
import { MillraceError } from '../../core/errors.ts';
import type { Fleet } from '../../core/policy/fleet.ts';
import { parsePolicy } from '../../core/policy/parse.ts';
import { DocumentError } from '../../core/policy/problem.ts';
import { checkTunedOf } from '../../core/policy/tuned-of.ts';
import { validatePolicy } from '../../core/policy/validate.ts';
import { SIGNALS } from '../../core/signals/extract.ts';
import type { PolicyCall, PolicyReply } from './policy-thread-messages.ts';

parentPort?.on('message', ({ call, bytes, root, fleet }: PolicyCall) => {
  parentPort?.postMessage({ call, verdict: check(bytes, root, fleet) } satisfies PolicyReply);
});

function check(bytes: Uint8Array, root: Uint8Array | undefined, fleet: Fleet): PolicyReply['verdict'] {
  try {
    const document = parsePolicy(bytes);
    if (root !== undefined) checkTunedOf(root, bytes);
    const errors = validatePolicy(document, fleet, SIGNALS).filter(({ severity }) => severity === 'error');
    if (errors.length > 0) throw new DocumentError('INVALID_POLICY', errors);
    // Where things stand in the text is of use to errors alone, and would be most of what is copied.
    return { status: 'passed', document: { ...document, positions: new Map() } };
  } catch (error) {
    // Anything else is a fault of ours: it ends the thread, and with it the call.
    if (!(error instanceof MillraceError)) throw error;
    return { status: 'refused', message: error.message };
  }
}
