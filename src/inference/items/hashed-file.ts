import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open, rm } from 'node:fs/promises';

const CHUNK_BYTES = 1024 * 1024;

/** A file that is being written and hashed, a megabyte at a time. */
export class HashedFile {
  readonly path: string;
  readonly #file: FileHandle;
  readonly #hash: Hash = createHash('sha256');
  #bytes = 0;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  static async create(path: string): Promise<HashedFile> {
    return new HashedFile(path, await open(path, 'wx+'));
  }

  get bytes(): number {
    return this.#bytes;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#hash.update(bytes);
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, at, Math.min(CHUNK_BYTES, bytes.length - at));
      at += bytesWritten;
    }
    this.#bytes += bytes.length;
  }

  /** Zeros up to a place further on. */
  async padTo(bytes: number): Promise<void> {
    if (bytes > this.#bytes) await this.write(new Uint8Array(bytes - this.#bytes));
  }

  /** What was written, from its beginning, in pieces of whole multiples of `unit`. */
  async *read(unit: number): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    const size = Math.max(1, Math.floor(CHUNK_BYTES / unit)) * unit;
    for (let at = 0; at < this.#bytes; at += size) {
      const piece = new Uint8Array(Math.min(size, this.#bytes - at));
      await this.#file.read(piece, 0, piece.length, at);
      yield piece;
    }
  }

  /** @returns the digest, `sha256:<hex>`, once everything is on the disk */
  async end(): Promise<string> {
    await this.#file.sync();
    await this.#file.close();
    return `sha256:${this.#hash.digest('hex')}`;
  }

  async discard(): Promise<void> {
    await this.#file.close().catch(() => undefined);
    await rm(this.path, { force: true });
  }
}
