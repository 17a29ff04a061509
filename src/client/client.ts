import {
  type CommandType,
  makeControlCommand,
  makeOutcome,
  makeScoreRequest,
  type Outcome,
  type ScoredResult,
  type ScoreRequest,
} from '../contracts/records.ts';
import { partitionForKey } from '../core/request/partition.ts';
import type { Connection, Transport } from './connection.ts';
import { type ReceivedResult, type ResultsOptions, resultStream } from './result-stream.ts';
import { ScoreCalls } from './score-calls.ts';

/** A request to send: what the schema has a default for may be left out, and so may requestId. */
export type RequestInput = Omit<Parameters<typeof makeScoreRequest>[0], 'requestId'> & { requestId?: string };

export interface CommandInput {
  scope: string;
  type: CommandType;
  body?: Buffer | string;
  actor?: string;
  commandId?: string;
}

export type OutcomeInput = Omit<Parameters<typeof makeOutcome>[0], 'outcomeId'> & { outcomeId?: string };

export interface Client {
  requests: {
    /** Resolves with the request's id once the broker has stored it. `tenant` picks that tenant's ingress topic. */
    send(request: RequestInput, options?: { tenant?: string }): Promise<string>;
  };
  /** Results as they come, the first per request only. */
  results(options?: ResultsOptions): AsyncGenerator<ReceivedResult, void, void>;
  /** Sends a request and waits for its terminal outcome, whatever it is. */
  score(request: RequestInput, options?: { signal?: AbortSignal; tenant?: string }): Promise<ScoredResult>;
  control: {
    /** Resolves with the command's id once the broker has stored it; what came of it is on control-events. */
    publish(command: CommandInput): Promise<string>;
  };
  outcomes: { send(outcome: OutcomeInput): Promise<string> };
  close(): Promise<void>;
}

/** Connects over a transport: `connect({ transport: kafka({ brokers, registryUrl }) })`. */
export async function connect(options: { transport: Transport }): Promise<Client> {
  const connection = await options.transport.open();
  const calls = await ScoreCalls.open(connection);
  const sendRequest = async (request: ScoreRequest, tenant: string | undefined): Promise<void> => {
    await sendKeyed(
      connection,
      connection.topics.ingress(tenant),
      request.requestId,
      connection.codecs.for('ScoreRequest').encode(request),
    );
  };
  return {
    requests: {
      async send(input, { tenant } = {}) {
        const request = makeScoreRequest({ ...input, requestId: input.requestId ?? connection.newId() });
        await sendRequest(request, tenant);
        return request.requestId;
      },
    },
    results: (resultsOptions) => resultStream(connection, resultsOptions),
    score(input, { signal, tenant } = {}) {
      const request = makeScoreRequest({
        ...input,
        requestId: input.requestId ?? connection.newId(),
        resultPartition: calls.partition,
      });
      return calls.call(request, (sent) => sendRequest(sent, tenant), signal);
    },
    control: {
      async publish(input) {
        const command = makeControlCommand({
          commandId: input.commandId ?? connection.newId(),
          scope: input.scope,
          type: input.type,
          body: typeof input.body === 'string' ? Buffer.from(input.body) : input.body,
          actor: input.actor,
        });
        await sendKeyed(
          connection,
          connection.topics.fixed('control'),
          command.scope,
          connection.codecs.for('ControlCommand').encode(command),
        );
        return command.commandId;
      },
    },
    outcomes: {
      async send(input) {
        const outcome: Outcome = makeOutcome({ ...input, outcomeId: input.outcomeId ?? connection.newId() });
        await sendKeyed(
          connection,
          connection.topics.fixed('outcomes'),
          outcome.requestId || outcome.outcomeId,
          connection.codecs.for('Outcome').encode(outcome),
        );
        return outcome.outcomeId;
      },
    },
    async close() {
      await calls.close();
      await connection.close();
    },
  };
}

async function sendKeyed(connection: Connection, topic: string, key: string, value: Buffer): Promise<void> {
  const keyBytes = Buffer.from(key);
  const partition = partitionForKey(keyBytes, await connection.bus.partitionCount(topic));
  await connection.bus.produce({ topic, partition, key: keyBytes, value });
}
