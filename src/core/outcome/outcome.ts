/** How a request ends: exactly one of these. */
export const OUTCOME_KINDS = ['scored', 'degraded', 'expired', 'rejected', 'dead-lettered'] as const;
export type OutcomeKind = (typeof OUTCOME_KINDS)[number];

/** The same as symbols of the Avro enum. Its UNKNOWN is what an older reader makes of a newer kind, and no outcome. */
export type OutcomeSymbol = 'SCORED' | 'DEGRADED' | 'EXPIRED' | 'REJECTED' | 'DEAD_LETTERED';

const SYMBOLS = {
  scored: 'SCORED',
  degraded: 'DEGRADED',
  expired: 'EXPIRED',
  rejected: 'REJECTED',
  'dead-lettered': 'DEAD_LETTERED',
} as const satisfies Record<OutcomeKind, OutcomeSymbol>;

const KINDS = new Map<string, OutcomeKind>(OUTCOME_KINDS.map((kind) => [SYMBOLS[kind], kind]));

export function outcomeSymbol(kind: OutcomeKind): OutcomeSymbol {
  return SYMBOLS[kind];
}

/** `undefined` for UNKNOWN and for whatever else is no outcome that this version knows. */
export function outcomeKind(symbol: string): OutcomeKind | undefined {
  return KINDS.get(symbol);
}
