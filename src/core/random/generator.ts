/** A deterministic stream of draws. */
export interface Generator {
  /** Uniform in [0, 1), with 53 random bits. */
  next(): number;
  /** Uniform integer in [0, below); `below` is an integer from 1 to 2^32. */
  below(below: number): number;
}

const TWO_32 = 2 ** 32;
const WARM_UP_DRAWS = 15;

/**
 * sfc32 (Chris Doty-Humphrey's "Small Fast Counting" generator, as in PractRand): 128 bits of state, a period of at least 2^32
 * draws. The state is a hash of the seed and the name, so that streams of one seed are unrelated to each other.
 */
export function createGenerator(seed: number, name: string): Generator {
  const text = `${seed}/${name}`;
  let a = hash(text, 0x9e3779b9);
  let b = hash(text, 0x243f6a88);
  let c = hash(text, 0xb7e15162);
  let counter = hash(text, 0x6a09e667);

  const draw = (): number => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return sum >>> 0;
  };
  for (let i = 0; i < WARM_UP_DRAWS; i++) draw();

  return {
    next: () => ((draw() >>> 5) * 2 ** 26 + (draw() >>> 6)) / 2 ** 53,
    below(below) {
      if (!Number.isInteger(below) || below < 1 || below > TWO_32) {
        throw new RangeError(`below must be an integer from 1 to 2^32, not ${below}`);
      }
      // The draws past the last whole multiple would favour small results: draw again.
      const fair = TWO_32 - (TWO_32 % below);
      let drawn = draw();
      while (drawn >= fair) drawn = draw();
      return drawn % below;
    },
  };
}

/** FNV-1a over the UTF-16 units from a chosen start, finished by murmur3's fmix32 so that every input bit reaches every output bit. */
function hash(text: string, start: number): number {
  let h = start;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
