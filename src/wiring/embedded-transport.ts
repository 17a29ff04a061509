import type { Connection, Transport } from '../client/connection.ts';
import type { Settings } from '../config/settings.ts';
import { MillraceError } from '../core/errors.ts';
import { type EmbeddedDeps, type EmbeddedPipeline, startEmbedded } from './embedded.ts';
import { whenReady } from './ready.ts';

const READY_MS = 60_000;

/**
 * A client's way to a pipeline in this process. It starts with the first client; those that come while it runs share it, and it ends with
 * the last.
 */
export function embeddedTransport(settings: Settings, deps: EmbeddedDeps): Transport {
  let running: Promise<EmbeddedPipeline> | undefined;
  let clients = 0;
  const leave = async (pipeline: EmbeddedPipeline | undefined): Promise<void> => {
    clients -= 1;
    if (clients > 0) return;
    running = undefined;
    await pipeline?.close();
  };
  return {
    async open(): Promise<Connection> {
      clients += 1;
      running ??= startReady(settings, deps);
      let pipeline: EmbeddedPipeline | undefined;
      try {
        pipeline = await running;
        const connection = await pipeline.connect();
        return { ...connection, close: once(() => connection.close().then(() => leave(pipeline))) };
      } catch (error) {
        await leave(pipeline);
        throw error;
      }
    },
  };
}

async function startReady(settings: Settings, deps: EmbeddedDeps): Promise<EmbeddedPipeline> {
  const pipeline = await startEmbedded(settings, deps);
  try {
    const reason =
      (await whenReady(pipeline.stages, pipeline.clock, READY_MS)) ?? (await silentPools(pipeline));
    if (reason === undefined) return pipeline;
    throw new MillraceError('STACK_UNAVAILABLE', `the embedded pipeline did not get ready: ${reason}`);
  } catch (error) {
    await pipeline.close();
    throw error;
  }
}

/**
 * A router goes to the pools that it has heard of, and the first request should find all of them. Waits for a heartbeat of every pool,
 * as the router does, from now on; answers which ones kept silent.
 */
async function silentPools(pipeline: EmbeddedPipeline): Promise<string | undefined> {
  const silent = new Set(pipeline.pools.map(({ pool }) => pool));
  const connection = await pipeline.connect();
  const codec = connection.codecs.for('PoolStatus');
  let cancel = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      cancel = connection.clock.after(READY_MS, resolve);
      connection.bus
        .read({ topics: [connection.topics.fixed('pool-status')], startAt: 'latest' }, (records) => {
          for (const { value } of records) {
            const decoded = codec.decode(value);
            if (decoded.status === 'ok' && decoded.value.slots.length > 0) silent.delete(decoded.value.pool);
          }
          if (silent.size === 0) resolve();
        })
        .catch(reject);
    });
  } finally {
    cancel();
    await connection.close();
  }
  return silent.size === 0 ? undefined : `no heartbeat of the pools ${[...silent].join(', ')}`;
}

function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= action();
    return done;
  };
}
