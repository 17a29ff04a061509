import { readFileSync } from 'node:fs';

/**
 * A captured terminal screen as SVG, on standard output: `tmux capture-pane -e -p > screen.txt`, then
 * `node docs/images/terminal-to-svg.ts screen.txt '$ npm start' > docs/images/start.svg`.
 * Knows what millrace prints: bold, dim, and the colours below.
 */

const COLORS: Readonly<Record<string, string>> = { 31: '#f28b82', 32: '#81c995', 33: '#fdd663', 36: '#78d9ec' };
const BACKGROUND = '#1b1d21';
const FOREGROUND = '#e3e5e8';
const CHARACTER_WIDTH = 8.4;
const LINE_HEIGHT = 19;
const MARGIN = 18;
const ESCAPE = String.fromCharCode(27);

interface Style {
  bold: boolean;
  dim: boolean;
  color: string | undefined;
}

interface Piece {
  text: string;
  style: Style;
}

const PLAIN: Style = { bold: false, dim: false, color: undefined };

function applied(style: Style, codes: readonly string[]): Style {
  return codes.reduce((now, code) => {
    if (code === '' || code === '0') return PLAIN;
    if (code === '1') return { ...now, bold: true };
    if (code === '2') return { ...now, dim: true };
    if (code === '39') return { ...now, color: undefined };
    return code in COLORS ? { ...now, color: COLORS[code] } : now;
  }, style);
}

/** A style goes on into the next line until it is reset. */
function piecesOf(line: string, start: Style): { pieces: Piece[]; style: Style } {
  const pieces: Piece[] = [];
  let style = start;
  for (const part of line.split(`${ESCAPE}[`).map((text, index) => (index === 0 ? `m${text}` : text))) {
    const end = part.indexOf('m');
    if (end > 0 || part.startsWith('m') === false) style = applied(style, part.slice(0, end).split(';'));
    const text = part.slice(end + 1);
    if (text !== '') pieces.push({ text, style });
  }
  return { pieces, style };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function drawn({ text, style }: Piece): string {
  const attributes = [
    style.bold ? ' font-weight="bold"' : '',
    style.dim ? ' opacity="0.6"' : '',
    style.color === undefined ? '' : ` fill="${style.color}"`,
  ].join('');
  return attributes === '' ? escaped(text) : `<tspan${attributes}>${escaped(text)}</tspan>`;
}

const [file = '', prompt = ''] = process.argv.slice(2);
const screen = readFileSync(file, 'utf8').trimEnd().split('\n');
const lines: Piece[][] = prompt === '' ? [] : [[{ text: prompt, style: PLAIN }], []];
let style = PLAIN;
for (const line of screen) {
  const read = piecesOf(line, style);
  lines.push(read.pieces);
  style = read.style;
}
const columns = Math.max(...lines.map((pieces) => pieces.reduce((sum, { text }) => sum + text.length, 0)));
const width = Math.ceil(columns * CHARACTER_WIDTH + 2 * MARGIN);
const height = lines.length * LINE_HEIGHT + 2 * MARGIN;
const rows = lines.map((pieces, index) => {
  const y = MARGIN + (index + 0.75) * LINE_HEIGHT;
  const length = pieces.reduce((sum, { text }) => sum + text.length, 0);
  if (length === 0) return '';
  return `<text x="${MARGIN}" y="${y}" textLength="${(length * CHARACTER_WIDTH).toFixed(1)}" xml:space="preserve">${pieces.map(drawn).join('')}</text>`;
});
console.log(
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="${FOREGROUND}">`,
    `<rect width="${width}" height="${height}" rx="8" fill="${BACKGROUND}"/>`,
    ...rows.filter((row) => row !== ''),
    '</svg>',
  ].join('\n'),
);
