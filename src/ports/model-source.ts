/** Reads the files of model versions from where they were published: one adapter per kind of place. */
export interface ModelSource {
  /**
   * The bytes of one file, piece by piece.
   *
   * @param place as the adapter's kind of `ModelLocation` has it
   * @param file its name, right under the place
   * @param bytesMax the file may not be larger: reading ends there
   * @param over ends the reading
   * @throws MillraceError INVALID_MODEL for a name that could lead out of the place, a link or redirect that does, and a file that is larger;
   *   MODEL_UNAVAILABLE (retryable) where the file is not there, the place does not answer in time, or the reading was ended
   */
  read(place: string, file: string, bytesMax: number, over: AbortSignal): AsyncIterable<Uint8Array>;
}
