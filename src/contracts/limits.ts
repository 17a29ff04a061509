/** What one record may cost to read. Beyond any of these it is refused before anything is allocated for it. */
export interface DecodeLimits {
  /** Bytes of a ScoreRequest's record value, frame included. */
  bytesMax: number;
  /** What any other record may have on top: RoutableRequest and Dispatch carry the request's bytes inside. */
  envelopeBytesMax: number;
  /** Array items and map entries of the whole record. */
  itemsMax: number;
  /** Values that take no byte at all (null, an empty record) of the whole record. */
  zeroByteItemsMax: number;
  /** Records, arrays and maps inside each other. */
  depthMax: number;
  /** Values looked at, of any kind. */
  stepsMax: number;
}

export const DECODE_LIMITS: Readonly<DecodeLimits> = {
  bytesMax: 1024 * 1024,
  envelopeBytesMax: 128 * 1024,
  itemsMax: 16_384,
  zeroByteItemsMax: 10_000,
  depthMax: 64,
  stepsMax: 1_000_000,
};
