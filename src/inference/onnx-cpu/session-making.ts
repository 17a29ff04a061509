import { cutText } from '../../core/cut-text.ts';
import { MillraceError } from '../../core/errors.ts';
import { type InputContract, isSequence } from '../../core/request/family.ts';
import { checkGraph } from '../check-graph.ts';
import { checkGolden } from '../golden-check.ts';
import type { GraphCall, RunGraph, RunKernel } from '../graph-call.ts';
import { isSmallBatch } from '../indexed-layers/layer-plan.ts';
import type { InputRows } from '../indexed-layers/plan-layers.ts';
import type { Golden } from '../repository/golden.ts';
import type { ModelVersion } from '../repository/model-version.ts';
import type { ModelRepository } from '../repository/open-repository.ts';
import type { LayersSession, Provider, SparseSession } from './messages.ts';
import type { SessionThread } from './session-thread.ts';

/** The sessions of one version. */
export interface VersionSessions {
  run: RunKernel;
  /** Kernels that were asked for and cannot run it, and why. */
  refusedKernels: ReadonlyMap<string, string>;
  release(): Promise<void>;
}

export interface SessionMakingOptions {
  intraOpThreads?: number;
  executionMode?: 'sequential' | 'parallel';
  /** What computes the nodes that it has; the CPU where left out, and for the others. */
  provider?: Provider;
  /** No golden case is held more tightly, neither in absolute nor in relative terms. */
  toleranceMin?: number;
}

/** Makes the sessions of a version in a thread, and checks what they compute. */
export class SessionMaking {
  readonly #thread: SessionThread;
  readonly #repository: ModelRepository;
  readonly #version: ModelVersion;
  readonly #options: SessionMakingOptions;
  readonly #made: number[] = [];

  constructor(
    thread: SessionThread,
    repository: ModelRepository,
    version: ModelVersion,
    options: SessionMakingOptions,
  ) {
    this.#thread = thread;
    this.#repository = repository;
    this.#version = version;
    this.#options = options;
  }

  /**
   * A graph that kills its thread is refused like any other.
   * @throws MillraceError INVALID_MODEL where the dense kernel cannot run it
   */
  ofKernels(kernels: readonly string[]): Promise<VersionSessions> {
    const died = this.#thread.died.then((reason) => Promise.reject(refused(this.#version, reason)));
    return Promise.race([this.#make(kernels.includes('sparse')), died]);
  }

  async #make(isSparseWanted: boolean): Promise<VersionSessions> {
    const [graph, golden] = await Promise.all([
      this.#repository.readGraph(this.#version),
      this.#repository.readGolden(this.#version),
    ]);
    const answer = await this.#thread.create({
      kind: 'create',
      graph,
      options: {
        intraOpThreads: this.#options.intraOpThreads ?? 1,
        executionMode: this.#options.executionMode ?? 'sequential',
        provider: this.#options.provider ?? 'cpu',
      },
      ...(isSparseWanted ? { sparseInputs: this.#candidateInputs() } : {}),
      ...this.#layersWanted(),
    });
    if (answer.kind === 'failed') throw noSession(this.#version, answer.message);
    const { session, signature, sparse, layers } = answer;
    this.#made.push(session);
    if (sparse !== undefined && 'session' in sparse) this.#made.push(sparse.session);
    if (layers !== undefined) this.#made.push(layers.session);
    try {
      checkGraph(this.#version, signature);
      await this.#checkGolden(golden, session);
      const dense = await this.#dense(session, layers, golden);
      return await this.#sessions(dense, sparse, golden);
    } catch (error) {
      await this.#release();
      throw error;
    }
  }

  /** A sparse session that computes something else than the golden cases is refused, and the version is not. */
  async #sessions(
    dense: RunGraph,
    sparse: SparseSession | undefined,
    golden: Golden,
  ): Promise<VersionSessions> {
    const refusedKernels = new Map<string, string>();
    const runs = new Map([['dense', dense]]);
    if (sparse !== undefined && 'refused' in sparse) refusedKernels.set('sparse', sparse.refused);
    if (sparse !== undefined && 'session' in sparse) {
      await this.#checkGolden(golden, sparse.session).then(
        () => runs.set('sparse', this.#running(sparse.session)),
        (error: unknown) => refusedKernels.set('sparse', messageOf(error)),
      );
    }
    return {
      run: (call, kernel) => {
        const run = runs.get(kernel);
        if (run === undefined) throw new RangeError(`there is no session for ${kernel}`);
        return run(call);
      },
      refusedKernels,
      release: () => this.#release(),
    };
  }

  /** Small batches go to the layers, where the version has them and they compute the golden cases, too. */
  async #dense(session: number, layers: LayersSession | undefined, golden: Golden): Promise<RunGraph> {
    const whole = this.#running(session);
    if (layers === undefined) return whole;
    const small = this.#running(layers.session);
    const holds = await checkGolden(this.#version, golden, small, refused).then(
      () => true,
      () => false,
    );
    if (!holds) return whole;
    const { request, candidate } = this.#inputRows();
    return (call) =>
      isSmallBatch(layers.work, rowsOf(call, request), rowsOf(call, candidate)) ? small(call) : whole(call);
  }

  #running(session: number): RunGraph {
    return (call) => this.#thread.run({ kind: 'run', session, ...call });
  }

  async #checkGolden(golden: Golden, session: number): Promise<void> {
    await checkGolden(this.#version, this.#loosened(golden), this.#running(session), refused);
  }

  #loosened(golden: Golden): Golden {
    const { absolute, relative } = golden.tolerance;
    const least = this.#options.toleranceMin ?? 0;
    const tolerance = { absolute: Math.max(absolute, least), relative: Math.max(relative, least) };
    return { ...golden, tolerance };
  }

  #candidateInputs(): string[] {
    return this.#version.inputs.filter(({ side }) => side === 'candidate').map(({ name }) => name);
  }

  #inputRows(): InputRows {
    const on = (side: InputContract['side']): string[] =>
      this.#version.inputs.filter((input) => input.side === side).map(({ name }) => name);
    return { request: on('request'), candidate: on('candidate'), requestIndex: on('request-index')[0] ?? '' };
  }

  /** Of a version that can have them: the thread reads its file for them. */
  #layersWanted(): { inputRows?: InputRows } {
    const { inputs, tiles } = this.#version;
    const isOnCpu = (this.#options.provider ?? 'cpu') === 'cpu';
    const areRows = inputs.every(
      (input) => input.side === 'request-index' || (input.datatype === 'FP32' && !isSequence(input)),
    );
    return isOnCpu && areRows && tiles === undefined ? { inputRows: this.#inputRows() } : {};
  }

  async #release(): Promise<void> {
    for (const session of this.#made.splice(0)) await this.#thread.release(session);
  }
}

function rowsOf({ feeds }: GraphCall, inputs: readonly string[]): number {
  return feeds.find(({ name }) => inputs.includes(name))?.dims[0] ?? 0;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What ONNX Runtime says where there is no device: of the machine, not of the model. */
const NO_DEVICE = /failed to get a webgpu (adapter|device)/i;

function noSession(version: ModelVersion, message: string): MillraceError {
  if (!NO_DEVICE.test(message)) return refused(version, message);
  return new MillraceError('MODEL_UNAVAILABLE', 'there is no WebGPU device here', {
    value: message.slice(message.search(NO_DEVICE)).replaceAll(/\s+/g, ' '),
    allowed: 'a device with a Vulkan driver, and its loader (libvulkan.so.1)',
    advice: 'Install the driver, or compute on the CPU: MILLRACE_WORKER_BACKEND=onnx-cpu',
  });
}

/** ONNX Runtime quotes names of the graph, whatever their length. */
const QUOTED_MAX = 1_024;

function refused(version: ModelVersion, message: string): MillraceError {
  return new MillraceError(
    'INVALID_MODEL',
    `${version.family}/${version.version}: ONNX Runtime refuses it: ${cutText(message, QUOTED_MAX)}`,
  );
}
