import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The committed ranker's stronger network, as a baseline version of this number; answers its folder. */
export function rankerVersion(root: string, version: string): string {
  const folder = join(root, version);
  mkdirSync(folder, { recursive: true });
  cpSync('models/repository/ranker/2', folder, { recursive: true });
  edit(folder, 'config.yaml', (text) =>
    text.replace(/^version: 2$/m, `version: ${version}`).replace('variant: enhanced', 'variant: baseline'),
  );
  for (const file of ['golden.json', 'cost.json'])
    edit(folder, file, (text) => text.replace(/"version": ?2/, `"version": ${version}`));
  return folder;
}

/** Cuts the graph in two, and has the config mean what is left. */
export function cutGraph(folder: string): void {
  const graph = readFileSync(join(folder, 'model.onnx'));
  const left = graph.subarray(0, graph.length >> 1);
  writeFileSync(join(folder, 'model.onnx'), left);
  const digest = `sha256:${createHash('sha256').update(left).digest('hex')}`;
  edit(folder, 'config.yaml', (text) => text.replace(/sha256:[0-9a-f]{64}/, digest));
}

/** The first golden case expects NaN. */
export function expectNaN(folder: string): void {
  edit(folder, 'golden.json', (text) => {
    const golden = JSON.parse(text) as { cases: { scores: { base64: string } }[] };
    const [first] = golden.cases;
    if (first === undefined) throw new Error('there is no golden case');
    const values = Buffer.from(first.scores.base64, 'base64');
    values.writeFloatLE(Number.NaN, 0);
    first.scores.base64 = values.toString('base64');
    return JSON.stringify(golden);
  });
}

export function edit(folder: string, file: string, change: (text: string) => string): void {
  const path = join(folder, file);
  const text = readFileSync(path, 'utf8');
  const changed = change(text);
  if (changed === text) throw new Error(`nothing changed in ${path}`);
  writeFileSync(path, changed);
}
