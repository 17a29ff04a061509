import { Command } from 'commander';
import type { CliContext } from './context.ts';
import { modelCompileCommand } from './model-compile.ts';
import { modelDigestCommand } from './model-digest.ts';
import { modelHistoryCommand } from './model-history.ts';
import { modelInitCommand } from './model-init.ts';
import { modelPublishCommand } from './model-publish.ts';
import { modelStatusCommand } from './model-status.ts';

/** `millrace model …`: versions of models, from a folder to the workers. */
export function modelCommand(context: CliContext): Command {
  return new Command('model')
    .description(
      'Model versions: make one of an ONNX file, what one consists of, publish one, which workers can run it, what became of it',
    )
    .addCommand(modelInitCommand(context))
    .addCommand(modelCompileCommand(context))
    .addCommand(modelDigestCommand(context))
    .addCommand(modelPublishCommand(context))
    .addCommand(modelStatusCommand(context))
    .addCommand(modelHistoryCommand(context));
}
