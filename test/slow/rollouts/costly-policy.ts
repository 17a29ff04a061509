const BRANCHES = 32;
const CHAINS = 6;
const CHAIN_LENGTH = 4;
const LARGE = 9_007_199_254_740_991;

/**
 * A tree about as costly as the limits of documents let through: 32 conditions of 120 calculations each, none of which ever holds, and then the
 * leaf that everybody ends in. The remainder of a number that is so much larger takes its time: a decision takes several hundred microseconds.
 *
 * @param to the target of every leaf
 */
export function costlyTree(to: string): string {
  let drawn = 1;
  const divisor = (): number => {
    drawn = (drawn * 48_271) % 2_147_483_647;
    return 100 + (drawn % 900);
  };
  const chain = (): string =>
    `candidateCount${Array.from({ length: CHAIN_LENGTH }, () => `*${LARGE}*${LARGE}*${LARGE}*${LARGE}%${divisor()}`).join('')}`;
  const branches = Array.from({ length: BRANCHES }, (_, branch) => {
    const sum = Array.from({ length: CHAINS }, chain).join('+');
    return `  - {id: b${branch}, when: '${sum} < 0', to: ${to}}`;
  });
  return [...branches, `  - {id: all, to: ${to}}`].join('\n');
}
