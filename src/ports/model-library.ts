import type { PublishedModel } from '../core/model/published-model.ts';

/** Brings published model versions to where `Accelerator.load` finds them. */
export interface ModelLibrary {
  /**
   * Fetches the version's files, unless they are here, checks them, and makes the version known to the accelerators of this process.
   *
   * @returns whether it was known already: a version of the model folder, with the same files
   * @throws MillraceError INVALID_MODEL where it is not what was published, or no version that could be loaded; MODEL_UNAVAILABLE (retryable)
   *   where its files cannot be had
   */
  fetch(model: PublishedModel, over: AbortSignal): Promise<{ isOfFolder: boolean }>;
  /** Nobody here wants the version any more: its files may go. */
  forget(model: PublishedModel): Promise<void>;
  /**
   * Removes the files of every version that is none of these, whoever left them: a version can leave the catalogue while no process is there to
   * forget it. What this process fetched and did not forget stays. Never throws.
   */
  retain(models: readonly PublishedModel[]): Promise<void>;
  /** Keeps the text of the newest catalogue beside the versions: who starts while the store is away begins with it. Never throws. */
  keepCatalogue(text: string): Promise<void>;
  /** What an earlier process kept. Never throws. */
  keptCatalogue(): Promise<string | undefined>;
}
