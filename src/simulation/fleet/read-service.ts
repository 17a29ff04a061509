import { own } from '../../core/own.ts';
import type { DocumentReader } from '../../core/policy/reader.ts';
import type { SourceNode } from '../../core/policy/source.ts';
import { type KernelProfile, PROFILES, type ServiceProfile } from '../../inference/simulated/profiles.ts';

const MS_MAX = 60_000;
const FACTOR_MAX = 1_000;

export interface ServiceOf {
  readonly kernels: readonly string[];
  readonly memories: readonly string[];
  /** The document's own service times; those of the class's profile where it has none. */
  readonly service: SourceNode | undefined;
  /** Of the class, for problems that are about it as a whole. */
  readonly node: SourceNode;
}

/** Reads what a class of accelerators takes for its work. */
export class ServiceReader {
  readonly #reader: DocumentReader;

  constructor(reader: DocumentReader) {
    this.#reader = reader;
  }

  /** With only the kernels and memory domains that the fleet names; undefined where that leaves none. */
  profile(accelerator: string, of: ServiceOf): ServiceProfile | undefined {
    const known = own(PROFILES, accelerator);
    const whole = of.service === undefined ? known : this.#service(accelerator, of, of.service);
    if (whole === undefined) {
      if (of.service === undefined)
        this.#reader.report(of.node, 'an accelerator class without service times', {
          value: accelerator,
          allowed: `\`service\`, or a class that has a profile: ${Object.keys(PROFILES).join(', ')}`,
        });
      return undefined;
    }
    const kernels = only(whole.kernels, of.kernels);
    const memories = only(whole.memories, of.memories);
    if (Object.keys(kernels).length > 0 && Object.keys(memories).length > 0)
      return { ...whole, kernels, memories };
    return this.#reader.report(
      of.node,
      'the class has a profile, and none of the kernels, or memories, that it names',
      {
        value: `${of.kernels.join(', ')} on ${of.memories.join(', ')}`,
        allowed: `${Object.keys(whole.kernels).join(', ')} on ${Object.keys(whole.memories).join(', ')}`,
        advice: 'Correct them, or give `service`',
      },
    );
  }

  #service(accelerator: string, of: ServiceOf, node: SourceNode): ServiceProfile | undefined {
    const reader = this.#reader;
    const fields = reader.fields(node, {
      launchMs: 'required',
      requestMs: 'required',
      candidateMs: 'required',
      jitterSigma: 'optional',
      kernelFactors: 'optional',
      memoryFactors: 'optional',
    });
    if (fields?.launchMs === undefined || fields.requestMs === undefined || fields.candidateMs === undefined)
      return undefined;
    const launchMs = reader.number(fields.launchMs, 0, MS_MAX);
    const requestMs = reader.number(fields.requestMs, 0, MS_MAX);
    const candidateMs = reader.number(fields.candidateMs, 0, MS_MAX);
    const jitterSigma = fields.jitterSigma === undefined ? 0 : reader.number(fields.jitterSigma, 0, 3);
    const kernels = this.#factors(of.kernels, fields.kernelFactors);
    const memories = this.#factors(of.memories, fields.memoryFactors);
    if (launchMs === undefined || requestMs === undefined || candidateMs === undefined) return undefined;
    if (launchMs + requestMs + candidateMs === 0)
      return reader.report(node, 'service times that are all 0', { allowed: 'at least one above 0' });
    return {
      accelerator,
      launchMs,
      requestMs,
      candidateMs,
      jitterSigma: jitterSigma ?? 0,
      kernels: Object.fromEntries(
        [...kernels].map(([kernel, factor]): [string, KernelProfile] => [kernel, { factor }]),
      ),
      memories: Object.fromEntries(memories),
    };
  }

  /** 1 for what has no factor. */
  #factors(names: readonly string[], node: SourceNode | undefined): Map<string, number> {
    const factors = new Map(names.map((name) => [name, 1]));
    for (const [name, each] of node === undefined ? [] : (this.#reader.map(node) ?? [])) {
      const factor = this.#reader.number(each, 0.001, FACTOR_MAX);
      if (!factors.has(name))
        this.#reader.report(each, 'a factor of what the class does not have', {
          value: name,
          allowed: names.join(', '),
        });
      else if (factor !== undefined) factors.set(name, factor);
    }
    return factors;
  }
}

function only<T>(all: Readonly<Record<string, T>>, names: readonly string[]): Record<string, T> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = own(all, name);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}
