import { expect } from 'vitest';
import type { ControllerState } from '../../../../src/core/control/controller-state.ts';
import { inForce } from '../../../../src/core/control/fence.ts';
import { readControllerEvent } from '../../../../src/core/control/read-event.ts';
import type { Observation } from '../../../../src/core/rollout/observation.ts';
import { replay } from '../../../../src/core/rollout/replay.ts';
import { type RolloutState, stageOf } from '../../../../src/core/rollout/rollout-state.ts';
import {
  DEFAULT_ROLLOUT_CONFIG,
  type RolloutConfig,
} from '../../../../src/stages/policy-controller/controller-config.ts';
import { healthyLook, scopeOf } from '../../core/rollout/rollout.fixture.ts';
import {
  type ControlRoom,
  command,
  type LeadOptions,
  lead,
  openControlRoom,
  publish,
  SCOPE,
  told,
} from './controller.fixture.ts';

export const MINUTE_MS = 60_000;

/** An observer that sees a healthy rollout, or what `change` makes of that. */
export class Observer {
  state: () => ControllerState = () => {
    throw new Error('no controller leads');
  };
  change: (seen: Observation) => Observation | undefined = (seen) => seen;
  looks = 0;

  async observe(): Promise<Observation | undefined> {
    this.looks += 1;
    const told = { state: this.state(), log: [] };
    return scopeOf(told).rollout === undefined ? undefined : this.change(healthyLook(told));
  }
}

export type Leading = Awaited<ReturnType<typeof lead>>;

export interface Scene {
  room: ControlRoom;
  observer: Observer;
  leading: Leading;
  /** Another controller, which leads as soon as it can. */
  next(options?: LeadOptions): Promise<Leading>;
}

/** Version 1 is live; version 2 is published and started. */
export async function rolling(
  config: Partial<RolloutConfig> = {},
  options: LeadOptions = {},
): Promise<Scene> {
  const room = await openControlRoom();
  const observer = new Observer();
  const rollout = { ...DEFAULT_ROLLOUT_CONFIG, autoPromote: true, ...config };
  const next = async (own: LeadOptions = {}): Promise<Leading> => {
    const leading = await lead(room, {
      ...own,
      config: { rollout, ...own.config },
      deps: { observer, ...own.deps },
    });
    observer.state = () => leading.stage.controller.state;
    return leading;
  };
  const leading = await next(options);
  await room.send(publish(1));
  await room.send(publish(2));
  await room.send(command('START', '{"version": 2}'));
  await room.world.clock.advanceBy(100);
  return { room, observer, leading, next };
}

export function rolloutOf({ leading }: Pick<Scene, 'leading'>): RolloutState {
  const rollout = leading.stage.controller.state.scopes.get(SCOPE)?.rollout;
  if (rollout === undefined) throw new Error('no rollout runs');
  return rollout;
}

/** On to the canary, whose dwell time begins. */
export async function toCanary(scene: Scene): Promise<void> {
  const isCanary = (): boolean => stageOf(rolloutOf(scene)).name === 'canary';
  expect(await scene.room.world.clock.runUntil(isCanary, 20 * MINUTE_MS)).toBe(true);
  await scene.room.world.clock.advanceBy(100);
}

/** The log as an auditor reads it. */
const logOf = ({ events }: ControlRoom) =>
  inForce(events.map(({ term, evidence }) => ({ term, event: readControllerEvent(evidence) }))).flatMap(
    ({ event }) => event ?? [],
  );

export function expectExplained(room: ControlRoom): void {
  const { disagreements, pending } = replay(logOf(room));
  expect({ disagreements, pending }).toEqual({ disagreements: [], pending: [] });
  expect(new Set(room.events.map(({ eventId }) => eventId)).size).toBe(room.events.length);
}

export const decisions = (room: ControlRoom): string[] =>
  told(room).filter((line) => !line.startsWith('rollout-looked'));
