/** One way to serve a request. */
export interface DcafAction {
  cost: number;
  gain: number;
}

const BISECTIONS = 60;

/**
 * DCAF's choice for one request: the action with the greatest gain − λ × cost, the cheapest among equals; undefined where none is above 0.
 * Jiang et al., "DCAF: A Dynamic Computation Allocation Framework for Online Serving System" (2020).
 */
export function dcafChoice(actions: readonly DcafAction[], lambda: number): number | undefined {
  let best: number | undefined;
  let bestNet = 0;
  for (const [index, { cost, gain }] of actions.entries()) {
    const net = gain - lambda * cost;
    if (net > bestNet) {
      best = index;
      bestNet = net;
    }
  }
  return best;
}

/**
 * The least λ at which a log of requests costs at most `budget`, by bisection: what all choose together falls as λ rises.
 * @param log the actions of each request
 */
export function dcafLambda(log: readonly (readonly DcafAction[])[], budget: number): number {
  if (costAt(log, 0) <= budget) return 0;
  let low = 0;
  // A little above the best of all, where rounding lets nothing be worth its price.
  let high =
    Math.max(1e-12, ...log.flat().map(({ gain, cost }) => gain / Math.max(1e-12, cost))) * (1 + 1e-12);
  for (let step = 0; step < BISECTIONS; step++) {
    const middle = (low + high) / 2;
    if (costAt(log, middle) > budget) low = middle;
    else high = middle;
  }
  return high;
}

function costAt(log: readonly (readonly DcafAction[])[], lambda: number): number {
  let cost = 0;
  for (const actions of log) {
    const choice = dcafChoice(actions, lambda);
    if (choice !== undefined) cost += actions[choice]?.cost ?? 0;
  }
  return cost;
}
