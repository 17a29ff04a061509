import type { BatchShape } from '../core/signals/cost-moments.ts';
import type { CheckedItem } from './check-item.ts';
import type { InputLayout } from './input-layout.ts';

/** Candidates and rows of the requests of a batch, summed up. */
export function batchShape({ request }: InputLayout, items: readonly CheckedItem[]): BatchShape {
  let [candidates, rows, candidateRows] = [0, 0, 0];
  for (const { count, requestRows } of items) {
    let longest = 0;
    request.forEach((input, position) => {
      if (input.rows === 'sequence') longest = Math.max(longest, requestRows[position] ?? 0);
    });
    candidates += count;
    rows += longest;
    candidateRows += count * longest;
  }
  return { requests: items.length, candidates, rows, candidateRows };
}
