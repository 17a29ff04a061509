import type { Redis } from 'ioredis';

/**
 * Ends the connection when more comes back than anybody asked for: a value is as long as whoever wrote it liked, and Redis sends it whole. Commands
 * under way then fail, and the connection is made anew.
 */
export class ReplyBound {
  readonly #redis: Redis;
  /** Beside what is expected. */
  readonly #slackBytes: number;
  #leftBytes: number;
  #reading = 0;

  constructor(redis: Redis, slackBytes: number) {
    this.#redis = redis;
    this.#slackBytes = slackBytes;
    this.#leftBytes = slackBytes;
    redis.on('connect', () => redis.stream.on('data', ({ length }: Uint8Array) => this.#came(length)));
  }

  /** From now on so much more may come. @returns called once it is not expected any more */
  expect(bytes: number): () => void {
    this.#reading += 1;
    this.#leftBytes += bytes;
    return () => {
      this.#reading -= 1;
      if (this.#reading === 0) this.#leftBytes = this.#slackBytes;
    };
  }

  #came(bytes: number): void {
    this.#leftBytes -= bytes;
    if (this.#leftBytes < 0) this.#redis.stream.destroy();
  }
}
