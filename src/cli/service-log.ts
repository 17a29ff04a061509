import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileError } from '../config/user-file.ts';

export interface ServiceLogOptions {
  /** Names the service in messages. */
  name: string;
  path: string;
  /** A line for whoever started the service. */
  tell(line: string): void;
  /** Monotonic, ms. */
  nowMs?(): number;
}

/** A disk that is full takes nothing for a while: it is tried again with the first line after so long. */
const RETRY_MS = 10_000;

/**
 * The file that a service's lines go to. A disk that takes no more costs lines, and nothing else: the service goes on, and so does the process that
 * started it. That is told once, and once more when lines are kept again.
 */
export class ServiceLog {
  readonly #options: ServiceLogOptions;
  readonly #nowMs: () => number;
  #file: number | undefined;
  #brokenAtMs = 0;
  #lost = 0;

  /** @throws MillraceError INVALID_CONFIG where the file cannot be opened: then nobody should start what writes it */
  constructor(options: ServiceLogOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    try {
      this.#file = this.#open();
    } catch (error) {
      throw this.#cannotBeWritten(error, 'TMPDIR names the folder that logs are kept in: name another');
    }
  }

  /** Whole lines, or a part of the output. */
  write(text: string | Uint8Array): void {
    if (this.#file === undefined && this.#nowMs() - this.#brokenAtMs < RETRY_MS) {
      this.#lost += 1;
      return;
    }
    try {
      this.#file ??= this.#open();
      // What was cut short must not swallow the line that comes next.
      if (this.#lost > 0) writeFileSync(this.#file, '\n');
      writeFileSync(this.#file, text);
      this.#works();
    } catch (error) {
      this.#breaks(error);
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    this.#brokenAtMs = Number.POSITIVE_INFINITY;
  }

  /** Whoever clears a disk of temporary files may take the folder as well. */
  #open(): number {
    mkdirSync(dirname(this.#options.path), { recursive: true });
    return openSync(this.#options.path, 'a');
  }

  #works(): void {
    if (this.#lost === 0) return;
    const { name, path, tell } = this.#options;
    tell(`the log of ${name} is written again, without ${this.#lost} of its lines: ${path}`);
    this.#lost = 0;
  }

  #breaks(error: unknown): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    this.#brokenAtMs = this.#nowMs();
    this.#lost += 1;
    if (this.#lost > 1) return;
    const { name, tell } = this.#options;
    tell(this.#cannotBeWritten(error, `${name} goes on; its lines are lost until it can be`).message);
  }

  #cannotBeWritten(error: unknown, advice: string): Error {
    const { name, path } = this.#options;
    return fileError(`the log of ${name} cannot be written`, path, error, 'written', advice);
  }
}
