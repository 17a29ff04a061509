import { memoryControlServer } from '../../src/adapters/memory/control-store.ts';
import { silentTelemetry } from '../../src/adapters/memory/telemetry.ts';
import { redisControlStore } from '../../src/adapters/redis/control-store.ts';
import { systemClock } from '../../src/adapters/system/clock.ts';
import type { ControlStore } from '../../src/ports/control-store.ts';
import { controlStoreConformance, type StoreFactory } from './control-store.suite.ts';
import { redisUrl, uniquePrefix } from './redis.fixture.ts';

function factory(connect: () => ControlStore): StoreFactory {
  const stores: ControlStore[] = [];
  return {
    connect: () => {
      const store = connect();
      stores.push(store);
      return store;
    },
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
    },
  };
}

controlStoreConformance('memory', async () => {
  const server = memoryControlServer({ clock: systemClock() });
  return factory(() => server.connect());
});

controlStoreConformance('Redis', async () => {
  const prefix = uniquePrefix();
  return factory(() =>
    redisControlStore({ url: redisUrl(), prefix, clock: systemClock(), telemetry: silentTelemetry() }),
  );
});
