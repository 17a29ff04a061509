import type { ControlCommand } from '../../contracts/records.ts';
import type { ControllerEvent } from '../../core/control/controller-event.ts';
import { ENVELOPE_BYTES_MAX, type SignedEnvelope } from '../../core/control/policy-envelope.ts';
import { type ModelProof, modelBody, plainProof } from '../../core/model/model-proof.ts';
import { type PublishedModel, versionName } from '../../core/model/published-model.ts';
import type { ProvenBy } from './policy-proofs.ts';

/** Who published each model version last, so that workers need not take the store's word: a fold of the accepted commands, as the log has them. */
export class ModelProofs {
  readonly #byName = new Map<string, ModelProof>();

  /** Back to the beginning of the log. */
  forget(): void {
    this.#byName.clear();
  }

  remember(event: ControllerEvent, { command, appendedMs }: ProvenBy): void {
    if (event.type !== 'model-published') return;
    const isBy = command !== undefined && event.commandId === command.commandId;
    const proof = isBy ? modelProof(command, event.model, appendedMs) : undefined;
    const name = versionName(event.model);
    // The signature of an earlier publication is of another place.
    if (proof === undefined) this.#byName.delete(name);
    else this.#byName.set(name, proof);
  }

  of(name: string): ModelProof | undefined {
    return this.#byName.get(name);
  }
}

/** Undefined for a command that nobody signed, or whose names are longer than anybody reads. */
export function modelProof(
  { commandId, scope, type, signature, coSignature, body }: ControlCommand,
  model: PublishedModel,
  appendedMs: number,
): ModelProof | undefined {
  if (signature === null) return undefined;
  const command: SignedEnvelope = { commandId, scope, type, signature, coSignature, appendedMs };
  const text = body.toString('utf8');
  const names = JSON.stringify(plainProof({ command, body: undefined }));
  if (Buffer.byteLength(names) > ENVELOPE_BYTES_MAX) return undefined;
  return { command, body: text === modelBody(model) ? undefined : text };
}
