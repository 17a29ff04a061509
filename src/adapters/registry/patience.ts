/** What a call ends with when a request of it stayed without an answer. Told by its class: libraries rename and reword what aborts them. */
export class NoAnswer extends Error {
  readonly code = 'NO_ANSWER';

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
    this.name = 'NoAnswer';
  }
}

/** How long each request of one call may take. */
export interface Patience {
  /** Ends the request that is under way when its time is up. */
  readonly signal: AbortSignal;
  /** A request goes out: it has the whole time. */
  begin(): void;
}

/**
 * What `ask` answers. Each request that it begins has `timeoutMs`, to the last byte of its answer; when one has used them up, the call ends at
 * once, whatever the library beneath makes of the aborted request.
 * @throws NoAnswer
 */
export async function patiently<T>(timeoutMs: number, ask: (patience: Patience) => Promise<T>): Promise<T> {
  const giveUp = new AbortController();
  const silence = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  let lastLook: NodeJS.Immediate | undefined;

  const disarm = (): void => {
    clearTimeout(timer);
    clearImmediate(lastLook);
  };
  const expire = (): void => {
    silence.reject(new NoAnswer(timeoutMs));
    giveUp.abort();
  };
  const begin = (): void => {
    disarm();
    if (giveUp.signal.aborted) return;
    timer = setTimeout(() => {
      // Timers go before sockets: in a process that was busy for that long the answer may lie there unread. It is read first.
      lastLook = setImmediate(expire);
    }, timeoutMs);
  };

  begin();
  try {
    return await Promise.race([ask({ signal: giveUp.signal, begin }), silence.promise]);
  } finally {
    disarm();
  }
}

/** As `patiently`, and once more where the first time ends without an answer. Only for what may be asked twice. */
export async function patientlyTwice<T>(
  timeoutMs: number,
  ask: (patience: Patience) => Promise<T>,
): Promise<T> {
  try {
    return await patiently(timeoutMs, ask);
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return patiently(timeoutMs, ask);
  }
}
