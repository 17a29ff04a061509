import { count, fields, flag, list, MISFIT, parseJson, type Shape } from '../control/json-shape.ts';
import { type FoundProof, foundProofShape, type ModelProof, plainProof } from './model-proof.ts';
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
  /** Who published it; undefined where nobody signed that. */
  readonly proof: FoundProof;
}

/** What workers hold ready: the versions that policies name, and the newest of each family that none ever named. In the order of their publication. */
export interface Catalogue {
  readonly versions: readonly CataloguedModel[];
}

/** The scope of the catalogue's pointer in the control store. */
export const CATALOGUE_SCOPE = 'models';

/** Of a family, so many versions that no policy names are offered: the latest published. */
const UNNAMED_PER_FAMILY = 4;
/** More than a worker holds. */
const VERSIONS_MAX = 100;
/** Of its text in UTF-8: what the store takes of one document. */
export const CATALOGUE_BYTES_MAX = 1024 * 1024;

/** By `family@version`: what policies name. */
export interface NamedByPolicies {
  /** By policies that act, or may act soon. */
  readonly inUse: ReadonlySet<string>;
  /** By any policy that was published. A version that served, and that nothing in use names, is offered no more. */
  readonly ever: ReadonlySet<string>;
}

/** @param proofOf who published the version of that name */
export function catalogueOf(
  models: readonly Publication[],
  { inUse, ever }: NamedByPolicies,
  proofOf: (name: string) => ModelProof | undefined = () => undefined,
): Catalogue {
  const unnamed = new Map<string, number>();
  const versions: CataloguedModel[] = [];
  for (const publication of models.toReversed()) {
    const { model } = publication;
    const name = versionName(model);
    const isNamed = inUse.has(name);
    const others = unnamed.get(model.family) ?? 0;
    if (!isNamed && (ever.has(name) || others >= UNNAMED_PER_FAMILY)) continue;
    if (!isNamed) unnamed.set(model.family, others + 1);
    versions.push({ ...publication, isNamed, proof: proofOf(name) });
  }
  const first = versions.toSorted((a, b) => Number(b.isNamed) - Number(a.isNamed)).slice(0, VERSIONS_MAX);
  return { versions: first.sort((a, b) => a.publication - b.publication) };
}

/**
 * The same without what the store would not take: versions that no policy names go first, the oldest before the others. Publishing a version refuses
 * to come to that, but policies can name more than they did.
 */
export function fittedCatalogue(
  catalogue: Catalogue,
  bytesMax = CATALOGUE_BYTES_MAX,
): { readonly catalogue: Catalogue; readonly leftOut: readonly CataloguedModel[] } {
  let bytes = byteLength(writeCatalogue({ versions: [] }));
  const taken = new Set<CataloguedModel>();
  const worthMost = catalogue.versions.toSorted(
    (a, b) => Number(b.isNamed) - Number(a.isNamed) || b.publication - a.publication,
  );
  for (const version of worthMost) {
    // and a comma
    bytes += byteLength(JSON.stringify(plainVersion(version))) + 1;
    if (bytes > bytesMax) break;
    taken.add(version);
  }
  return {
    catalogue: { versions: catalogue.versions.filter((version) => taken.has(version)) },
    leftOut: catalogue.versions.filter((version) => !taken.has(version)),
  };
}

/** Why the store would not take it, with the last version that came into it; undefined where it would. */
export function catalogueRefusal(catalogue: Catalogue, added: PublishedModel): string | undefined {
  const bytes = byteLength(writeCatalogue(catalogue));
  if (bytes <= CATALOGUE_BYTES_MAX) return undefined;
  return `with ${versionName(added)} the catalogue of ${catalogue.versions.length} versions that workers follow would have ${bytes} bytes; allowed: ${CATALOGUE_BYTES_MAX}. Publish it with fewer files, shorter names or a shorter source, or let policies name fewer versions`;
}

const catalogueShape: Shape<Catalogue> = fields({
  versions: list(fields({ model: modelShape, publication: count, isNamed: flag, proof: foundProofShape })),
});

/** The same text for the same catalogue. */
export function writeCatalogue({ versions }: Catalogue): string {
  return JSON.stringify({ versions: versions.map(plainVersion) });
}

/** In one order of fields, wherever the model was read from: a leader that took over writes what the one before wrote. */
function plainVersion({ model, publication, isNamed, proof }: CataloguedModel): object {
  const { family, version, source, digest, files } = model;
  const listed = files.map((file) => ({ name: file.name, bytes: file.bytes, digest: file.digest }));
  const plain = { model: { family, version, source, digest, files: listed }, publication, isNamed };
  return typeof proof === 'object' ? { ...plain, proof: plainProof(proof) } : plain;
}

/** Undefined for what is none of any version. */
export function readCatalogue(document: string): Catalogue | undefined {
  if (document.length > CATALOGUE_BYTES_MAX) return undefined;
  const catalogue = parseJson(document, catalogueShape);
  return catalogue === MISFIT ? undefined : catalogue;
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}
