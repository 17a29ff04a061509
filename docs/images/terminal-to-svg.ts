import { readFileSync } from 'node:fs';

/**
 * A captured terminal screen as SVG, on standard output: `tmux capture-pane -e -p > screen.txt`, then
 * `node docs/images/terminal-to-svg.ts screen.txt '$ npm start' '<title>' > docs/images/start.svg`.
 * Knows what millrace prints: bold, dim, and the colours below.
 */

const COLORS: Readonly<Record<string, string>> = {
  31: '#f28b82',
  32: '#81c995',
  33: '#fdd663',
  36: '#78d9ec',
};
const BACKGROUND = '#1b1d21';
const FOREGROUND = '#e3e5e8';
const CHARACTER_WIDTH = 8.4;
const LINE_HEIGHT = 19;
const MARGIN = 18;
/** Its group is the codes, so that `split` answers text and codes by turns. */
const STYLE_CHANGE = new RegExp(`${String.fromCharCode(27)}\\[([\\d;]*)m`);

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

function applied(style: Style, code: string): Style {
  switch (code) {
    case '':
    case '0':
      return PLAIN;
    case '1':
      return { ...style, bold: true };
    case '2':
      return { ...style, dim: true };
    case '39':
      return { ...style, color: undefined };
    default:
      return code in COLORS ? { ...style, color: COLORS[code] } : style;
  }
}

/** A style goes on into the next line until it is reset. */
function piecesOf(line: string, start: Style): { pieces: Piece[]; style: Style } {
  const pieces: Piece[] = [];
  let style = start;
  line.split(STYLE_CHANGE).forEach((part, index) => {
    if (index % 2 === 1) for (const code of part.split(';')) style = applied(style, code);
    else if (part !== '') pieces.push({ text: part, style });
  });
  return { pieces, style };
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** One element per piece, at its column and of its width, so that every viewer's font keeps the columns. */
function drawn(pieces: readonly Piece[], row: number): string {
  const y = MARGIN + (row + 0.75) * LINE_HEIGHT;
  let column = 0;
  return pieces
    .map(({ text, style }) => {
      const indent = text.length - text.trimStart().length;
      const x = MARGIN + (column + indent) * CHARACTER_WIDTH;
      const width = text.trim().length * CHARACTER_WIDTH;
      column += text.length;
      if (width === 0) return '';
      const attributes = [
        style.bold ? ' font-weight="bold"' : '',
        style.dim ? ' opacity="0.6"' : '',
        style.color === undefined ? '' : ` fill="${style.color}"`,
      ].join('');
      return `<text x="${x.toFixed(1)}" y="${y}" textLength="${width.toFixed(1)}" xml:space="preserve"${attributes}>${escaped(text.trim())}</text>`;
    })
    .filter((element) => element !== '')
    .join('\n');
}

const [file = '', prompt = '', title = prompt] = process.argv.slice(2);
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
const rows = lines.map(drawn);
console.log(
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="${FOREGROUND}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${BACKGROUND}"/>`,
    ...rows.filter((row) => row !== ''),
    '</svg>',
  ].join('\n'),
);
