import { Command } from 'commander';
import { packageVersion } from '../config/package-version.ts';
import { captureCommand } from './capture.ts';
import { configCommand } from './config.ts';
import type { CliContext } from './context.ts';
import { controlCommand } from './control.ts';
import { dlqCommand } from './dlq.ts';
import { itemsCommand } from './items.ts';
import { modelCommand } from './model.ts';
import { refuseParentOptions } from './parent-option.ts';
import { policyCommand } from './policy.ts';
import { profileCommand } from './profile.ts';
import { replayCommand } from './replay.ts';
import { resultsCommand } from './results.ts';
import { scoreCommand } from './score.ts';
import { simulateCommand } from './simulate.ts';
import { stackCommand } from './stack.ts';
import { startCommand } from './start.ts';
import { topicsCommand } from './topics.ts';
import { upCommand } from './up.ts';

const HELP = `
First steps, with no Kafka at hand:
  millrace start                                    the whole pipeline in this process, with live traffic
  millrace score examples/requests/ranker.json      score one request
  millrace simulate --rate 500 --duration 30s       the whole pipeline in virtual time, on a fleet that need not exist

With one:
  eval "$(millrace stack up)"                       a real Kafka, schema registry and Redis on this machine
  millrace topics apply && millrace up              every service as a process of its own
  millrace replay --requests 5000                   traffic, and the books of it
  millrace policy publish my-policy.yaml            another way to route it

Settings come from the environment and from the file that MILLRACE_CONFIG names: millrace config show`;

/** Every command, over what the context lets it reach. Throws CommanderError in place of ending the process. */
export function program(context: CliContext): Command {
  const root = new Command('millrace')
    .description('Event-streaming pipeline for recommendation inference')
    .version(packageVersion(), '-V, --version', 'print the version')
    .option('--verbose', 'show stack traces of errors', false)
    .addHelpText('after', HELP)
    .showHelpAfterError('(--help tells more)')
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      outputError: (text, write) => write(`millrace: ${text.replace(/^error: /, '')}`),
    })
    .exitOverride()
    .addCommand(startCommand(context))
    .addCommand(scoreCommand(context))
    .addCommand(stackCommand())
    .addCommand(topicsCommand(context))
    .addCommand(upCommand(context))
    .addCommand(replayCommand(context))
    .addCommand(resultsCommand(context))
    .addCommand(captureCommand(context))
    .addCommand(dlqCommand(context))
    .addCommand(policyCommand(context))
    .addCommand(modelCommand(context))
    .addCommand(itemsCommand(context))
    .addCommand(profileCommand(context))
    .addCommand(simulateCommand(context))
    .addCommand(controlCommand(context))
    .addCommand(configCommand(context));
  root.hook('preAction', (_, running) => refuseParentOptions(running));
  inheritSettings(root);
  return root;
}

/** Commands that were made by themselves do not take over where to write and how to end. */
function inheritSettings(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    inheritSettings(command);
  }
}
