import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadSettings } from '../config/load-settings.ts';
import { fileError } from '../config/user-file.ts';
import { MillraceError } from '../core/errors.ts';
import { readModelLocation } from '../core/model/model-location.ts';
import type { PublishedModel } from '../core/model/published-model.ts';
import { describeVersion } from '../inference/repository/describe-version.ts';
import { anyModelSource } from '../wiring/model-source.ts';
import type { CliContext } from './context.ts';
import { waitingFor } from './waiting.ts';

/** What a person named: a folder here, or a URL. @returns the place as everybody may read it @throws MillraceError INVALID_CONFIG */
export function placeOf(text: string): string {
  const place = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : resolve(text);
  try {
    const location = readModelLocation(place);
    return location.kind === 'http' ? location.url : pathToFileURL(location.path).href;
  } catch (cause) {
    if (!(cause instanceof MillraceError)) throw cause;
    throw new MillraceError('INVALID_CONFIG', cause.message, { cause });
  }
}

/**
 * Reads the version's files at the place, and nothing else there.
 * @throws MillraceError INVALID_MODEL, MODEL_UNAVAILABLE, INVALID_CONFIG for a folder that has not what makes a version
 */
export async function describePlace(
  context: CliContext,
  place: string,
): Promise<Omit<PublishedModel, 'source'>> {
  const source = anyModelSource(loadSettings(context.environment).settings, context.clock);
  const described = describeVersion(source, place, context.interruption());
  try {
    return await waitingFor(context, 'reading the files of the version', described);
  } catch (error) {
    throw ofFolder(error);
  }
}

/** To a worker a file that is not there is a reason to wait; who names the folder can correct it. */
function ofFolder(error: unknown): unknown {
  const cause = error instanceof MillraceError ? error.cause : undefined;
  if (!(cause instanceof Error && 'path' in cause && typeof cause.path === 'string')) return error;
  const advice =
    'A version is a folder with its config.yaml and the files which that names, such as models/repository/ranker/2';
  return fileError('the files of the version cannot be read', cause.path, cause, 'read', advice);
}
