import { expect, it } from 'vitest';
import {
  DEAD,
  LARGE,
  OUT,
  outcomeOf,
  RESULTS,
  SMALL,
  SOURCE,
  startPassingStage,
} from './passing-stage.fixture.ts';

it('an output that is too large for its topic makes a dead letter of the record', async () => {
  const stage = await startPassingStage({ [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE, [OUT]: SMALL });
  const value = await outcomeOf(5_000);
  await stage.send(value);
  await stage.advanced();
  const [letter, ...others] = await stage.stored(DEAD);
  expect(others).toEqual([]);
  expect(letter?.value).toEqual(value);
  expect(letter?.headers['__connect.errors.exception.class.name']?.toString()).toBe('millrace.TOO_LARGE');
});

it('a dead letter that is too large for its topic keeps a digest, is told once, and the partition goes on', async () => {
  const stage = await startPassingStage({ [SOURCE]: LARGE, [DEAD]: SMALL, [RESULTS]: LARGE, [OUT]: LARGE });
  await stage.send(Buffer.alloc(5_000, 'not a frame'));
  await stage.advanced();
  const [letter, ...others] = await stage.stored(DEAD);
  expect(others).toEqual([]);
  expect(letter?.value?.toString()).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(letter?.key?.toString()).toBe('r1');
  expect(letter?.headers['millrace.value.digest']?.toString()).toBe('sha256');
  expect(await stage.stored(RESULTS)).toHaveLength(1);
});

it('what was stored is not sent again with what was refused', async () => {
  const stage = await startPassingStage({ [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE });
  await stage.send(await outcomeOf(10));
  await stage.world.clock.advanceBy(3_000);
  expect(await stage.stored(RESULTS)).toHaveLength(1);
  await stage.world.createTopic(stage.bus, 1, LARGE, OUT);
  await stage.advanced();
  expect(await stage.stored(OUT)).toHaveLength(1);
  expect(await stage.stored(RESULTS)).toHaveLength(1);
});

it('an output without a place is not sent there again: the record is handled anew', async () => {
  const partitions = [7, 7, 0];
  const stage = await startPassingStage(
    { [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE, [OUT]: LARGE },
    (value) => [{ topic: OUT, partition: partitions.shift() ?? 0, key: null, value }],
  );
  const value = await outcomeOf(10);
  await stage.send(value);
  await stage.advanced();
  expect((await stage.stored(OUT)).map((record) => record.value)).toEqual([value]);
  expect(partitions).toEqual([]);
});

it('a record whose output is refused goes with its partition: nothing is tried any more', async () => {
  const topics = { [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE, [OUT]: LARGE };
  let tries = 0;
  const { stage, world, send } = await startPassingStage(topics, (value) => {
    tries += 1;
    return [{ topic: OUT, partition: 7, key: null, value }];
  });
  await send(await outcomeOf(10));
  await world.clock.advanceBy(2_100);
  expect([stage.inFlight(), tries > 2]).toEqual([1, true]);
  const before = tries;
  const closing = stage.close();
  await world.clock.advanceBy(1);
  expect(stage.inFlight()).toBe(0);
  await world.settle(closing);
  await world.clock.advanceBy(5_000);
  expect(tries).toBe(before);
});
