import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packaged, packageRoot } from '../../../src/config/package-root.ts';
import { readUserFile } from '../../../src/config/user-file.ts';

describe('the package’s own files', () => {
  it('are found from its root', () => {
    expect(existsSync(join(packageRoot(), 'package.json'))).toBe(true);
    expect(existsSync(packaged('', 'models', 'repository'))).toBe(true);
    expect(packaged('/mine', 'models')).toBe('/mine');
  });

  it('stand in for examples that the folder at hand lacks', () => {
    const here = process.cwd();
    process.chdir('/');
    try {
      expect(readUserFile('examples/policies/starter.yaml').toString()).toContain('name: starter');
      expect(() => readUserFile('policies/starter.yaml')).toThrow(
        /there is none of this name.*policies\/starter/,
      );
    } finally {
      process.chdir(here);
    }
  });

  it('are told apart from folders', () => {
    expect(() => readUserFile('examples')).toThrow(/it is a folder/);
  });
});
