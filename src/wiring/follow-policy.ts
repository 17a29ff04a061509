import { fileLastKnownGood } from '../adapters/system/last-known-good.ts';
import { policyThread } from '../adapters/system/policy-thread.ts';
import type { Settings } from '../config/settings.ts';
import { compilePolicy } from '../core/policy/compile.ts';
import type { Fleet } from '../core/policy/fleet.ts';
import type { ControlStore } from '../ports/control-store.ts';
import type { ActiveCanary, ActivePolicy } from '../stages/request-router/active-policy.ts';
import { PolicySource } from '../stages/request-router/policy-source.ts';
import type { Router } from '../stages/request-router/router.ts';
import type { StageDeps } from '../stages/stage.ts';
import { compileChecked, digestOf } from './policy-files.ts';
import { storeTrust } from './trusted-keys.ts';

/** What decides. */
export interface Policies {
  stable: ActivePolicy;
  canary: ActiveCanary | undefined;
}

export interface PolicyFollowing {
  /** Whose pointer is followed, and under which what was applied is reported. */
  readonly scope: string;
  start(): Promise<void>;
  policies(): Policies;
  /** From now on this router decides by them. */
  swapOn(router: Router): void;
  close(): Promise<void>;
}

/** Follows the pointer from before there is a router, so that its first request already meets the policy in force. */
export function followPolicy(
  settings: Settings,
  deps: StageDeps,
  surroundings: {
    fleet: Fleet;
    store: ControlStore;
    name: string;
    builtIn: ActivePolicy;
    checkIn?: 'thread' | 'event-loop';
  },
): PolicyFollowing {
  const { fleet, store, name, builtIn } = surroundings;
  const thread = surroundings.checkIn === 'event-loop' ? undefined : policyThread(deps.clock);
  let policies: Policies = { stable: builtIn, canary: undefined };
  let swap: (() => void) | undefined;
  let router: Router | undefined;
  const { stateFolder } = settings.router;
  const scope = `policy/${builtIn.ref.name}`;
  const source = new PolicySource({
    store,
    clock: deps.clock,
    random: deps.random.stream('policy.poll'),
    telemetry: deps.telemetry,
    scope,
    member: name,
    lastKnownGood:
      stateFolder === ''
        ? undefined
        : fileLastKnownGood({ folder: stateFolder, logger: deps.telemetry.logger }),
    digest: digestOf,
    trust: storeTrust(settings, 'policies', deps.telemetry.logger),
    compile: async (bytes, root) =>
      // Before there is a router nothing can be held up, and a start is quicker without a thread.
      thread === undefined || swap === undefined
        ? compileChecked(bytes, fleet, root)
        : compilePolicy(await thread.read(bytes, fleet, root), { fleet }),
    unservable: (compiled) => router?.unservable(compiled),
    apply: (stable, canary) => {
      policies = { stable, canary };
      swap?.();
    },
  });
  return {
    scope,
    start: () => source.start(),
    async close() {
      await source.close();
      await thread?.close();
    },
    policies: () => policies,
    swapOn(own) {
      router = own;
      swap = () => own.setPolicy(policies.stable, policies.canary);
      if (own.policy !== policies.stable || own.canary !== policies.canary) swap();
    },
  };
}
