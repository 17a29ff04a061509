import { MillraceError } from '../errors.ts';
import { FILE_NAME, MODEL_LIMITS } from './published-model.ts';

/** Where the files of a version lie. */
export type ModelLocation =
  | { readonly kind: 'folder'; readonly path: string }
  /** Ends with `/`, before the query where it has one: a file's URL is that with its name put before the query. */
  | { readonly kind: 'http'; readonly url: string };

const ALLOWED =
  'an absolute folder, file:///…, http://… or https://… (of an S3-compatible store its https URL)';

/** @throws MillraceError INVALID_COMMAND */
export function readModelLocation(source: string): ModelLocation {
  if (source.length > MODEL_LIMITS.sourceLength || /[\0\r\n]/.test(source)) throw invalid(source);
  if (source.startsWith('/')) return { kind: 'folder', path: withoutEnd(source) };
  const url = URL.parse(source);
  if (url === null) throw invalid(source);
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw invalid(
      `${url.protocol}//…`,
      'Leave out user, password and fragment: the source is kept in the log for ever.',
    );
  switch (url.protocol) {
    case 'file:':
      if (url.host !== '' || url.search !== '' || /%2f|%5c|%00/i.test(url.pathname)) throw invalid(source);
      return { kind: 'folder', path: withoutEnd(decoded(url.pathname, source)) };
    case 'http:':
    case 'https:':
      if (!url.pathname.endsWith('/')) url.pathname += '/';
      return { kind: 'http', url: url.href };
    default:
      throw invalid(source);
  }
}

/** @throws MillraceError INVALID_MODEL for a name that could lead out of its folder */
export function checkFileName(name: string): void {
  if (FILE_NAME.test(name)) return;
  throw new MillraceError('INVALID_MODEL', 'that is no name of a file', {
    value: name,
    allowed: 'letters, digits, ".", "_", "-"; no folders',
  });
}

/** The address of one file there. @throws MillraceError INVALID_MODEL for a name that could lead out of it */
export function fileUrl(base: string, name: string): string {
  checkFileName(name);
  const url = new URL(base);
  url.pathname += name;
  return url.href;
}

function decoded(path: string, source: string): string {
  try {
    return decodeURIComponent(path);
  } catch (cause) {
    throw invalid(source, undefined, cause);
  }
}

function withoutEnd(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

function invalid(value: string, advice?: string, cause?: unknown): MillraceError {
  return new MillraceError('INVALID_COMMAND', 'that is no place for the files of a model version', {
    value,
    allowed: ALLOWED,
    ...(advice === undefined ? {} : { advice }),
    ...(cause === undefined ? {} : { cause }),
  });
}
