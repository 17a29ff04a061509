import { expect, it } from 'vitest';
import { Installation } from './installation.ts';

it.each(['split', 'fused'] as const)(
  'a slot whose worker died is counted and named by its pool: %s',
  async (topology) => {
    const installation = new Installation({ seed: 1, deliveryDelayMs: 5, topology });
    await installation.open();
    installation.startAll();
    const { telemetry } = installation;
    const without = (pool: string): number => telemetry.value('millrace_slots_without_owner', { pool });
    const told = () =>
      telemetry.logs.filter(({ message }) => message.startsWith('slots of the pool have no owner'));
    await installation.pass(20_000);
    const [worker] = installation.up('cpu-');
    if (worker === undefined) throw new Error('no worker');
    expect(without('cpu')).toBe(0);
    expect(told()).toEqual([]);
    installation.crash(worker);
    await installation.pass(5_000);
    expect(without('cpu')).toBe(1);
    await installation.pass(20_000);
    const slot = Number(worker.name.split('-').at(-1));
    expect(told().map(({ fields }) => fields)).toContainEqual(
      expect.objectContaining({ pool: 'cpu', slots: [slot] }),
    );
    installation.startWorker('cpu', slot);
    await installation.pass(5_000);
    expect(without('cpu')).toBe(0);
  },
);
