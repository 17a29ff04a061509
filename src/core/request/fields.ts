import type { Tensor } from './tensor.ts';

/** What the check reads of a request; the contracts' ScoreRequest satisfies it. */
export interface RequestFields {
  readonly requestId: string;
  readonly model: string;
  readonly deadlineMs: number | null;
  readonly priority: number;
  readonly value: number | null;
  readonly candidateValues: Buffer | null;
  readonly bucketKey: string | null;
  readonly region: string | null;
  readonly baselineCandidates: number;
  readonly candidateIds: Tensor | null;
  readonly requestTensors: readonly Tensor[];
  readonly candidateTensors: readonly Tensor[];
  readonly hints: Readonly<Record<string, number>>;
  readonly context: Readonly<Record<string, string>>;
  readonly experiments: Readonly<Record<string, string>>;
  readonly optOut: readonly string[];
  readonly pin: string | null;
  readonly resultPartition: number | null;
}
