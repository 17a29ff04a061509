import { SchemaRegistry as Client, COMPATIBILITY, SchemaType } from '@kafkajs/confluent-schema-registry';
import avro from 'avsc';
import { MillraceError } from '../../core/errors.ts';
import { withoutCredentials } from '../../core/without-credentials.ts';
import type { SchemaRegistry } from '../../ports/schema-registry.ts';
import { type Patience, patientlyTwice } from './patience.ts';
import { chooseCompatibility } from './subject-config.ts';

export interface ConfluentSchemaRegistryOptions {
  /** Where the Confluent API begins, its path included: `http://host:8081`, or `http://host:8080/apis/ccompat/v7`. */
  url: string;
  auth?: { username: string; password: string };
  /** How long a request may take, to the last byte of its answer; 5 s unless given. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 5_000;

/**
 * A registry that speaks Confluent's API (Confluent, Apicurio, Karapace, Redpanda). The client registers and looks up, no more: decoding
 * through it would compile a resolver per record. What gets no answer in time is asked once more: one that has just started can take longer
 * over its first schemas than anybody waits, and asking twice changes nothing. Any other failure is for the caller, who knows how long it can wait.
 */
export function confluentSchemaRegistry(options: ConfluentSchemaRegistryOptions): SchemaRegistry {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;

  return {
    async register(subject, schema, compatibility) {
      const level = COMPATIBILITY[compatibility];
      try {
        return await patientlyTwice(timeoutMs, async (patience) => {
          await chooseCompatibility(options, subject, level, patience);
          const wanted = { subject, compatibility: level };
          const { id } = await client(options, patience).register({ type: SchemaType.AVRO, schema }, wanted);
          return id;
        });
      } catch (error) {
        throw refusedRegistration(options.url, subject, compatibility, error);
      }
    },

    async schemaById(id) {
      try {
        const schema = await patientlyTwice(timeoutMs, (patience) => client(options, patience).getSchema(id));
        return schemaText(id, schema);
      } catch (error) {
        if (isNoSuchSchema(error)) return undefined;
        throw failedLookUp(options.url, id, error);
      }
    },
  };
}

/** For one call: its requests end with that call, and what it would remember is nobody's. Connections are shared and kept. */
function client(options: ConfluentSchemaRegistryOptions, patience: Patience): Client {
  return new Client({
    host: options.url.replace(/\/+$/, ''),
    clientId: 'millrace',
    retry: { retries: 0 },
    middlewares: [
      () => ({
        async prepareRequest(next) {
          patience.begin();
          return (await next()).enhance({ signal: patience.signal });
        },
      }),
    ],
    ...(options.auth === undefined ? {} : { auth: options.auth }),
  });
}

/** Self-contained JSON text: the client has resolved references to other subjects. */
function schemaText(id: number, schema: unknown): string {
  if (!isAvroType(schema)) throw new MillraceError('UNKNOWN_SCHEMA', `the schema ${id} is no Avro schema`);
  return JSON.stringify(schema.schema({ exportAttrs: true }));
}

function isAvroType(schema: unknown): schema is avro.Type {
  return avro.Type.isType(schema);
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('status' in error)) return undefined;
  return typeof error.status === 'number' ? error.status : undefined;
}

/**
 * Whether a registry said it, in its own JSON. The client reports a refused connection or a time-out as status 400, and a proxy's error
 * page by its status: of those it finds no `message`, and writes this instead.
 */
function isRegistryAnswer(error: unknown): boolean {
  return (
    error instanceof Error &&
    statusOf(error) !== undefined &&
    !/Error, status \d{3}|HTTP 404/.test(error.message)
  );
}

function isNoSuchSchema(error: unknown): boolean {
  return statusOf(error) === 404 && isRegistryAnswer(error);
}

function failedLookUp(url: string, id: number, error: unknown): MillraceError {
  if (error instanceof MillraceError) return error;
  // the registry answered and the client could not compile what it got
  if (statusOf(error) === undefined && nameOf(error) === 'ConfluentSchemaRegistryArgumentError') {
    return new MillraceError('UNKNOWN_SCHEMA', `the schema ${id} cannot be used: ${messageOf(error)}`, {
      cause: error,
    });
  }
  return refusedCredentials(`look up the schema ${id}`, error) ?? unavailable(url, error);
}

function refusedRegistration(
  url: string,
  subject: string,
  compatibility: string,
  error: unknown,
): MillraceError {
  if (nameOf(error) === 'ConfluentSchemaRegistryCompatibilityError') {
    return new MillraceError(
      'INVALID_CONFIG',
      `the subject ${subject} is not ${compatibility}: ${messageOf(error)}`,
      {
        advice: `Set it on the registry: PUT /config/${subject} {"compatibility": "${compatibility}"}`,
        cause: error,
      },
    );
  }
  if (nameOf(error) === 'ConfluentSchemaRegistryArgumentError') {
    return new MillraceError('INVALID_CONFIG', `the schema of ${subject} is not valid: ${messageOf(error)}`, {
      cause: error,
    });
  }
  const refused = refusedCredentials(`register ${subject}`, error);
  if (refused !== undefined) return refused;
  const status = statusOf(error);
  if ((status === 409 || status === 422 || status === 400) && isRegistryAnswer(error)) {
    return new MillraceError(
      'INVALID_CONFIG',
      `the registry refuses the schema of ${subject} as not ${compatibility} with its earlier versions: ${messageOf(error)}`,
      {
        advice: 'Add fields with defaults only; a change that cannot do without needs a new topic version',
        cause: error,
      },
    );
  }
  return unavailable(url, error);
}

/** Whoever said so, a registry or a proxy before it: asking again with the same credentials does not help. */
function refusedCredentials(what: string, error: unknown): MillraceError | undefined {
  const status = statusOf(error);
  if (status !== 401 && status !== 403) return undefined;
  return new MillraceError('INVALID_CONFIG', `the registry does not let us ${what} (status ${status})`, {
    advice: 'Check the credentials of the schema registry',
    cause: error,
  });
}

function unavailable(url: string, error: unknown): MillraceError {
  return new MillraceError(
    'REGISTRY_UNAVAILABLE',
    `the schema registry at ${withoutCredentials(url)} did not answer: ${messageOf(error)}`,
    {
      cause: error,
    },
  );
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

const MESSAGE_LENGTH_MAX = 400;

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_LENGTH_MAX);
}
