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
  const reason = await whenReady(pipeline.stages, pipeline.clock, READY_MS);
  if (reason === undefined) return pipeline;
  await pipeline.close();
  throw new MillraceError('STACK_UNAVAILABLE', `the embedded pipeline did not get ready: ${reason}`);
}

function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= action();
    return done;
  };
}
