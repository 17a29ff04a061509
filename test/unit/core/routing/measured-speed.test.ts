import { describe, expect, it } from 'vitest';
import { MeasuredSpeed } from '../../../../src/core/routing/measured-speed.ts';

function after(declared: number, real: number, completions: number): number {
  const speed = new MeasuredSpeed(declared);
  for (let n = 0; n < completions; n++) speed.observe(10, 10 / real);
  return speed.value();
}

describe('MeasuredSpeed', () => {
  it.each([
    { what: 'the declared one before anything is measured', real: 1, completions: 0, value: 4 },
    { what: 'the declared one after a single completion', real: 1, completions: 1, value: 4 },
    { what: 'the declared one where the measured is close above', real: 4.9, completions: 100, value: 4 },
    { what: 'the declared one where the measured is close below', real: 3.3, completions: 100, value: 4 },
    { what: 'the measured one of a slow worker', real: 1, completions: 100, value: 1 },
    { what: 'the measured one of a fast worker', real: 6, completions: 100, value: 6 },
  ])('is $what', ({ real, completions, value }) => {
    expect(after(4, real, completions)).toBeCloseTo(value);
  });

  it('follows a worker that turns slow within some tens of completions, and back', () => {
    const speed = new MeasuredSpeed(4);
    for (let n = 0; n < 200; n++) speed.observe(10, 2.5);
    expect(speed.value()).toBe(4);
    for (let n = 0; n < 30; n++) speed.observe(10, 10);
    expect(speed.value()).toBeLessThan(2);
    for (let n = 0; n < 150; n++) speed.observe(10, 2.5);
    expect(speed.value()).toBe(4);
  });

  it('bears completions without busy time', () => {
    expect(new MeasuredSpeed(2).value()).toBe(2);
    const speed = new MeasuredSpeed(2);
    for (let n = 0; n < 10; n++) speed.observe(1, 0);
    expect(speed.value()).toBe(2);
  });
});
