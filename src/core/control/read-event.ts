import { modelShape } from '../model/model-shape.ts';
import { rolloutEventShape, termsShape } from '../rollout/event-shape.ts';
import { tuningEventShape } from '../tuning/event-shape.ts';
import type { ControllerEvent } from './controller-event.ts';
import {
  count,
  either,
  fields,
  flag,
  MISFIT,
  number,
  oneOf,
  optional,
  parseJson,
  type Shape,
  text,
} from './json-shape.ts';
import { policyShape } from './policy-shape.ts';

const cause = { commandId: text, scope: text, actor: text };
const atMs = number(0);

/** Events of older versions lack what has a default here. */
const controlShapes: readonly Shape<ControllerEvent>[] = [
  fields({ type: oneOf(['leadership-taken']), term: count }),
  fields({
    type: oneOf(['policy-published']),
    ...cause,
    policy: policyShape,
    live: optional(flag, true),
    start: optional(fields({ terms: termsShape, atMs }), undefined),
    epoch: count,
  }),
  fields({
    type: oneOf(['policy-rolled-back']),
    ...cause,
    from: policyShape,
    policy: policyShape,
    atMs: optional(atMs, 0),
    epoch: count,
  }),
  fields({ type: oneOf(['model-published']), ...cause, model: modelShape, epoch: count }),
  fields({ type: oneOf(['store-reseeded']), ...cause, epoch: count }),
  fields({ type: oneOf(['command-refused']), ...cause, reason: text }),
  fields({ type: oneOf(['key-revoked']), ...cause, keyId: text }),
  fields({
    type: oneOf(['policy-tuned']),
    ...cause,
    policy: policyShape,
    text,
    name: text,
    value: number(-Number.MAX_VALUE),
    reason: text,
    atMs,
    epoch: count,
  }),
  (value) => {
    const event = tuningEventShape(value);
    const by = event === MISFIT ? MISFIT : fields(cause)(value);
    return event === MISFIT || by === MISFIT ? MISFIT : { ...event, ...by };
  },
];

const eventShape: Shape<ControllerEvent> = controlShapes.reduce(
  (shapes, shape) => either(shapes, shape),
  rolloutEventShape as Shape<ControllerEvent>,
);

/**
 * An event as the log of control events keeps it, in the JSON of its evidence. Undefined for what is none that this version knows: such a
 * command is then decided anew.
 */
export function readControllerEvent(evidence: string): ControllerEvent | undefined {
  const event = parseJson(evidence, eventShape);
  return event === MISFIT ? undefined : event;
}
