import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { describe, expect, it } from 'vitest';

/** Who may import whom. Nothing else does, and nothing imports services. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: ['core'],
  ports: ['ports', 'core'],
  contracts: ['contracts', 'core', 'ports'],
  config: ['config', 'core'],
  stages: ['stages', 'core', 'ports', 'contracts'],
  adapters: ['adapters', 'core', 'ports', 'contracts'],
  inference: ['inference', 'core', 'ports'],
  client: ['client', 'core', 'ports', 'contracts'],
  traffic: ['traffic', 'core', 'ports', 'contracts', 'client'],
  simulation: [
    'simulation',
    'core',
    'ports',
    'contracts',
    'stages',
    'client',
    'traffic',
    'inference',
    'config',
    'adapters/memory',
  ],
  'local-stack': ['local-stack', 'core', 'config', 'adapters'],
  wiring: [
    'wiring',
    'core',
    'ports',
    'contracts',
    'config',
    'stages',
    'adapters',
    'inference',
    'client',
    'traffic',
  ],
  cli: [
    'cli',
    'core',
    'ports',
    'contracts',
    'config',
    'stages',
    'adapters',
    'inference',
    'client',
    'traffic',
    'simulation',
    'local-stack',
    'wiring',
  ],
};

/** Ports are contracts, not adapters: kinds of hardware, kafka and redis never meet. */
const EFFECTS = [
  'Date.now',
  'performance.now',
  'performance.timeOrigin',
  'process.hrtime',
  'Math.random',
  'process.env',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'new Date()',
];
const MAY_HAVE_EFFECTS = ['adapters', 'config', 'cli', 'local-stack'];
/** A port does not reach into another thread; only how long a call took is told from there. */
const HAS_A_CLOCK: Readonly<Record<string, string>> = {
  'src/inference/onnx-cpu/session-host.ts': 'process.hrtime',
};
/** Libraries that only compute; core uses no others. */
const PURE_LIBRARIES = ['yaml', '@marcbachmann/cel-js', '@datadog/sketches-js', 'valibot', 'node:buffer'];

const root = resolve(import.meta.dirname, '..');

interface SourceFile {
  path: string;
  folder: string;
  text: string;
  imports: string[];
}

function sources(folder: string): SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => {
      const path = relative(root, join(entry.parentPath, entry.name));
      const text = withoutComments(readFileSync(join(root, path), 'utf8'));
      return { path, folder: path.split(sep)[1] ?? '', text, imports: importsOf(text) };
    });
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '');
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:from\s+|import\s+|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');
}

/** `core`, `adapters/memory`, …: where a relative import leads. */
function targetOf(file: SourceFile, specifier: string): { folder: string; within: string } {
  const path = relative(join(root, 'src'), resolve(root, dirname(file.path), specifier)).split(sep);
  return { folder: path[0] ?? '', within: path.slice(0, 2).join('/') };
}

const src = sources('src');

describe('import rules', () => {
  it('finds the sources, so that the rules below hold something', () => {
    expect(src.length).toBeGreaterThan(100);
    expect(src.some((file) => file.imports.length > 3)).toBe(true);
  });

  it.each(src.map((file) => [file.path, file] as const))(
    '%s imports only what its folder may',
    (_path, file) => {
      const allowed = MAY_IMPORT[file.folder];
      expect(allowed, `src/${file.folder} is not in the table of import rules`).toBeDefined();
      for (const specifier of file.imports.filter((imported) => imported.startsWith('.'))) {
        const target = targetOf(file, specifier);
        expect(target.folder.startsWith('..'), `${file.path} imports ${specifier} from outside src`).toBe(
          false,
        );
        expect(
          allowed?.includes(target.folder) || allowed?.includes(target.within),
          `${file.path} imports ${specifier}`,
        ).toBe(true);
      }
    },
  );

  it.each(src.filter((file) => file.folder === 'core').map((file) => [file.path, file] as const))(
    '%s uses only libraries that compute',
    (_path, file) => {
      for (const library of file.imports.filter((imported) => !imported.startsWith('.'))) {
        expect(PURE_LIBRARIES, `${file.path} imports ${library}`).toContain(library);
      }
    },
  );

  it('adapters do not import each other across kinds, but for what all of one kind share', () => {
    const crossing = src
      .filter((file) => file.folder === 'adapters')
      .flatMap((file) =>
        file.imports
          .filter((imported) => imported.startsWith('.'))
          .map((imported) => ({
            file: file.path,
            own: file.path.split(sep).slice(1, 3).join('/'),
            ...targetOf(file, imported),
          })),
      )
      .filter(({ folder, within, own }) => folder === 'adapters' && within !== own);
    expect(crossing).toEqual([]);
  });

  it('nothing imports services', () => {
    const all = [...src, ...sources('services')];
    const importing = all.filter((file) =>
      file.imports.some((imported) => imported.startsWith('.') && /(^|\/)services\//.test(imported)),
    );
    expect(importing.map((file) => file.path)).toEqual([]);
  });

  it('entry points of services stay small', () => {
    for (const file of sources('services').filter(({ path }) => path.endsWith('main.ts'))) {
      expect(readFileSync(join(root, file.path), 'utf8').split('\n').length, file.path).toBeLessThan(80);
    }
  });
});

describe('clocks, randomness and the environment', () => {
  it.each(
    src.filter((file) => !MAY_HAVE_EFFECTS.includes(file.folder)).map((file) => [file.path, file] as const),
  )('%s reaches for none of them', (_path, file) => {
    for (const effect of EFFECTS.filter((each) => each !== HAS_A_CLOCK[file.path]))
      expect(file.text.includes(effect), `${file.path} uses ${effect}`).toBe(false);
  });
});

describe('code made from text', () => {
  const MADE_OF = {
    'src/adapters/system/garbage-collection.ts': 'one constant word',
    'src/contracts/compiled-reader.ts': 'schemas of this repository',
    'src/contracts/compiled-writer.ts': 'schemas of this repository',
  };

  it('is made of nothing that comes from outside', () => {
    const making = [...src, ...sources('services')].filter(({ text }) =>
      /\bnew Function\b|(?<![.\w])eval\(|\bnode:vm\b/.test(text),
    );
    expect(making.map(({ path }) => path).sort()).toEqual(Object.keys(MADE_OF));
  });
});
