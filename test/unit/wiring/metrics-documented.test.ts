import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface Metric {
  name: string;
  type: string;
  labels: string[];
}

const byName = (a: Metric, b: Metric): number => (a.name < b.name ? -1 : 1);
const inBackticks = (text: string): string[] => [...text.matchAll(/`(\w+)`/g)].map(([, word = '']) => word);

/** Every metric that the sources define. */
function defined(): Metric[] {
  const sources = globSync('src/**/*.ts').map((file) => readFileSync(file, 'utf8'));
  return sources
    .flatMap((text) => [
      ...text.matchAll(/\.(counter|gauge|histogram)\(\{\s*name: '(millrace_\w+)'([^}]*)\}/g),
    ])
    .map(([, type = '', name = '', rest = '']) => {
      const labels = rest.match(/labels: \[([^\]]*)\]/)?.[1] ?? '';
      return { name, type, labels: [...labels.matchAll(/'(\w+)'/g)].map(([, label = '']) => label) };
    })
    .sort(byName);
}

/** Every row of the table of metrics. */
function documented(): Metric[] {
  const rows = readFileSync('docs/operations.md', 'utf8').matchAll(
    /^\| `(millrace_\w+)` \| (\w+) \| ([^|]*) \|/gm,
  );
  return [...rows]
    .map(([, name = '', type = '', labels = '']) => ({ name, type, labels: inBackticks(labels) }))
    .sort(byName);
}

it('the metrics that are documented are those that there are', () => {
  expect(defined().length).toBeGreaterThan(10);
  expect(documented()).toEqual(defined());
});
