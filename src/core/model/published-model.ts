/** One file of a model version. */
export interface ModelFile {
  /** Beside the version's config.yaml; no folders. */
  readonly name: string;
  readonly bytes: number;
  /** `sha256:<hex>` of its bytes. */
  readonly digest: string;
}

/** A version of a model family that was published: where its files are, and what they must be. */
export interface PublishedModel {
  readonly family: string;
  /** A number, as the model repository's folders have it. */
  readonly version: string;
  /** `sha256:<hex>` of `manifestText(files)`. */
  readonly digest: string;
  /** Folder or URL under which every file lies by its name: see `readModelLocation`. */
  readonly source: string;
  /** By name. */
  readonly files: readonly ModelFile[];
}

/** What a command, and whoever fetches, takes at most. */
export const MODEL_LIMITS = {
  files: 32,
  fileNameLength: 128,
  familyLength: 128,
  sourceLength: 1_024,
  /** Of all files together. */
  bytes: 4 * 1024 ** 3,
} as const;

/** The file that says what the others are. */
export const CONFIG_FILE = 'config.yaml';

export const FAMILY_NAME = /^[a-z][a-z0-9-]*$/;
export const VERSION_NUMBER = /^[1-9]\d{0,8}$/;
/** No separator, no leading dot: it names a file in one folder, and nothing else, on any system. */
export const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
export const SHA256 = /^sha256:[0-9a-f]{64}$/;

/** As requests and people write it. */
export function versionName({ family, version }: { family: string; version: string }): string {
  return `${family}@${version}`;
}

/** Whether they have the same name. */
export function isSameVersion(
  one: { family: string; version: string },
  other: { family: string; version: string },
): boolean {
  return one.version === other.version && one.family === other.family;
}

/**
 * The canonical text of a version's files, whose digest is the version's: a line `millrace-model 1`, then for each file, by name, a line
 * `<sha256 hex>  <bytes>  <name>`. Every line ends with a line feed.
 */
export function manifestText(files: readonly ModelFile[]): string {
  const lines = files
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, bytes, digest }) => `${digest.replace('sha256:', '')}  ${bytes}  ${name}`);
  return `${['millrace-model 1', ...lines].join('\n')}\n`;
}

export function totalBytes(files: readonly ModelFile[]): number {
  return files.reduce((sum, { bytes }) => sum + bytes, 0);
}
