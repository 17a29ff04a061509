import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'models/README.md', 'schemas/README.md'],
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Without its code: what looks like a link or a heading there is none. */
function textOf(page: string): string {
  return readFileSync(page, 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
}

/** As GitHub makes them: letters, digits, `_` and `-` of a heading in small, blanks as `-`, a number behind one that is there already. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of textOf(page).matchAll(/^#{1,6} +(.+)$/gm)) {
    const plain = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    let anchor = plain;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${plain}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

describe('the documentation', () => {
  it.each(PAGES)('%s links to files and headings that are there', (page) => {
    const links = textOf(page)
      .replaceAll(/`[^`\n]*`/g, '')
      .matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g);
    const broken = [...links].flatMap(([link, path = '', anchor]) => {
      const target = path === '' ? page : relative('.', join(dirname(page), path));
      if (!existsSync(target)) return [link];
      return anchor === undefined || !target.endsWith('.md') || anchorsOf(target).has(anchor) ? [] : [link];
    });
    expect(broken).toEqual([]);
  });

  it('lists every decision', () => {
    const listed = [...textOf('docs/README.md').matchAll(/^\| \[\d{4}\]\(decisions\/(.*?)\)/gm)];
    expect(listed.map(([, file]) => file)).toEqual(readdirSync('docs/decisions').sort());
  });
});
