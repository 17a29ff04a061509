import { describe, expect, it } from 'vitest';
import { FleetState } from '../../../../src/core/routing/fleet-state.ts';
import type { Slot } from '../../../../src/core/routing/slot.ts';
import { slotAck, workerStatus } from './routing.fixture.ts';

const CPU = workerStatus({ models: [] });

/** A fleet of one slot with the dispatches 1, 2, 3 of 10 ms each on it. */
function dispatched(): { fleet: FleetState; slot: Slot } {
  const fleet = new FleetState({ statusStaleMs: 1_000, creditsMax: 10 });
  fleet.applyStatus(CPU, 0);
  const [slot] = fleet.slotsOf('cpu');
  if (slot === undefined) throw new Error('no slot');
  for (const sequence of [1, 2, 3])
    fleet.recordDispatch(slot, { sequence, predictedMs: 10, dispatchedAtMs: 0, giveUpAtMs: 1_000 });
  return { fleet, slot };
}

describe('a slot whose worker starts anew', () => {
  it('has in front of it all that is outstanding: nothing of it reached the new life', () => {
    const { fleet, slot } = dispatched();
    fleet.applyAck(slotAck({ lastSequenceSeen: 3, queuedPredictedMs: 30 }), 5);
    expect(slot.expectedWaitMs(5)).toBe(30);
    fleet.applyStatus({ ...CPU, incarnation: 'life 2', queuedPredictedMs: 4 }, 10);
    expect(slot.expectedWaitMs(10)).toBe(34);
    expect(slot.credits.outstanding).toBe(3);
    fleet.applyAck(slotAck({ incarnation: 'life 2', lastSequenceSeen: 3, queuedPredictedMs: 20 }), 12);
    // Of what is not acknowledged seven tenths wait at least, whatever the worker says.
    expect(slot.expectedWaitMs(12)).toBe(21);
    fleet.applyAck(slotAck({ incarnation: 'life 2', lastSequenceSeen: 3, queuedPredictedMs: 25 }), 12);
    expect(slot.expectedWaitMs(12)).toBe(25);
  });

  it('has its credits back from whichever life ended what was dispatched, but its queue only from the present one', () => {
    const { fleet, slot } = dispatched();
    fleet.applyStatus({ ...CPU, incarnation: 'life 2' }, 10);
    expect(fleet.applyAck(slotAck({ completed: [1], sojournMs: [1], queuedPredictedMs: 500 }), 11)).toBe(
      true,
    );
    expect([slot.credits.outstanding, slot.expectedWaitMs(11)]).toEqual([2, 19]);
    expect(fleet.applyAck(slotAck({ incarnation: 'life 3', completed: [2, 3], sojournMs: [1, 1] }), 12)).toBe(
      true,
    );
    expect([slot.credits.outstanding, slot.expectedWaitMs(12)]).toEqual([0, 0]);
  });

  it('is told so by an earlier life that ended nothing: there is no more room than before', () => {
    const { fleet } = dispatched();
    fleet.applyStatus({ ...CPU, incarnation: 'life 2' }, 10);
    expect(fleet.applyAck(slotAck({ completed: [9], sojournMs: [1] }), 11)).toBe(false);
  });
});

describe('a slot that another worker takes over', () => {
  it('takes along what is outstanding, and leaves nothing of it to the one before', () => {
    const fleet = new FleetState({ statusStaleMs: 1_000, creditsMax: 10 });
    fleet.applyStatus({ ...CPU, slots: [0, 1] }, 0);
    const [moved, stays] = fleet.slotsOf('cpu');
    if (moved === undefined || stays === undefined) throw new Error('no slot');
    fleet.recordDispatch(moved, { sequence: 1, predictedMs: 10, dispatchedAtMs: 0, giveUpAtMs: 1_000 });
    expect(stays.expectedWaitMs(0)).toBe(10);
    fleet.applyStatus({ ...CPU, worker: 'w2', incarnation: 'i2', slots: [0] }, 0);
    expect([moved.expectedWaitMs(0), stays.expectedWaitMs(0)]).toEqual([10, 0]);
  });
});

describe('the share of a router', () => {
  it('of a worker’s work is not known by what others sent before it began', () => {
    const { fleet, slot } = dispatched();
    fleet.applyAck(slotAck({ lastSequenceSeen: 3, enqueuedPredictedMs: 1e6 }), 5);
    expect(slot.backlog.share).toBe(1);
    fleet.recordDispatch(slot, { sequence: 4, predictedMs: 10, dispatchedAtMs: 6, giveUpAtMs: 1_000 });
    fleet.applyAck(slotAck({ lastSequenceSeen: 4, enqueuedPredictedMs: 1e6 + 40 }), 8);
    expect(slot.backlog.share).toBe(0.25);
  });
});

describe('a worker that left and comes back', () => {
  it('is heard again', () => {
    const { fleet, slot } = dispatched();
    fleet.removeWorker('w1', 10);
    expect(fleet.isLive(slot, 10)).toBe(false);
    fleet.applyStatus({ ...CPU, sequence: 1 }, 10);
    expect(fleet.isLive(slot, 10)).toBe(true);
  });
});

describe('an acknowledgement', () => {
  it('of a slot that nobody claimed changes nothing', () => {
    const { fleet } = dispatched();
    expect(fleet.applyAck(slotAck({ slot: 7, completed: [1] }), 1)).toBe(false);
    expect(fleet.applyAck(slotAck({ pool: 'gpu', completed: [1] }), 1)).toBe(false);
  });

  it('that comes twice gives each credit back once', () => {
    const { fleet, slot } = dispatched();
    for (let n = 0; n < 2; n += 1) fleet.applyAck(slotAck({ completed: [1], sojournMs: [1] }), 1);
    expect(slot.credits.outstanding).toBe(2);
  });
});

it('workers that come and go without a good-bye are not remembered for ever', () => {
  const fleet = new FleetState({ statusStaleMs: 1_000, creditsMax: 8 });
  for (let minute = 0; minute < 100; minute += 1) {
    fleet.applyStatus(workerStatus({ worker: `w${minute}`, incarnation: `i${minute}` }), minute * 60_000);
    fleet.sweep(minute * 60_000);
  }
  expect(fleet.workers).toBeLessThan(5);
});

describe('credits of a slot', () => {
  it('are this router’s share of a batch, by how many routers the acknowledgement tells of', () => {
    const { fleet, slot } = dispatched();
    fleet.applyAck(slotAck({ batchRequests: 9, routers: 1 }), 5);
    expect(slot.credits.limit(5)).toBe(9);
    fleet.applyAck(slotAck({ batchRequests: 9, routers: 3 }), 6);
    expect(slot.credits.limit(6)).toBe(3);
  });
});
