/** How the registry must hold new versions of a subject against the old ones. */
export type Compatibility = 'FULL_TRANSITIVE' | 'BACKWARD';

/** Where writer schemas live. Answers are cached by the codecs, so this may be slow. */
export interface SchemaRegistry {
  /**
   * Registers `schema` (Avro, JSON text) under `subject` and answers its id (the same id for the same schema).
   * @throws MillraceError REGISTRY_UNAVAILABLE (retryable) when the registry is away; INVALID_CONFIG when it refuses the schema as incompatible, or our credentials.
   */
  register(subject: string, schema: string, compatibility: Compatibility): Promise<number>;
  /**
   * The schema (JSON text) that `id` stands for; `undefined` where the registry says that there is none.
   * @throws MillraceError REGISTRY_UNAVAILABLE (retryable) when it did not answer; INVALID_CONFIG when it refuses our credentials. Neither is the record's fault.
   */
  schemaById(id: number): Promise<string | undefined>;
}
