import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Generator } from '../../src/core/random/generator.ts';
import { seededRandom } from '../../src/core/random/seeded-random.ts';

/**
 * What the fuzzers share. Inputs are drawn in batches, each from a random stream of its own, so that one seed gives the same inputs over any number of
 * processes, and `--first` starts at a batch in which something was found. Bounds are asserted on counted work and on the heap's peak over batches,
 * never on time.
 */
export interface Fuzzer {
  readonly name: string;
  /** Inputs of a batch. */
  readonly batch: number;
  /** Live heap and buffers that a batch may add at its peak, bytes. */
  readonly heapGrowthMax: number;
  /** Most work that one input may cost, by what is counted. */
  readonly workMax: Readonly<Record<string, number>>;
  open(): Promise<FuzzBatch>;
}

/** Draws one batch and feeds it. `count` inputs are to be counted by `account.input`. */
export type FuzzBatch = (draw: Generator, count: number, account: Account) => void | Promise<void>;

/** What a run found. Plain JSON: parts of a run are added up. */
export interface Report {
  inputs: number;
  /** Inputs that got past the outer layer: what they say was looked at, not only their form. */
  pastOuterLayer: number;
  outcomes: Record<string, number>;
  /** Most work of one input. */
  most: Record<string, number>;
  heapGrowth: number;
  cpuMs: number;
  /** For whoever reads the report; nothing is asserted on it. */
  slowest: { ms: number; input: string };
  failures: string[];
}

const FAILURES_MAX = 10;
const SHOWN_BYTES = 900;
const SLOWEST_BYTES = 300;
/** The heap is looked at after so many inputs, and after each that is large. */
const HEAP_EVERY = 250;
const LARGE_BYTES = 8_192;

/** Counts what happens to inputs, and holds what must be so after each. */
export class Account {
  readonly report: Report = {
    inputs: 0,
    pastOuterLayer: 0,
    outcomes: Object.create(null),
    most: Object.create(null),
    heapGrowth: 0,
    cpuMs: 0,
    slowest: { ms: 0, input: '' },
    failures: [],
  };
  readonly #workMax: Readonly<Record<string, number>>;
  readonly #prototypes = new PrototypeGuard();
  #place = '';
  #input: Uint8Array = new Uint8Array();
  #heapBefore = 0;

  constructor({ workMax }: Pick<Fuzzer, 'workMax'>) {
    this.#workMax = workMax;
  }

  get isFull(): boolean {
    return this.report.failures.length >= FAILURES_MAX;
  }

  beginBatch(place: string): void {
    this.#place = place;
    this.#heapBefore = liveBytes();
  }

  endBatch(): void {
    this.#lookAtHeap();
    const changed = this.#prototypes.changed();
    if (changed !== undefined) this.fail(`${changed} was changed`);
  }

  /** Runs what is done with one input: a throw is a failure, whatever it throws. */
  input(bytes: Uint8Array, run: () => void): void {
    this.begin(bytes);
    const startedMs = performance.now();
    try {
      run();
    } catch (error) {
      this.thrown(error);
    }
    this.end(performance.now() - startedMs);
  }

  /** The same for work that is awaited. */
  async inputOf(bytes: Uint8Array, run: () => Promise<void>): Promise<void> {
    this.begin(bytes);
    const startedMs = performance.now();
    try {
      await run();
    } catch (error) {
      this.thrown(error);
    }
    this.end(performance.now() - startedMs);
  }

  private begin(bytes: Uint8Array): void {
    this.report.inputs += 1;
    this.#input = bytes;
  }

  private thrown(error: unknown): void {
    this.fail(`threw ${error instanceof Error ? (error.stack ?? String(error)) : String(error)}`);
  }

  private end(ms: number): void {
    if (ms > this.report.slowest.ms) this.report.slowest = { ms, input: this.#describe(SLOWEST_BYTES) };
    if (this.#prototypes.hasNewKey()) this.fail('Object.prototype or Array.prototype got a key');
    if (this.#input.byteLength > LARGE_BYTES || this.report.inputs % HEAP_EVERY === 0) this.#lookAtHeap();
  }

  past(): void {
    this.report.pastOuterLayer += 1;
  }

  outcome(name: string, count = 1): void {
    this.report.outcomes[name] = (this.report.outcomes[name] ?? 0) + count;
  }

  /** Work that the input cost; a failure where it is more than the fuzzer's bound, or more than `max`. */
  work(what: string, amount: number, max = Number.POSITIVE_INFINITY): void {
    const { most } = this.report;
    if (amount > (most[what] ?? -1)) most[what] = amount;
    const bound = Math.min(max, this.#workMax[what] ?? Number.POSITIVE_INFINITY);
    if (!(amount <= bound)) this.fail(`${what}: ${amount}, allowed ${bound}`);
  }

  expect(holds: boolean, what: string): void {
    if (!holds) this.fail(what);
  }

  fail(what: string): void {
    if (!this.isFull) this.report.failures.push(`${what} | ${this.#place} | ${this.#describe()}`);
  }

  #lookAtHeap(): void {
    this.report.heapGrowth = Math.max(this.report.heapGrowth, liveBytes() - this.#heapBefore);
  }

  #describe(shownBytes = SHOWN_BYTES): string {
    const shown = Buffer.from(this.#input.subarray(0, shownBytes)).toString('base64');
    return `${this.#input.byteLength} bytes, base64 ${shown}`;
  }
}

const GUARDED = [Object, Array, Function, Map, Set, String, Number, Boolean, RegExp, Promise, Error] as const;

/** Notices what was done to the prototypes that everything has. */
class PrototypeGuard {
  readonly #before = GUARDED.map(({ prototype }) => descriptorsOf(prototype));
  readonly #objectKeys = Reflect.ownKeys(Object.prototype).length;
  readonly #arrayKeys = Reflect.ownKeys(Array.prototype).length;

  /** Cheap enough for every input. */
  hasNewKey(): boolean {
    return (
      Reflect.ownKeys(Object.prototype).length !== this.#objectKeys ||
      Reflect.ownKeys(Array.prototype).length !== this.#arrayKeys
    );
  }

  changed(): string | undefined {
    const found = GUARDED.find(({ prototype }, index) => {
      const now = descriptorsOf(prototype);
      const before = this.#before[index];
      return (
        before === undefined || now.length !== before.length || now.some((one, at) => one !== before[at])
      );
    });
    return found === undefined ? undefined : `${found.name}.prototype`;
  }
}

/** Keys and values, in turn. */
function descriptorsOf(prototype: object): unknown[] {
  return Reflect.ownKeys(prototype).flatMap((key) => {
    const { value, get, set } = Object.getOwnPropertyDescriptor(prototype, key) ?? {};
    return [key, value, get, set];
  });
}

/** Whether everything in the value is plain: no object got a prototype from the input. Maps, sets and byte arrays are what they are. */
export function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return true;
  if (Array.isArray(value)) return value.every(isPlain);
  if (value instanceof Map) return [...value.values()].every(isPlain);
  if (value instanceof Set) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlain);
}

export function liveBytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

interface Options {
  inputs: number;
  seed: number;
  processes: number;
  /** First batch. */
  first: number;
  part: number;
  parts: number;
}

function optionsOf(fuzzer: Fuzzer): Options {
  const { values } = parseArgs({
    options: {
      inputs: { type: 'string', default: String(20 * fuzzer.batch) },
      seed: { type: 'string', default: '1' },
      processes: { type: 'string', default: '1' },
      first: { type: 'string', default: '0' },
      part: { type: 'string', default: '0/1' },
    },
  });
  const [part = 0, parts = 1] = values.part.split('/').map(Number);
  const { inputs, seed, processes, first } = values;
  const read = {
    inputs: Number(inputs),
    seed: Number(seed),
    processes: Number(processes),
    first: Number(first),
  };
  for (const [name, value] of Object.entries({ ...read, part, parts })) {
    if (!Number.isSafeInteger(value) || value < 0)
      throw new RangeError(`--${name} is a whole number, not ${value}`);
  }
  return { ...read, part, parts };
}

/** The command line of a fuzzer: `--inputs N --seed S [--processes P] [--first BATCH]`. Prints a JSON summary; exit code 1 where anything failed. */
export async function runFuzzer(fuzzer: Fuzzer): Promise<void> {
  const options = optionsOf(fuzzer);
  const startedMs = performance.now();
  const report = options.processes > 1 ? addUp(await runParts(options)) : await runBatches(fuzzer, options);
  const isPart = options.parts > 1;
  if (!isPart) judge(fuzzer, report);
  const { inputs, pastOuterLayer, outcomes, most, heapGrowth, cpuMs, slowest, failures } = report;
  const seconds = (performance.now() - startedMs) / 1_000;
  const summary = {
    fuzzer: fuzzer.name,
    inputs,
    seed: options.seed,
    processes: options.processes,
    first: options.first,
    seconds: Number(seconds.toFixed(1)),
    cpuSeconds: Number((cpuMs / 1_000).toFixed(1)),
    inputsPerSecond: Math.round(inputs / seconds),
    pastOuterLayer,
    outcomes: Object.fromEntries(Object.entries(outcomes).sort((a, b) => b[1] - a[1])),
    mostWorkOfOneInput: most,
    workMax: fuzzer.workMax,
    heapPeakMiB: Number((heapGrowth / 1024 / 1024).toFixed(1)),
    heapPeakMaxMiB: fuzzer.heapGrowthMax / 1024 / 1024,
    slowest,
    node: process.version,
    failures,
  };
  console.log(JSON.stringify(isPart ? report : summary, undefined, isPart ? undefined : 2));
  process.exitCode = failures.length === 0 ? 0 : 1;
}

async function runBatches(fuzzer: Fuzzer, options: Options): Promise<Report> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const random = seededRandom(options.seed);
  const feed = await fuzzer.open();
  const account = new Account(fuzzer);
  const batches = Math.ceil(options.inputs / fuzzer.batch);
  for (let batch = options.part; batch < batches && !account.isFull; batch += options.parts) {
    const place = options.first + batch;
    collect();
    account.beginBatch(`seed ${options.seed}, batch ${place}`);
    const count = Math.min(fuzzer.batch, options.inputs - batch * fuzzer.batch);
    await feed(random.stream(`${fuzzer.name}/${place}`), count, account);
    account.endBatch();
  }
  const { user, system } = process.cpuUsage();
  return { ...account.report, cpuMs: (user + system) / 1_000 };
}

/** What must hold of a whole run. */
function judge(fuzzer: Fuzzer, { inputs, pastOuterLayer, heapGrowth, failures }: Report): void {
  if (heapGrowth > fuzzer.heapGrowthMax)
    failures.push(`a batch grew the heap by ${heapGrowth} bytes, allowed ${fuzzer.heapGrowthMax}`);
  if (pastOuterLayer * 2 < inputs)
    failures.push(`only ${pastOuterLayer} of ${inputs} got past the outer layer`);
}

function runParts({ inputs, seed, first, processes }: Options): Promise<Report[]> {
  return Promise.all(
    Array.from({ length: processes }, async (_, part) => {
      const text = await outputOf([
        process.argv[1] ?? '',
        ...['--inputs', String(inputs), '--seed', String(seed), '--first', String(first)],
        ...['--part', `${part}/${processes}`],
      ]);
      return JSON.parse(text) as Report;
    }),
  );
}

/** What a process of ours prints. A part that found something exits with 1 and prints its report all the same. */
function outputOf(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (code === 0 || code === 1) resolve(text);
      else reject(new Error(`a part ended with ${signal ?? code}: ${text.slice(0, 400)}`));
    });
  });
}

function addUp(reports: readonly Report[]): Report {
  const [first, ...others] = reports;
  if (first === undefined) throw new Error('a run has at least one part');
  for (const other of others) {
    first.inputs += other.inputs;
    first.pastOuterLayer += other.pastOuterLayer;
    first.cpuMs += other.cpuMs;
    first.heapGrowth = Math.max(first.heapGrowth, other.heapGrowth);
    for (const [name, count] of Object.entries(other.outcomes))
      first.outcomes[name] = (first.outcomes[name] ?? 0) + count;
    for (const [name, amount] of Object.entries(other.most))
      first.most[name] = Math.max(first.most[name] ?? 0, amount);
    if (other.slowest.ms > first.slowest.ms) first.slowest = other.slowest;
    first.failures.push(...other.failures);
  }
  return first;
}
