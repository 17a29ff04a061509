import type { Command } from 'commander';

/**
 * Commander takes options of a command that has commands of its own wherever they stand: after the word `refit` in `millrace profile refit` too, where
 * nobody reads them.
 *
 * @throws CommanderError where one was given that the command which runs does not have
 */
export function refuseParentOptions(running: Command): void {
  const own = new Set(running.options.map((option) => option.attributeName()));
  // Those of the program are of every command.
  for (let group = running.parent; group?.parent != null; group = group.parent) {
    const source = group;
    const strange = source.options.find(
      (option) =>
        !own.has(option.attributeName()) && source.getOptionValueSource(option.attributeName()) === 'cli',
    );
    if (strange === undefined) continue;
    const told = `option '${strange.flags}' is of ${source.name()} alone, not of ${source.name()} ${running.name()}`;
    running.error(`error: ${told}`, { code: 'commander.unknownOption' });
  }
}
