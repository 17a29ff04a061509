import { MillraceError } from '../../../../src/core/errors.ts';
import { type PublishedModel, versionName } from '../../../../src/core/model/published-model.ts';
import type { Accelerator } from '../../../../src/ports/accelerator.ts';
import type { ModelLibrary } from '../../../../src/ports/model-library.ts';
import { type HandDrivenModel, handDrivenModel } from './model.fixture.ts';

/** Versions that come, fail and go as the test says; each takes a turn. */
export interface HandDrivenLibrary {
  library: ModelLibrary;
  backend: Pick<Accelerator, 'load'>;
  /** By `family@version`: why it cannot be fetched, or loaded. */
  readonly unfetched: Map<string, MillraceError>;
  readonly unloadable: Map<string, MillraceError>;
  /** Whose files come so slowly that only an end of the fetch ends it. */
  readonly dripping: Set<string>;
  /** What was done, in order. */
  readonly did: string[];
  /** Models that were loaded, by name. */
  readonly models: Map<string, HandDrivenModel>;
  kept: string | undefined;
  /** Versions of which the files were to stay, each time that others were to go. */
  readonly retained: string[];
}

export function handDrivenLibrary(): HandDrivenLibrary {
  const unfetched = new Map<string, MillraceError>();
  const unloadable = new Map<string, MillraceError>();
  const dripping = new Set<string>();
  const did: string[] = [];
  const models = new Map<string, HandDrivenModel>();
  const hand: HandDrivenLibrary = {
    unfetched,
    unloadable,
    dripping,
    did,
    models,
    kept: undefined,
    retained: [],
    library: {
      async fetch(model: PublishedModel, over: AbortSignal) {
        did.push(`fetch ${versionName(model)}`);
        if (dripping.has(versionName(model))) {
          await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
          throw new MillraceError('MODEL_UNAVAILABLE', 'the fetch was ended');
        }
        const refusal = unfetched.get(versionName(model));
        if (refusal !== undefined) throw refusal;
        return { isOfFolder: false };
      },
      forget: async (model) => void did.push(`forget ${versionName(model)}`),
      retain: async (models) =>
        void hand.retained.push(
          models
            .map(({ version }) => version)
            .sort()
            .join(' '),
        ),
      keepCatalogue: async (text) => {
        hand.kept = text;
      },
      keptCatalogue: async () => hand.kept,
    },
    backend: {
      async load(family, version, options) {
        const name = versionName({ family, version });
        did.push(`load ${name}${options?.besideOthers === true ? ' beside others' : ''}`);
        const refusal = unloadable.get(name);
        if (refusal !== undefined) throw refusal;
        const model = handDrivenModel({
          family,
          version,
          unload: async () => void did.push(`unload ${name}`),
        });
        models.set(name, model);
        return model;
      },
    },
  };
  return hand;
}

/** Where nothing is ever published. */
export function noLibrary(): ModelLibrary {
  return {
    fetch: async () => {
      throw new MillraceError('INVALID_MODEL', 'there is no library');
    },
    forget: async () => undefined,
    retain: async () => undefined,
    keepCatalogue: async () => undefined,
    keptCatalogue: async () => undefined,
  };
}
