import type { RequestFields } from './fields.ts';
import type { RequestLimits } from './limits.ts';
import { type Rejection, reject } from './rejection.ts';
import { isLongerThan } from './utf8.ts';

/** Checks what can be told of a request without its model family: the scalars, texts and maps. */
export function checkEnvelope(request: RequestFields, limits: RequestLimits): Rejection | undefined {
  return (
    checkRequestId(request.requestId, limits) ??
    checkDeadline(request.deadlineMs, limits) ??
    checkPriority(request.priority) ??
    checkValue(request.value) ??
    checkText('bucketKey', request.bucketKey, limits) ??
    checkText('region', request.region, limits) ??
    checkText('pin', request.pin, limits) ??
    checkPin(request.pin) ??
    checkResultPartition(request.resultPartition, limits) ??
    checkCount('optOut', request.optOut.length, limits.optOutsMax) ??
    checkHints(request.hints, limits) ??
    checkTexts('context', request.context, limits.contextMax, limits) ??
    checkTexts('experiments', request.experiments, limits.experimentsMax, limits)
  );
}

function checkRequestId(requestId: string, limits: RequestLimits): Rejection | undefined {
  if (requestId === '')
    return reject('INVALID_REQUEST', 'requestId is empty', {
      value: requestId,
      allowed: `1 to ${limits.requestIdBytesMax} bytes of UTF-8`,
      advice: 'Name each request, for example by a UUID.',
    });
  if (!isLongerThan(requestId, limits.requestIdBytesMax)) return undefined;
  return reject('LIMIT_EXCEEDED', 'requestId is too long', {
    value: requestId,
    allowed: `at most ${limits.requestIdBytesMax} bytes of UTF-8`,
  });
}

/** A pin overrules the policy, so it needs a permission; nothing grants one yet, and a pin that is passed over in silence would be worse. */
function checkPin(pin: string | null): Rejection | undefined {
  if (pin === null) return undefined;
  return reject('INVALID_REQUEST', 'a pin needs a permission, and none can be given yet', {
    value: pin,
    advice: 'Leave pin out; model@version asks for a version of the model.',
  });
}

function checkDeadline(deadlineMs: number | null, limits: RequestLimits): Rejection | undefined {
  if (deadlineMs === null) return undefined;
  const detail = {
    value: deadlineMs,
    allowed: `more than 0, at most ${limits.deadlineMsMax} ms`,
    advice:
      'It is a duration from the append to the topic, not a time of day; leave it out for the SLA of the model.',
  };
  if (!(deadlineMs > 0)) return reject('INVALID_REQUEST', 'deadlineMs leaves no time', detail);
  if (deadlineMs > limits.deadlineMsMax) return reject('LIMIT_EXCEEDED', 'deadlineMs is too long', detail);
  return undefined;
}

function checkPriority(priority: number): Rejection | undefined {
  if (Number.isInteger(priority) && priority >= 0 && priority <= 9) return undefined;
  return reject('INVALID_REQUEST', 'priority is out of range', {
    value: priority,
    allowed: 'whole numbers from 0 (highest) to 9 (lowest)',
  });
}

function checkValue(value: number | null): Rejection | undefined {
  if (value === null || Number.isFinite(value)) return undefined;
  return reject('NON_FINITE', 'value is no finite number', {
    value,
    allowed: 'a finite number, or none',
    advice: 'Leave it out where the worth of the request is unknown.',
  });
}

function checkText(field: string, text: string | null, limits: RequestLimits): Rejection | undefined {
  if (text === null || !isLongerThan(text, limits.textBytesMax)) return undefined;
  return reject('LIMIT_EXCEEDED', `${field} is too long`, {
    value: text,
    allowed: `at most ${limits.textBytesMax} bytes of UTF-8`,
  });
}

function checkResultPartition(partition: number | null, limits: RequestLimits): Rejection | undefined {
  if (partition === null) return undefined;
  if (Number.isInteger(partition) && partition >= 0 && partition < limits.resultPartitions) return undefined;
  return reject('INVALID_REQUEST', 'resultPartition is no partition of scored-results', {
    value: partition,
    allowed: `whole numbers from 0 to ${limits.resultPartitions - 1}`,
    advice: 'Leave it out for the partition of the requestId.',
  });
}

function checkCount(field: string, count: number, countMax: number): Rejection | undefined {
  if (count <= countMax) return undefined;
  return reject('LIMIT_EXCEEDED', `${field} has too many entries`, {
    value: count,
    allowed: `at most ${countMax}`,
  });
}

function checkHints(hints: Readonly<Record<string, number>>, limits: RequestLimits): Rejection | undefined {
  const names = Object.keys(hints);
  const refused = checkCount('hints', names.length, limits.hintsMax);
  if (refused !== undefined) return refused;
  for (const name of names) {
    const long = checkText('the name of a hint', name, limits);
    if (long !== undefined) return long;
    if (Number.isFinite(hints[name])) continue;
    return reject('NON_FINITE', `hint ${JSON.stringify(name)} is no finite number`, {
      value: hints[name],
      allowed: 'finite numbers',
      advice: 'Leave out hints that are unknown.',
    });
  }
  return undefined;
}

function checkTexts(
  field: string,
  texts: Readonly<Record<string, string>>,
  countMax: number,
  limits: RequestLimits,
): Rejection | undefined {
  const keys = Object.keys(texts);
  const refused = checkCount(field, keys.length, countMax);
  if (refused !== undefined) return refused;
  for (const key of keys) {
    const long =
      checkText(`a key of ${field}`, key, limits) ??
      checkText(`a text of ${field}`, texts[key] ?? null, limits);
    if (long !== undefined) return long;
  }
  return undefined;
}
