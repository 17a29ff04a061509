import { memoryControlStore } from '../../../src/adapters/memory/control-store.ts';
import type { Environment } from '../../../src/config/load-settings.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { createTopicDelay } from '../../../src/core/latency/topic-delay.ts';
import { seededRandom } from '../../../src/core/random/seeded-random.ts';
import type { ControlStore } from '../../../src/ports/control-store.ts';
import { startPolicyController } from '../../../src/wiring/policy-controller.ts';
import { readFleet } from '../../../src/wiring/policy-files.ts';
import { type MemoryInstallation, memoryInstallation } from '../client/memory-installation.ts';
import { INSTALLATION, millrace, type Ran } from './cli.fixture.ts';

/** An installation in memory with a real controller, and nothing else of the pipeline. */
export interface ControlledInstallation {
  installation: MemoryInstallation;
  store: ControlStore;
  /** A command of the user `ana`. */
  run(...args: readonly string[]): Promise<Ran>;
  /** Ends this controller and starts another one. */
  restart(environment?: Environment): Promise<void>;
  close(): Promise<void>;
}

/** @param environment the controller's own, beside what names the installation */
export async function controlledInstallation(environment: Environment = {}): Promise<ControlledInstallation> {
  const installation = await memoryInstallation();
  const start = async (own: Environment) => {
    const { settings } = loadSettings({ ...INSTALLATION, ...own });
    const connection = await installation.open();
    const deps = { ...connection, random: seededRandom(1), topicDelay: createTopicDelay() };
    const store = memoryControlStore(connection.clock);
    const stage = await startPolicyController(settings, deps, { fleet: readFleet(settings), store });
    const close = async (): Promise<void> => {
      await stage.close();
      await connection.close();
    };
    return { store, close };
  };
  let controller = await start(environment);
  return {
    installation,
    get store() {
      return controller.store;
    },
    run: (...args) =>
      millrace(args, {
        environment: { ...INSTALLATION, USER: 'ana' },
        transport: () => ({ open: () => installation.open() }),
      }),
    async restart(own = environment) {
      await controller.close();
      controller = await start(own);
    },
    async close() {
      await controller.close();
      await installation.close();
    },
  };
}
