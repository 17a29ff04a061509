import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { copyStorage, kafkaUuid } from '../../../src/local-stack/kafka-storage.ts';
import { temporaryFolder } from './temporary-folder.ts';

describe('kafkaUuid', () => {
  it('is 16 bytes in 22 characters that no command line takes for an option', () => {
    const uuids = Array.from({ length: 1_000 }, () => kafkaUuid());
    for (const uuid of uuids) expect(uuid).toMatch(/^[A-Za-z0-9_][A-Za-z0-9_-]{21}$/);
    expect(new Set(uuids).size).toBe(1_000);
  });
});

describe('copyStorage', () => {
  it('gives each copy its own identity and all the rest of the formatted folder', async () => {
    const folder = await temporaryFolder();
    const formatted = join(folder, 'formatted');
    await mkdir(join(formatted, '__cluster_metadata-0'), { recursive: true });
    await writeFile(join(formatted, '__cluster_metadata-0/0.checkpoint'), 'features');
    await writeFile(join(formatted, 'meta.properties'), 'node.id=1\ncluster.id=template\n');
    const identities = await Promise.all(
      [1, 2].map(async (nodeId) => {
        const storage = join(folder, `broker-${nodeId}/storage`);
        await copyStorage(formatted, storage, { clusterId: 'cluster', nodeId });
        expect(await readFile(join(storage, '__cluster_metadata-0/0.checkpoint'), 'utf8')).toBe('features');
        expect((await readdir(storage)).toSorted()).toEqual(['__cluster_metadata-0', 'meta.properties']);
        return readFile(join(storage, 'meta.properties'), 'utf8');
      }),
    );
    expect(identities[0]).toMatch(/^version=1\ncluster\.id=cluster\ndirectory\.id=.{22}\nnode\.id=1\n$/);
    expect(identities[1]).toMatch(/^version=1\ncluster\.id=cluster\ndirectory\.id=.{22}\nnode\.id=2\n$/);
    const directories = identities.map((text) => /directory\.id=(.*)/.exec(text)?.[1]);
    expect(new Set(directories).size).toBe(2);
  });
});
