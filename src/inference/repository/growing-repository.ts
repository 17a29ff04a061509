import { MillraceError } from '../../core/errors.ts';
import type { FamilyContract } from '../../core/request/family.ts';
import { inputDifference, limitDifference } from './family-contract.ts';
import type { ModelVersion } from './model-version.ts';
import type { ModelRepository } from './open-repository.ts';

/** A repository to which versions come while it is in use; `families` and `refused` stay those of its folder. */
export interface GrowingRepository extends ModelRepository {
  /**
   * Takes a version of another repository in.
   * @throws MillraceError INVALID_MODEL where requests to its family could not be scored by it, or the reason of the other's refusal
   */
  add(other: ModelRepository, family: string, version: string): void;
  remove(family: string, version: string): void;
}

export function growingRepository(folder: ModelRepository): GrowingRepository {
  const added = new Map<string, { version: ModelVersion; repository: ModelRepository }>();
  const keyOf = (family: string, version: string): string => `${family}@${version}`;
  const homeOf = ({ family, version }: ModelVersion): ModelRepository =>
    added.get(keyOf(family, version))?.repository ?? folder;
  const referenceOf = (family: string): ModelVersion | undefined => {
    const versions = folder.families.find((known) => known.family === family)?.versions ?? [];
    const [other] = [...added.values()].filter(({ version }) => version.family === family);
    return versions.findLast(({ variant }) => variant === 'baseline') ?? versions.at(-1) ?? other?.version;
  };
  const contractOf = (family: string): FamilyContract | undefined =>
    folder.families.find((known) => known.family === family)?.contract;
  return {
    root: folder.root,
    families: folder.families,
    refused: folder.refused,
    version: (family, version) =>
      added.get(keyOf(family, version))?.version ?? folder.version(family, version),
    readGraph: (version) => homeOf(version).readGraph(version),
    readGolden: (version) => homeOf(version).readGolden(version),
    itemTables: (version) => homeOf(version).itemTables(version),
    // The files of a published version never change.
    renewItemTables: () => folder.renewItemTables(),
    tableCache: folder.tableCache,
    add(repository, family, version) {
      const fresh = repository.version(family, version);
      const reference = referenceOf(family);
      const difference = reference === undefined ? undefined : inputDifference(fresh, reference);
      const tighter = reference === undefined ? undefined : limitDifference(fresh, contractOf(family));
      const problem = difference ?? tighter;
      if (problem !== undefined) throw new MillraceError('INVALID_MODEL', problem);
      added.set(keyOf(family, version), { version: fresh, repository });
    },
    remove: (family, version) => void added.delete(keyOf(family, version)),
  };
}
