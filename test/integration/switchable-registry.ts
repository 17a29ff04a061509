import { MillraceError } from '../../src/core/errors.ts';
import type { SchemaRegistry } from '../../src/ports/schema-registry.ts';

/** A registry that a test can take away, and that counts how often each id is asked for. */
export interface SwitchableRegistry extends SchemaRegistry {
  /** From now on every call is answered like one to a registry that does not answer. */
  switchOff(): void;
  switchOn(): void;
  /** Of one id, or of all. */
  lookUps(id?: number): number;
}

export function switchableRegistry(inner: SchemaRegistry): SwitchableRegistry {
  const lookUps = new Map<number, number>();
  let isOff = false;
  const checkIsOn = (): void => {
    if (isOff) throw new MillraceError('REGISTRY_UNAVAILABLE', 'the test switched the registry off');
  };
  return {
    async register(subject, schema, compatibility) {
      checkIsOn();
      return inner.register(subject, schema, compatibility);
    },
    async schemaById(id) {
      lookUps.set(id, (lookUps.get(id) ?? 0) + 1);
      checkIsOn();
      return inner.schemaById(id);
    },
    switchOff() {
      isOff = true;
    },
    switchOn() {
      isOff = false;
    },
    lookUps(id) {
      if (id !== undefined) return lookUps.get(id) ?? 0;
      return [...lookUps.values()].reduce((sum, count) => sum + count, 0);
    },
  };
}
