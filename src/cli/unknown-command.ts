import type { Command } from 'commander';
import { didYouMean } from '../core/policy/nearest.ts';

const HELP = new Set(['-h', '--help']);

/**
 * Commander shows the help of what it knows and says nothing of the rest: `millrace frobnicate --help` must not look as if there were such a
 * command.
 *
 * @throws CommanderError where help is asked for a command that does not exist
 */
export function refuseHelpOnUnknown(root: Command, args: readonly string[]): void {
  if (!args.some((arg) => HELP.has(arg))) return;
  let group = root;
  for (const word of args) {
    if (word === '--' || group.commands.length === 0 || word === 'help') return;
    if (word.startsWith('-')) continue;
    const found = group.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (found === undefined) refuse(group, word);
    else group = found;
  }
}

function refuse(group: Command, word: string): void {
  const names = group.commands.map((command) => command.name());
  const { advice } = didYouMean(word, names);
  const lines = [
    `error: unknown command '${word}'`,
    ...(advice === undefined ? [] : [advice]),
    `Commands of ${path(group)}: ${names.join(', ')}`,
  ];
  group.error(lines.join('\n'), { code: 'commander.unknownCommand' });
}

function path(command: Command): string {
  return command.parent === null ? command.name() : `${path(command.parent)} ${command.name()}`;
}
