import { readUserFile } from '../config/user-file.ts';
import type { ErrorCode } from '../core/errors.ts';
import { type MadeVersion, makeVersion, type VersionOptions } from '../inference/new-version/make-version.ts';
import type { Clock } from '../ports/clock.ts';
import { type CompiledModel, type CompileJob, compiledModel } from './compile-job.ts';
import { readOnnxModel } from './onnx-model.ts';

/** What is done to a model in a process of its own. */
export interface InitJob {
  readonly kind: 'init';
  readonly file: string;
  /** Names the file in messages and in config.yaml. */
  readonly source: string;
  readonly options: VersionOptions;
}

export type TrialJob = InitJob | CompileJob;
export type TrialResult<J extends TrialJob> = J extends InitJob ? MadeVersion : CompiledModel;

/** How it went: only what is plain data goes from one process to another. */
export type TrialAnswer<J extends TrialJob> =
  | { readonly value: TrialResult<J> }
  | { readonly code: ErrorCode | undefined; readonly message: string };

/** @throws MillraceError what the model is refused for */
export async function carryOutTrial(job: TrialJob, clock: Clock): Promise<MadeVersion | CompiledModel> {
  switch (job.kind) {
    case 'init': {
      const { file, source, options } = job;
      const model = { source, bytes: readUserFile(file, 'the model'), graph: readOnnxModel(file) };
      return makeVersion(model, options, { clock });
    }
    case 'compile':
      return compiledModel(job, clock);
    default:
      return job satisfies never;
  }
}
