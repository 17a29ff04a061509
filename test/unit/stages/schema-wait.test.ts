import { describe, expect, it } from 'vitest';
import { silentTelemetry } from '../../../src/adapters/memory/telemetry.ts';
import { MillraceError } from '../../../src/core/errors.ts';
import { virtualClock } from '../../../src/simulation/virtual-clock.ts';
import { SchemaWait } from '../../../src/stages/schema-wait.ts';

function start() {
  const clock = virtualClock();
  const telemetry = silentTelemetry();
  const state = { away: true, refuses: false, asked: 0 };
  const learn = async (): Promise<'learned'> => {
    state.asked += 1;
    if (state.refuses) throw new MillraceError('INVALID_CONFIG', 'who is there?');
    if (state.away) throw new Error('nobody there');
    return 'learned';
  };
  const resumed: string[] = [];
  const failed: string[] = [];
  const wait = new SchemaWait<string>('test', { codecs: { learn }, clock, telemetry }, (item, error) =>
    failed.push(`${item}: ${error}`),
  );
  const add = (item: string, schemaId = 1): void => wait.wait(item, schemaId, () => resumed.push(item));
  return { clock, telemetry, state, resumed, failed, wait, add };
}

describe('work that waits for a schema', () => {
  it('goes on at once where the registry answers', async () => {
    const { clock, state, resumed, add } = start();
    state.away = false;
    add('a');
    await clock.advanceBy(0);
    expect(resumed).toEqual(['a']);
  });

  it('goes on in the order of arrival when the registry is back, each once', async () => {
    const { clock, state, resumed, add } = start();
    for (const item of ['a', 'b', 'c']) add(item);
    await clock.advanceBy(60_000);
    expect(resumed).toEqual([]);
    state.away = false;
    await clock.advanceBy(60_000);
    expect(resumed).toEqual(['a', 'b', 'c']);
  });

  it('waits for a registry that refuses us too, asks it seldom, and says why', async () => {
    const { clock, telemetry, state, resumed, add } = start();
    state.refuses = true;
    add('a');
    await clock.advanceBy(59_000);
    expect(state.asked).toBe(2);
    expect(telemetry.logs.map(({ fields }) => fields['error'])).toEqual([
      expect.stringContaining('who is there?'),
    ]);
    state.refuses = false;
    state.away = false;
    await clock.advanceBy(1_000);
    expect(resumed).toEqual(['a']);
  });

  it('that is given up is answered, asks no more, and never goes on', async () => {
    const { clock, state, resumed, wait, add } = start();
    for (const item of ['a', 'b', 'c']) add(item);
    await clock.advanceBy(100);
    expect(wait.abandon((item) => item !== 'b')).toEqual(['a', 'c']);
    expect(wait.abandon((item) => item === 'a')).toEqual([]);
    state.away = false;
    await clock.advanceBy(1_000);
    expect(resumed).toEqual(['b']);
    expect(clock.pending).toBe(0);
  });

  it('that cannot go on is told, and holds up nothing else', async () => {
    const { clock, state, resumed, failed, wait, add } = start();
    state.away = false;
    wait.wait('a', 1, () => {
      throw new Error('odd');
    });
    add('b');
    await clock.advanceBy(0);
    expect({ failed, resumed }).toEqual({ failed: ['a: Error: odd'], resumed: ['b'] });
  });

  it('warns once per schema and outage', async () => {
    const { clock, telemetry, state, add } = start();
    add('a', 1);
    add('b', 1);
    add('c', 2);
    await clock.advanceBy(5_000);
    expect(telemetry.logs.map(({ fields }) => fields['schemaId'])).toEqual([1, 2]);
    state.away = false;
    await clock.advanceBy(1_000);
    state.away = true;
    add('d', 1);
    await clock.advanceBy(1_000);
    expect(telemetry.logs).toHaveLength(3);
  });
});
