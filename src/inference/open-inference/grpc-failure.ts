import type { ServiceError, status } from '@grpc/grpc-js';
import { AnswerError, excerpt, reasonOf, Unavailable } from './failures.ts';

/** Of a server that had the model when the version was loaded: it was started again, and has not loaded it yet. */
export class NoSuchModel extends AnswerError {}

/** The same code for a server that has too much to do as for a message that is too long for whom it reaches. */
const TOO_LONG = /larger than|exceeds maximum/i;

const LATE = 'it did not answer in time';

/** What a call that failed says of the server. @param signal what ends the call where it takes too long */
export function failureOf(
  codes: typeof status,
  error: Pick<ServiceError, 'code' | 'details' | 'metadata'>,
  signal: AbortSignal,
): AnswerError | Unavailable {
  const { code, details } = error;
  // What the library itself says of a call comes without any header.
  const wasAnswered = Object.keys(error.metadata.getMap()).length > 0;
  const unanswered = wasAnswered ? undefined : reasonOfSilence(codes, code, details, signal);
  if (unanswered !== undefined) return new Unavailable(unanswered);
  // One that ends with a space is a header that Node drops: of Triton, where shapes are wrong.
  const message = `gRPC ${codes[code] ?? `status ${code}`}${details === '' ? ', without a reason' : `: ${excerpt(details)}`}`;
  switch (code) {
    // Where both watch the deadline either may be the first to say so.
    case codes.DEADLINE_EXCEEDED:
      return new Unavailable(`${LATE} (${message})`, wasAnswered);
    case codes.UNAVAILABLE:
    case codes.CANCELLED:
      return new Unavailable(message, wasAnswered);
    case codes.RESOURCE_EXHAUSTED:
      return TOO_LONG.test(details) ? new AnswerError(message) : new Unavailable(message, wasAnswered);
    case codes.NOT_FOUND:
      return new NoSuchModel(message);
    default:
      return new AnswerError(message);
  }
}

function reasonOfSilence(
  codes: typeof status,
  code: status,
  details: string,
  signal: AbortSignal,
): string | undefined {
  if (signal.aborted) return reasonOf(signal.reason);
  if (code === codes.DEADLINE_EXCEEDED) return LATE;
  if (code === codes.UNAVAILABLE) return connectionReason(details);
  // A connection, or a proxy's way to the server, that broke in the middle of a call.
  if (code === codes.INTERNAL && details.startsWith('Received RST_STREAM')) return excerpt(details);
  return undefined;
}

/** The library wraps what the system said; a server that speaks no HTTP/2 is a protocol error to it. */
function connectionReason(details: string): string {
  const [, reason = details] = /Last error: (?:Error: )?(.*?)\.? Resolution note:/s.exec(details) ?? [];
  return reason.startsWith('Protocol error') ? 'what answers there speaks no gRPC' : excerpt(reason);
}
