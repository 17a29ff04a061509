import { MillraceError } from '../core/errors.ts';
import type { TableRenewal } from '../inference/items/version-tables.ts';
import type { ModelRepository } from '../inference/repository/open-repository.ts';
import type { Clock } from '../ports/clock.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/**
 * Looks every so often whether other item tables lie in the model folder, and has those that are whole take the place of the ones in use. A refusal is
 * told once for each reason; what was in use stays.
 * @returns what ends it
 */
export function followItemTables(
  repository: Pick<ModelRepository, 'renewItemTables'>,
  everyMs: number,
  { clock, telemetry }: { clock: Clock; telemetry: Telemetry },
): () => void {
  const { logger } = telemetry;
  const looks = telemetry.counter({
    name: 'millrace_item_table_changes_total',
    help: 'Item tables of the model folder that took the place of others, or were refused, by outcome.',
    labels: ['outcome'],
  });
  const told = new Map<string, string>();
  const tell = (renewal: TableRenewal): void => {
    const key = `${renewal.version} ${renewal.table}`;
    const reason = renewal.status === 'refused' ? renewal.error.message : '';
    if (renewal.status === 'refused' && told.get(key) === reason) return;
    told.set(key, reason);
    looks.add(1, { outcome: renewal.status });
    const { version, table } = renewal;
    if (renewal.status === 'refused')
      logger.error({ version, table, reason }, 'an item table is refused; the one in use stays');
    else {
      const { from, to, rows } = renewal;
      logger.info({ version, table, from, to, rows }, 'another item table is in use');
    }
  };
  let isLooking = false;
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      for (const renewal of await repository.renewItemTables()) tell(renewal);
    } catch (error) {
      logger.error(
        { reason: error instanceof MillraceError ? error.message : String(error) },
        'looking for item tables failed',
      );
    } finally {
      isLooking = false;
    }
  };
  return clock.every(everyMs, () => void look());
}
