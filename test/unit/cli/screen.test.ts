import { expect, it } from 'vitest';
import { Screen } from '../../../src/cli/screen.ts';

function terminal(columns: number | undefined) {
  const written: string[] = [];
  return { written, stream: { isTTY: true, columns, write: (text: string) => written.push(text) } };
}

it.each([
  [20, 20],
  [undefined, 80],
])('cuts lines to a terminal of %s columns, so that none wraps', (columns, width) => {
  const { written, stream } = terminal(columns);
  new Screen(stream).draw([`\u001b[1m${'x'.repeat(200)}\u001b[22m`, 'short']);
  const lines = written.join('').replaceAll('\u001b[2K', '').replaceAll('\u001b[J', '').split('\n');
  expect(lines[0]).toBe(`${'x'.repeat(width - 1)}…`);
  expect(lines[1]).toBe('short');
});

it('draws over what it drew', () => {
  const { written, stream } = terminal(80);
  const screen = new Screen(stream);
  screen.draw(['one', 'two']);
  screen.draw(['three']);
  expect(written[1]?.startsWith('\u001b[2A')).toBe(true);
});

it('starts on a clear screen after the terminal changed its width: how lines wrapped there is not known', () => {
  const { written, stream } = terminal(80);
  const screen = new Screen(stream);
  screen.draw(['one', 'two']);
  stream.columns = 40;
  screen.draw(['one', 'two']);
  expect(written[1]?.startsWith('\u001b[2J\u001b[H')).toBe(true);
  screen.draw(['one', 'two']);
  expect(written[2]?.startsWith('\u001b[2A')).toBe(true);
});

it('prints nothing where there is no terminal', () => {
  const written: string[] = [];
  new Screen({ write: (text: string) => written.push(text) }).draw(['one']);
  expect(written).toEqual([]);
});
