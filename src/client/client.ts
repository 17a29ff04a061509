import {
  type CommandType,
  type ControlCommand,
  makeControlCommand,
  makeOutcome,
  makeScoreRequest,
  type ScoredResult,
  type ScoreRequest,
  type Signature,
} from '../contracts/records.ts';
import { VALIDITY_MS_MAX } from '../core/control/verify-command.ts';
import { MillraceError } from '../core/errors.ts';
import type { RequestIdentity } from '../core/outcome/identity.ts';
import { partitionForKey } from '../core/request/partition.ts';
import type { Headers } from '../ports/message-bus.ts';
import type { Signer } from '../ports/signatures.ts';
import type { Connection, Transport } from './connection.ts';
import { type ControlEventStream, type ControlEventsOptions, controlEvents } from './control-events.ts';
import { type ResultStream, type ResultsOptions, resultStream } from './result-stream.ts';
import { ScoreCalls } from './score-calls.ts';
import { signCommand } from './sign-command.ts';

/** A request to send: what the schema has a default for may be left out, and so may requestId. */
export type RequestInput = Omit<Parameters<typeof makeScoreRequest>[0], 'requestId'> & { requestId?: string };

/** A command for the controller. */
export interface CommandInput {
  /** What it acts on, such as `policy/starter`. */
  scope: string;
  type: CommandType;
  /** What the command needs: for PUBLISH_POLICY the policy document. */
  body?: Buffer | string;
  /** Who sends it, for the audit; of a signed command the audit names the key. */
  actor?: string;
  commandId?: string;
  /** Made elsewhere, over this scope, type, body and commandId. */
  signature?: Signature;
  /** A second person's, made elsewhere too. */
  coSignature?: Signature;
}

export interface PublishOptions {
  /** Signs the command; `signer({keyId, privateKeyPem})` makes one. */
  signer?: Signer;
  /** Co-signs it, where a second person has to. */
  coSigner?: Signer;
  /** How long the signatures are valid, 1 h by default, at most 24 h. */
  validForMs?: number;
}

/** What came of a result; outcomeId may be left out. */
export type OutcomeInput = Omit<Parameters<typeof makeOutcome>[0], 'outcomeId'> & { outcomeId?: string };

/** A connection to millrace. Every call waits while the broker is away: that is the back-pressure. */
export interface Client {
  requests: {
    /** Resolves with the request's id once the broker has stored it. `tenant` picks that tenant's ingress topic. */
    send(request: RequestInput, options?: { tenant?: string }): Promise<string>;
  };
  /**
   * Results as they come, the first per request only. It opens at once, and what this client sends afterwards waits until it is open, so
   * that no result of it is missed. Leaving the loop, or the signal, ends it.
   */
  results(options?: ResultsOptions): ResultStream;
  /**
   * Sends a request and waits for its terminal outcome, whatever it is: look at `outcome`.
   * @throws MillraceError CLOSED when the signal aborts (its reason is the cause) or the client closes
   */
  score(request: RequestInput, options?: { signal?: AbortSignal; tenant?: string }): Promise<ScoredResult>;
  control: {
    /**
     * Resolves with the command's id once the broker has stored it; what came of it is on control-events. It is sent as it is: a PROMOTE goes on
     * also before the stage has passed, and a commandId that was decided before is not decided again.
     * @throws MillraceError INVALID_COMMAND for a signer beside a signature, or a validity that the controller would refuse
     */
    publish(command: CommandInput, options?: PublishOptions): Promise<string>;
    /** What the controller decides, in order; leaving the loop, or the signal, ends it. */
    events(options?: ControlEventsOptions): ControlEventStream;
  };
  outcomes: {
    /** Resolves with the outcome's id once the broker has stored it. */
    send(outcome: OutcomeInput): Promise<string>;
  };
  /** Ends open streams, rejects waiting calls, closes the connection. */
  close(): Promise<void>;
}

/**
 * Connects over a transport: `connect({ transport: kafka({ brokers, registryUrl }) })` or `connect({ transport: embedded() })`.
 * @throws MillraceError INVALID_CONFIG for options that are not valid, REGISTRY_UNAVAILABLE or BUS_UNAVAILABLE where they do not answer
 */
export async function connect(options: { transport: Transport }): Promise<Client> {
  return new ConnectedClient(await options.transport.open());
}

/** Long enough for a queue, short enough that nobody finds it in a drawer. */
const VALID_FOR_MS = 3_600_000;

class ConnectedClient implements Client {
  readonly requests: Client['requests'];
  readonly control: Client['control'];
  readonly outcomes: Client['outcomes'];
  readonly #connection: Connection;
  readonly #calls: ScoreCalls;
  readonly #streams = new Set<ResultStream>();
  readonly #eventStreams = new Set<ControlEventStream>();

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#calls = new ScoreCalls(connection);
    this.requests = { send: (input, options) => this.#sendRequest(input, options?.tenant) };
    this.control = {
      publish: (input, publishing) => this.#publishCommand(input, publishing),
      events: (events) => this.#controlEvents(events),
    };
    this.outcomes = { send: (input) => this.#sendOutcome(input) };
  }

  results(options?: ResultsOptions): ResultStream {
    const stream: ResultStream = resultStream(this.#connection, options, () => this.#streams.delete(stream));
    this.#streams.add(stream);
    return stream;
  }

  score(
    input: RequestInput,
    { signal, tenant }: { signal?: AbortSignal; tenant?: string } = {},
  ): Promise<ScoredResult> {
    const requestId = input.requestId ?? this.#connection.newId();
    const send = (resultPartition: number): Promise<RequestIdentity | undefined> =>
      this.#produceRequest(makeScoreRequest({ ...input, requestId, resultPartition }), tenant);
    return this.#calls.call(requestId, send, signal);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#streams, ...this.#eventStreams].map((stream) => stream.return()));
    await this.#calls.close();
    await this.#connection.close();
  }

  async #sendRequest(input: RequestInput, tenant: string | undefined): Promise<string> {
    const request = makeScoreRequest({ ...input, requestId: input.requestId ?? this.#connection.newId() });
    await this.#produceRequest(request, tenant);
    return request.requestId;
  }

  async #produceRequest(
    request: ScoreRequest,
    tenant: string | undefined,
  ): Promise<RequestIdentity | undefined> {
    const { topics, codecs } = this.#connection;
    const codec = codecs.for('ScoreRequest');
    const value = codec.encode(request);
    await Promise.allSettled([...this.#streams].map((stream) => stream.ready));
    return this.#produce(topics.ingress(tenant), request.requestId, value, codec.headers);
  }

  #controlEvents(options?: ControlEventsOptions): ControlEventStream {
    const stream: ControlEventStream = controlEvents(this.#connection, options, () =>
      this.#eventStreams.delete(stream),
    );
    this.#eventStreams.add(stream);
    return stream;
  }

  async #publishCommand(input: CommandInput, options: PublishOptions = {}): Promise<string> {
    const { topics, codecs } = this.#connection;
    const unsigned = makeControlCommand({
      commandId: input.commandId ?? this.#connection.newId(),
      scope: input.scope,
      type: input.type,
      body: typeof input.body === 'string' ? Buffer.from(input.body) : input.body,
      actor: input.actor,
      signature: input.signature,
      coSignature: input.coSignature,
    });
    const command = this.#signed(unsigned, options);
    const codec = codecs.for('ControlCommand');
    await this.#produce(topics.fixed('control'), command.scope, codec.encode(command), codec.headers);
    return command.commandId;
  }

  #signed(command: ControlCommand, options: PublishOptions): ControlCommand {
    const { signer, coSigner, validForMs = VALID_FOR_MS } = options;
    if (!(validForMs > 0 && validForMs <= VALIDITY_MS_MAX))
      throw new MillraceError('INVALID_COMMAND', 'a signature cannot be valid for so long', {
        value: validForMs,
        allowed: 'validForMs above 0, at most 24 h',
      });
    if (
      (signer !== undefined && command.signature !== null) ||
      (coSigner !== undefined && command.coSignature !== null)
    )
      throw new MillraceError('INVALID_COMMAND', 'the command is signed already', {
        allowed: 'either a signature made elsewhere, or a signer',
      });
    const sign = (by: Signer): Signature =>
      signCommand(command, by, {
        notAfterMs: this.#connection.clock.wallMs() + validForMs,
        nonce: this.#connection.newId(),
      });
    return {
      ...command,
      ...(signer === undefined ? {} : { signature: sign(signer) }),
      ...(coSigner === undefined ? {} : { coSignature: sign(coSigner) }),
    };
  }

  async #sendOutcome(input: OutcomeInput): Promise<string> {
    const { topics, codecs } = this.#connection;
    const outcome = makeOutcome({ ...input, outcomeId: input.outcomeId ?? this.#connection.newId() });
    const codec = codecs.for('Outcome');
    const key = outcome.requestId || outcome.outcomeId;
    await this.#produce(topics.fixed('outcomes'), key, codec.encode(outcome), codec.headers);
    return outcome.outcomeId;
  }

  /** Answers where the record lies then, unless the broker does not say. */
  async #produce(
    topic: string,
    key: string,
    value: Buffer,
    headers: Headers,
  ): Promise<RequestIdentity | undefined> {
    const { bus } = this.#connection;
    const keyBytes = Buffer.from(key);
    const partition = partitionForKey(keyBytes, await bus.partitionCount(topic));
    let identity: RequestIdentity | undefined;
    await bus.produce({ topic, partition, key: keyBytes, value, headers }, (offset) => {
      identity = { topic, partition, offset };
    });
    return identity;
  }
}
