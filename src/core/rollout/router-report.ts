/**
 * What a router says of the newest pointer that it has read (its ACK or NACK): as JSON under its name in the control store, where it is gone
 * 10 s after the router said it last.
 */
export type RouterReport =
  | { readonly status: 'applied'; readonly epoch: number }
  | {
      readonly status: 'refused';
      readonly epoch: number;
      /** `pointer`: it could not be read, or its epoch was older than the one in force. */
      readonly what: 'stable' | 'canary' | 'pointer';
      readonly reason: string;
    };

export function writeRouterReport(report: RouterReport): string {
  return JSON.stringify(report);
}

/** `undefined` for what is no report of any version. */
export function readRouterReport(text: string): RouterReport | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { status, epoch, what, reason } = value as Record<string, unknown>;
  if (typeof epoch !== 'number' || !Number.isSafeInteger(epoch)) return undefined;
  if (status === 'applied') return { status, epoch };
  if (status !== 'refused' || typeof reason !== 'string') return undefined;
  if (what !== 'stable' && what !== 'canary' && what !== 'pointer') return undefined;
  return { status, epoch, what, reason };
}

const REFUSALS_MAX = 20;
const REASON_LENGTH_MAX = 500;

/** Who refuses the pointer of this epoch and why, by the reports of a scope's routers: it goes into the log, so that of very many the first 20 do. */
export function refusalsOf(
  reports: Iterable<readonly [router: string, text: string]>,
  epoch: number,
): string[] {
  const refusals = [...reports].flatMap(([router, text]) => {
    const report = readRouterReport(text);
    if (report?.status !== 'refused' || report.epoch !== epoch) return [];
    return [`${router}: ${report.what}: ${report.reason}`.slice(0, REASON_LENGTH_MAX)];
  });
  return refusals.slice(0, REFUSALS_MAX);
}
