import { folderModelSource } from '../adapters/model-source/folder.ts';
import { httpModelSource } from '../adapters/model-source/http.ts';
import { s3Signer } from '../adapters/model-source/s3-signer.ts';
import type { Settings } from '../config/settings.ts';
import { readModelLocation } from '../core/model/model-location.ts';
import type { Clock } from '../ports/clock.ts';
import type { ModelSource } from '../ports/model-source.ts';

/** Reads from whatever a source names: see `readModelLocation`. */
export function anyModelSource({ s3 }: Pick<Settings, 's3'>, clock: Clock): ModelSource {
  const folder = folderModelSource();
  const http = httpModelSource({ sign: s3Signer({ ...s3, clock }) });
  return {
    read(source, file, bytesMax, over) {
      const location = readModelLocation(source);
      return location.kind === 'folder'
        ? folder.read(location.path, file, bytesMax, over)
        : http.read(location.url, file, bytesMax, over);
    },
  };
}
