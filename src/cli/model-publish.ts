import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { packaged } from '../config/package-root.ts';
import { MillraceError } from '../core/errors.ts';
import { versionName } from '../core/model/published-model.ts';
import type { CliContext } from './context.ts';
import { count } from './flags.ts';
import { describePlace, placeOf } from './model-place.ts';
import { dispatchCommand, newCommand, type SendFlags, withSendOptions } from './send-command.ts';

interface PublishFlags extends SendFlags {
  source?: string;
  family?: string;
  modelVersion?: number;
}

/** `millrace model publish <place>`: a version to the workers. */
export function modelPublishCommand(context: CliContext): Command {
  const command = new Command('publish')
    .description(
      'Publish a model version: from then on every worker fetches it, checks it, and says whether it can run it',
    )
    .argument('<place>', 'folder of the version, or the URL under which its files lie')
    .option(
      '--source <place>',
      'where workers fetch it, if that is another place: the same files must lie there',
    )
    .option('--family <name>', 'refuse to publish a version of any other family')
    .option('--model-version <n>', 'refuse to publish any other version', count);
  return withSendOptions(command)
    .addHelpText(
      'after',
      `
The files at <place> are read and their digest goes into the command; what workers fetch must be the same to the byte. A version that is published
serves nobody by itself: a request may pin it (ranker@3), and a policy may name it (models: {ranker: "3"}), once workers say READY:
millrace model status. Its files never change: other files need another version. To publish it again lets workers that refused it try again.

Workers read a folder on their own machines: give a folder that they share, or a URL.

Needs a running installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL. Exit code: 0 accepted, 1 refused by the controller or not
answered in time, 2 not sent for something that you can correct.

Examples:
  millrace model publish /shared/models/ranker/3 --key ana-2026.pem
  millrace model publish build/ranker/3 --source https://models.example/ranker/3/ --key ana-2026.pem
  millrace model publish https://models.example/ranker/3/ --family ranker --model-version 3 --json`,
    )
    .action((place: string, flags: PublishFlags) => publish(context, place, flags));
}

async function publish(context: CliContext, place: string, flags: PublishFlags): Promise<void> {
  const own = placeOf(place);
  const source = flags.source === undefined ? own : placeOf(flags.source);
  const described = await describePlace(context, own);
  expect('family', described.family, flags.family);
  expect('version', described.version, flags.modelVersion);
  const body = JSON.stringify({ ...described, source });
  context.stderr.write(
    `millrace: ${versionName(described)} ${described.digest}, to be fetched from ${source}\n`,
  );
  noteNewFamily(context, described.family);
  const scope = `model/${described.family}`;
  await dispatchCommand(context, newCommand(context, { scope, type: 'PUBLISH_MODEL', body }), flags);
}

/** What this command can see is the folder of its own settings, which is the extractors' too where they share them. */
function noteNewFamily(context: CliContext, family: string): void {
  const { settings } = loadSettings(context.environment);
  const folder = packaged(settings.models, 'models', 'repository');
  if (existsSync(join(folder, family))) return;
  context.stderr.write(
    `millrace: note: ${folder} has no version of ${family}. Where the model folder of the extractors has none either, requests for it end as UNKNOWN_MODEL, whatever workers say: put a version into it, and restart the extractors\n`,
  );
}

function expect(what: string, is: string, wanted: string | number | undefined): void {
  if (wanted === undefined || String(wanted) === is) return;
  throw new MillraceError('INVALID_CONFIG', `the config there is of another ${what}`, {
    value: is,
    allowed: String(wanted),
    advice: 'Nothing was sent',
  });
}
