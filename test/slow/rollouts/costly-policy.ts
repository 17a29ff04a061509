const BRANCHES = 90;
const CHAINS = 6;
const CHAIN_LENGTH = 20;

/**
 * A tree about as costly as the limits of documents let through: 90 conditions of 120 remainders each, none of which ever holds, and then the
 * leaf that everybody ends in. A decision takes a few hundred microseconds.
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
    `candidateCount${Array.from({ length: CHAIN_LENGTH }, () => `%${divisor()}`).join('')}`;
  const branches = Array.from({ length: BRANCHES }, (_, branch) => {
    const sum = Array.from({ length: CHAINS }, chain).join('+');
    return `  - {id: b${branch}, when: '${sum} < 0', to: ${to}}`;
  });
  return [...branches, `  - {id: all, to: ${to}}`].join('\n');
}
