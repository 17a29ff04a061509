import { Command } from 'commander';
import { totalBytes } from '../core/model/published-model.ts';
import type { CliContext } from './context.ts';
import { describePlace, placeOf } from './model-place.ts';
import { tableLines } from './table.ts';

/** `millrace model digest <place>`: what a version consists of. */
export function modelDigestCommand(context: CliContext): Command {
  return new Command('digest')
    .description('Show the files of a model version, and the digest that stands for all of them')
    .argument('<place>', 'folder of the version, or the URL under which its files lie')
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
The files are config.yaml and those that it names; others, such as a README.md, are not part of the version. The digest is the sha256 of a text: a
line millrace-model 1, then for each file, by name, its sha256 in hex, its bytes and its name, two spaces between them. Anybody can make it:
  (echo 'millrace-model 1'; for f in config.yaml cost.json golden.json model.onnx; do
    echo "$(sha256sum < $f | cut -c1-64)  $(wc -c < $f)  $f"; done) | sha256sum

Examples:
  millrace model digest models/repository/ranker/2
  millrace model digest https://models.example/ranker/3/ --json | jq -r .digest`,
    )
    .action((place: string, flags: { json: boolean }) => digest(context, place, flags));
}

async function digest(context: CliContext, place: string, { json }: { json: boolean }): Promise<void> {
  const described = await describePlace(context, placeOf(place));
  if (json) {
    context.stdout.write(`${JSON.stringify(described)}\n`);
    return;
  }
  const { family, version, files, digest: ofAll } = described;
  const rows = files.map((file) => [file.name, String(file.bytes), file.digest]);
  const total = `${family}@${version}  ${totalBytes(files)} bytes  ${ofAll}`;
  context.stdout.write(`${[...tableLines(['file', 'bytes', 'digest'], rows), '', total].join('\n')}\n`);
}
