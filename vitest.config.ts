import { defineConfig } from 'vitest/config';

const sequence = { shuffle: true } as const;

/** Looks at a client library as it is before the patches, which change it for a whole process. */
const UNPATCHED = 'test/unit/adapters/kafka/patches.test.ts';

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/{unit,contract,simulation}/**/*.test.ts', 'test/architecture.test.ts'],
          exclude: [UNPATCHED],
          // Loading the same modules anew for each file is a third of the work.
          isolate: false,
          sequence,
          testTimeout: 60_000,
        },
      },
      { test: { name: 'unpatched', include: [UNPATCHED], sequence, testTimeout: 60_000 } },
      {
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          globalSetup: ['test/global-setup.ts'],
          sequence,
          testTimeout: 90_000,
          hookTimeout: 90_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/global-setup.ts'],
          sequence,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'interop',
          include: ['test/interop/**/*.test.ts'],
          sequence,
          testTimeout: 120_000,
          // A server starts in them, and where it is not installed yet it is.
          hookTimeout: 600_000,
        },
      },
      {
        test: {
          name: 'slow',
          include: ['test/slow/**/*.test.ts'],
          globalSetup: ['test/global-setup.ts'],
          fileParallelism: false,
          testTimeout: 600_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
