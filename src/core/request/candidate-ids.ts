import { MillraceError } from '../errors.ts';
import type { Tensor } from './tensor.ts';
import { checkTensorSize } from './tensor-size.ts';

/** @throws MillraceError INVALID_TENSOR for ids that are none, or fewer than `count` */
export function checkIds(ids: Tensor, count: number): void {
  const { datatype } = ids;
  if (datatype !== 'INT64' && datatype !== 'BYTES')
    throw new MillraceError('INVALID_TENSOR', 'candidateIds has a datatype that ids do not come in', {
      value: datatype,
      allowed: 'INT64, BYTES',
    });
  const size = checkTensorSize(ids, datatype, 1, 'candidateIds');
  if (typeof size !== 'number') throw new MillraceError(size.code, size.message);
  if (size < count)
    throw new MillraceError('INVALID_TENSOR', 'candidateIds has too few ids', {
      value: size,
      allowed: `at least ${count}`,
    });
}

/** The first ids of a tensor that was checked. */
export function firstIds({ datatype, contents }: Tensor, count: number): (bigint | string)[] {
  if (datatype === 'INT64') return Array.from({ length: count }, (_, k) => contents.readBigInt64LE(8 * k));
  let at = 0;
  return Array.from({ length: count }, () => {
    const start = at + 4;
    at = start + contents.readUInt32LE(at);
    return contents.toString('utf8', start, at);
  });
}
