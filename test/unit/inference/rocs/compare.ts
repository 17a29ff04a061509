import { type Compiled, compileGraph } from '../../../../src/inference/rocs/compile.ts';
import { cutSides, type Sides } from '../../../../src/inference/rocs/sides.ts';
import type { Model } from './models.ts';
import { broadcastFeeds, type Feeds, indexFeeds, openGraph, randomFeeds, runGraph } from './run.ts';

type Session = Awaited<ReturnType<typeof openGraph>>;

/** A model as it was given (a), with a copy per candidate (b), compiled (c) and cut in two (d), each as a session. */
export interface Forms {
  model: Model;
  compiled: Compiled;
  sides: Sides;
  naive: Session;
  copies: Session;
  shared: Session;
  request: Session;
  candidate: Session;
}

export async function openForms(model: Model, strict = true): Promise<Forms> {
  const compiled = compileGraph(model.graph, model.groups, { strict, attention: 'tiles' });
  const copies = compileGraph(model.graph, model.groups, { strict, attention: 'copies' });
  const sides = cutSides(compiled);
  return {
    model,
    compiled,
    sides,
    naive: await openGraph(model.graph),
    copies: await openGraph(copies.graph),
    shared: await openGraph(compiled.graph),
    request: await openGraph(sides.request),
    candidate: await openGraph(sides.candidate),
  };
}

export interface Batch {
  requestOf: readonly number[];
  requests: number;
  feeds: Feeds;
}

export function batchOf(
  { graph, groups }: Model,
  requestOf: readonly number[],
  requests: number,
  random: { next(): number },
  sequence = 9,
): Batch {
  return { requestOf, requests, feeds: randomFeeds(graph, groups, requestOf, requests, sequence, random) };
}

export interface Answers {
  naive: Map<string, Float32Array>;
  copies: Map<string, Float32Array>;
  shared: Map<string, Float32Array>;
  cut: Map<string, Float32Array>;
  artefact: Map<string, Float32Array>;
}

export async function answersOf(forms: Forms, { requestOf, requests, feeds }: Batch): Promise<Answers> {
  const own = { ...feeds, ...indexFeeds(requestOf, requests) };
  const earlier = forms.model.groups.slice(0, -1).flat();
  const artefact = await forms.request.run(
    Object.fromEntries(forms.request.inputNames.map((name) => [name, feeds[name]])) as Feeds,
  );
  return {
    naive: await runGraph(forms.naive, broadcastFeeds(feeds, earlier, requestOf)),
    copies: await runGraph(forms.copies, own),
    shared: await runGraph(forms.shared, own),
    cut: await runGraph(forms.candidate, { ...own, ...artefact } as Feeds),
    artefact: new Map(Object.entries(artefact).map(([name, { data }]) => [name, data as Float32Array])),
  };
}

/** The largest difference as a share of the largest value: that of a sum is a share of its terms, not of what is left of them. */
export function differenceOf(a: Map<string, Float32Array>, b: Map<string, Float32Array>): number {
  let worst = 0;
  for (const [name, values] of a) {
    const others = b.get(name) ?? new Float32Array();
    const scale = values.reduce((max, value) => Math.max(max, Math.abs(value)), 1e-6);
    values.forEach((value, n) => {
      worst = Math.max(
        worst,
        Math.abs(value - (others[n] ?? Number.NaN)) / scale ||
          (others[n] === undefined ? Number.POSITIVE_INFINITY : 0),
      );
    });
  }
  return worst;
}
