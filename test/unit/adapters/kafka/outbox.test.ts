import { expect, it } from 'vitest';
import { Outbox } from '../../../../src/adapters/kafka/outbox.ts';
import { Watched } from '../../alive.fixture.ts';

it('an outbox that is never empty lets go of what the broker stored', async () => {
  const outbox = new Outbox('t', 0);
  const watched = new Watched();
  const push = (): void => {
    const value = Buffer.alloc(1_000);
    void outbox.push(watched.add({ topic: 't', partition: 0, key: null, value }), value.length);
  };
  push();
  for (let round = 0; round < 500; round++) {
    push();
    outbox.send({ count: 1, bytes: 1e6 });
    for (const { resolve } of outbox.stored()) resolve();
  }
  expect({ letGo: await watched.areAlive(1), isEmpty: outbox.isEmpty }).toEqual({
    letGo: true,
    isEmpty: false,
  });
});
