import { Command } from 'commander';
import { MillraceError } from '../core/errors.ts';
import { FAMILY_NAME } from '../core/model/published-model.ts';
import type { CliContext } from './context.ts';
import { showHistory } from './decision-history.ts';
import { count } from './flags.ts';

interface HistoryFlags {
  max: number;
  json: boolean;
}

/** `millrace model history [family]`: what was published, and what was refused. */
export function modelHistoryCommand(context: CliContext): Command {
  return new Command('history')
    .description('Show which versions of a family, or of all, were published or refused; by whom, and when')
    .argument('[family]', 'model family (default: all of them)')
    .option('--max <n>', 'at most so many, the newest', count, 100)
    .option('--json', 'print one JSON object per line, with the evidence', false)
    .addHelpText(
      'after',
      `
Read off the log of control events, which is kept for ever. Lines are cut to the terminal's width; --json has every event whole. Which policy named a version, and when, is in millrace policy history. Needs a
running installation (MILLRACE_KAFKA_BROKERS, MILLRACE_REGISTRY_URL).

Examples:
  millrace model history ranker
  millrace model history --json | jq -r '.evidence.model | [.family, .version, .source] | @tsv'`,
    )
    .action((family: string | undefined, flags: HistoryFlags) =>
      showHistory(context, family === undefined ? 'model/*' : scopeOfFamily(family), {
        ...flags,
        looks: false,
        what: 'model',
        isOne: family !== undefined,
      }),
    );
}

const PREFIX = 'model/';

/** `ranker` or `model/ranker` as the scope of commands. @throws MillraceError INVALID_CONFIG */
export function scopeOfFamily(name: string): string {
  const bare = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  if (FAMILY_NAME.test(bare)) return `${PREFIX}${bare}`;
  throw new MillraceError('INVALID_CONFIG', 'that is not a name of a model family', {
    value: name,
    allowed: 'small letters, digits and -',
  });
}
