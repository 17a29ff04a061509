import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { chartLibrary } from '../../../../src/cli/chart-library.ts';
import { compareRuns } from '../../../../src/simulation/report/compare.ts';
import { simulationPage } from '../../../../src/simulation/report/simulation-page.ts';
import type { SimulationResult } from '../../../../src/simulation/report/simulation-result.ts';
import { madeReport } from './report.fixture.ts';

const HOSTILE = `</script><img src=x onerror="alert('1')">`;

function resultOf(...names: readonly string[]): SimulationResult {
  const runs = names.map((name) => madeReport({ name, p50Ms: 5, scored: 90 }));
  const [first, other] = runs;
  const comparisons = first === undefined || other === undefined ? [] : [compareRuns([first], [other])];
  return { format: 1, simulated: true, runs, comparisons };
}

/** As much of a browser as the script asks for. */
function browserOf(page: string) {
  const elements = new Map<string, FakeElement>();
  class FakeElement {
    value = '';
    textContent = '';
    clientWidth = 900;
    readonly children: unknown[] = [];
    readonly listeners: (() => void)[] = [];
    append(...more: unknown[]): void {
      this.children.push(...more);
    }
    replaceChildren(): void {
      this.children.length = 0;
    }
    addEventListener(_event: string, listener: () => void): void {
      this.listeners.push(listener);
    }
  }
  const drawn: { title: string; series: { label: string; dash?: number[] }[]; values: unknown[][] }[] = [];
  const json = /<script type="application\/json" id="result">([\s\S]*?)<\/script>/.exec(page)?.[1] ?? '';
  const elementOf = (id: string): FakeElement => {
    const known = elements.get(id) ?? new FakeElement();
    elements.set(id, known);
    if (id === 'result') known.textContent = json;
    return known;
  };
  const script = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].at(-1)?.[1] ?? '';
  runInNewContext(script, {
    document: { getElementById: elementOf, createElement: () => new FakeElement() },
    window: { addEventListener: () => undefined },
    uPlot: class {
      constructor(options: { title: string; series: { label: string }[] }, values: unknown[][]) {
        drawn.push({ title: options.title, series: options.series, values });
      }
      destroy(): void {}
    },
  });
  return { drawn, elementOf };
}

describe('the page of a simulation', () => {
  it('says that it is simulated, and loads nothing', () => {
    const page = simulationPage(resultOf('live', 'next'), chartLibrary());
    expect(page).toContain('<strong>Simulated.</strong>');
    expect(page).toContain("default-src 'none'");
    expect(page).not.toMatch(/<(script|link|img|iframe)[^>]*\s(src|href)=/i);
    expect(page).not.toMatch(/@import|url\(/);
    expect(page.length).toBeLessThan(200_000);
  });

  it('shows what stands in a report as text', () => {
    const page = simulationPage(resultOf(HOSTILE, 'next'), { script: '', style: '', licence: '-->' });
    expect(page).not.toContain('<img');
    expect(page.match(/<\/script>/g)).toHaveLength(3);
    expect(page).toContain('&lt;/script&gt;&lt;img');
    expect(page.match(/-->/g)).toHaveLength(1);
    expect(browserOf(page).elementOf('first').children).toMatchObject([
      { textContent: `${HOSTILE}@1, seed 1` },
      { textContent: 'next@1, seed 1' },
    ]);
  });

  it('draws one run, or two over each other', () => {
    const { drawn, elementOf } = browserOf(simulationPage(resultOf('live', 'next'), chartLibrary()));
    expect(drawn.map(({ title }) => title)).toEqual([
      'Latency, ms',
      'Outcomes, per second',
      'Requests in flight, requests',
      'Queues of the workers, requests',
      'Utilisation, %',
      'Workers, workers',
    ]);
    expect(drawn[0]?.series.map(({ label }) => label)).toEqual([
      's',
      'p50 · first',
      'p99 · first',
      'p50 · second',
      'p99 · second',
    ]);
    expect(drawn[1]?.values.slice(0, 2)).toEqual([
      [0.05, 0.1],
      [40, 60],
    ]);
    expect(drawn[4]?.values[1]).toEqual([50, null]);
    elementOf('second').value = '-1';
    for (const listener of elementOf('second').listeners) listener();
    expect(drawn[6]?.series.map(({ label }) => label)).toEqual(['s', 'p50', 'p99']);
  });
});
