import { count, fields, flag, list, MISFIT, parseJson, type Shape } from '../control/json-shape.ts';
import { modelShape } from './model-shape.ts';
import { type PublishedModel, versionName } from './published-model.ts';

/** A version that was published, and how many publications there were then: one that is published again is tried again. */
export interface Publication {
  readonly model: PublishedModel;
  readonly publication: number;
}

/** A published version as workers learn of it. */
export interface CataloguedModel extends Publication {
  /** Whether a policy that acts, or may act soon, names it: such a version is loaded first and stays loaded. */
  readonly isNamed: boolean;
}

/** What workers hold ready: the versions that policies name, and the newest of each family that none ever named. In the order of their publication. */
export interface Catalogue {
  readonly versions: readonly CataloguedModel[];
}

/** The scope of the catalogue's pointer in the control store. */
export const CATALOGUE_SCOPE = 'models';

/** Of a family, so many versions that no policy names are offered: the latest published. */
const UNNAMED_PER_FAMILY = 4;
/** More than a worker holds; of the longest that can be published so many are below a mebibyte, which is what the store takes. */
const VERSIONS_MAX = 100;

/** By `family@version`: what policies name. */
export interface NamedByPolicies {
  /** By policies that act, or may act soon. */
  readonly inUse: ReadonlySet<string>;
  /** By any policy that was published. A version that served, and that nothing in use names, is offered no more. */
  readonly ever: ReadonlySet<string>;
}

export function catalogueOf(models: readonly Publication[], { inUse, ever }: NamedByPolicies): Catalogue {
  const unnamed = new Map<string, number>();
  const versions: CataloguedModel[] = [];
  for (const publication of models.toReversed()) {
    const { model } = publication;
    const name = versionName(model);
    const isNamed = inUse.has(name);
    const others = unnamed.get(model.family) ?? 0;
    if (!isNamed && (ever.has(name) || others >= UNNAMED_PER_FAMILY)) continue;
    if (!isNamed) unnamed.set(model.family, others + 1);
    versions.push({ ...publication, isNamed });
  }
  const first = versions.toSorted((a, b) => Number(b.isNamed) - Number(a.isNamed)).slice(0, VERSIONS_MAX);
  return { versions: first.sort((a, b) => a.publication - b.publication) };
}

const catalogueShape: Shape<Catalogue> = fields({
  versions: list(fields({ model: modelShape, publication: count, isNamed: flag })),
});

/** The same text for the same catalogue. */
export function writeCatalogue(catalogue: Catalogue): string {
  return JSON.stringify(catalogue);
}

const CATALOGUE_LENGTH_MAX = 1024 * 1024;

/** Undefined for what is none of any version. */
export function readCatalogue(document: string): Catalogue | undefined {
  if (document.length > CATALOGUE_LENGTH_MAX) return undefined;
  const catalogue = parseJson(document, catalogueShape);
  return catalogue === MISFIT ? undefined : catalogue;
}
