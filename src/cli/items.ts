import { Command } from 'commander';
import type { CliContext } from './context.ts';
import { itemsBuildCommand } from './items-build.ts';

/** `millrace items …`: tables of items' features, so that requests can send ids. */
export function itemsCommand(context: CliContext): Command {
  return new Command('items')
    .description('Item tables: features of items by their ids, kept by the workers')
    .addCommand(itemsBuildCommand(context));
}
