import { listNames, MillraceError } from '../../core/errors.ts';
import type { ItemColumns } from '../../ports/item-source.ts';

/** Where the columns stand among those of the file. */
export interface FoundColumns {
  id: number;
  features: readonly number[];
}

/** @param names of the file's columns @throws MillraceError INVALID_CONFIG for a column that is not there, or there twice */
export function findColumns(
  file: string,
  names: readonly string[],
  { id, features }: ItemColumns,
): FoundColumns {
  const find = (name: string): number => {
    const at = names.indexOf(name);
    if (at < 0) throw noColumn(file, name, names);
    if (names.includes(name, at + 1))
      throw new MillraceError('INVALID_CONFIG', `${file} has two columns of one name`, { value: name });
    return at;
  };
  const named =
    'names' in features ? features.names : names.filter((name) => name.startsWith(features.prefix));
  const wanted = 'names' in features ? named : named.filter((name) => name !== id);
  if (wanted.length === 0)
    throw new MillraceError('INVALID_CONFIG', `${file} has no columns of features`, {
      value: 'prefix' in features ? features.prefix : '',
      allowed: listNames(names),
      advice: '--features names them, --prefix says what their names begin with.',
    });
  const twice = wanted.find((name, at) => wanted.indexOf(name) < at);
  if (twice !== undefined)
    throw new MillraceError('INVALID_CONFIG', 'a column is named twice', {
      value: twice,
      allowed: 'each once',
    });
  return { id: find(id), features: wanted.map(find) };
}

function noColumn(file: string, name: string, names: readonly string[]): MillraceError {
  return new MillraceError('INVALID_CONFIG', `${file} has no such column`, {
    value: name,
    allowed: listNames(names),
  });
}

/** Whether a feature can be kept as FP32. */
export function isFinite32(value: number): boolean {
  return Number.isFinite(Math.fround(value));
}

/** @param where `items.csv line 7` */
export function badValue(where: string, column: string, value: unknown): MillraceError {
  return new MillraceError('INVALID_CONFIG', `${where}, column ${JSON.stringify(column)}: no finite number`, {
    value,
    allowed: 'a finite number that FP32 holds',
    advice: 'Replace what is unknown by a number, for example by the mean of the column.',
  });
}

export function badId(where: string, column: string): MillraceError {
  return new MillraceError('INVALID_CONFIG', `${where}, column ${JSON.stringify(column)}: there is no id`, {
    allowed: 'a number or a text',
  });
}
