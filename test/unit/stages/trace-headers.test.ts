import { describe, expect, it } from 'vitest';
import { DEAD, LARGE, OUT, outcomeOf, RESULTS, SOURCE, startPassingStage } from './passing-stage.fixture.ts';
import { codecs } from './records.fixture.ts';

const TOPICS = { [SOURCE]: LARGE, [DEAD]: LARGE, [RESULTS]: LARGE, [OUT]: LARGE };
const TRACE = {
  traceparent: Buffer.from('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'),
  tracestate: Buffer.from('vendor=1'),
};

describe('the trace of a record travels in what comes of it', () => {
  it('in outputs, and no other header with it', async () => {
    const stage = await startPassingStage(TOPICS);
    await stage.send(await outcomeOf(1), { ...TRACE, tenant: Buffer.from('a') });
    await stage.advanced();
    expect((await stage.stored(OUT)).map(({ headers }) => headers)).toEqual([TRACE]);
    expect((await stage.stored(RESULTS)).map(({ headers }) => headers)).toEqual([TRACE]);
  });

  it('in the result of a dead letter, and in the letter beside its own headers', async () => {
    const stage = await startPassingStage(TOPICS);
    await stage.send(Buffer.from('no frame'), TRACE);
    await stage.advanced();
    const own = codecs.for('ScoredResult').headers;
    expect((await stage.stored(RESULTS)).map(({ headers }) => headers)).toEqual([{ ...TRACE, ...own }]);
    const [letter] = await stage.stored(DEAD);
    expect(letter?.headers).toMatchObject(TRACE);
    expect(letter?.headers['__connect.errors.stage']?.toString()).toBe('test');
  });

  it('and is not made up where there is none', async () => {
    const stage = await startPassingStage(TOPICS);
    await stage.send(await outcomeOf(1), { tracestate: TRACE.tracestate });
    await stage.advanced();
    expect((await stage.stored(OUT)).map(({ headers }) => headers)).toEqual([{}]);
  });
});
