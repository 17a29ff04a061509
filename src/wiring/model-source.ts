import { folderModelSource } from '../adapters/model-source/folder.ts';
import { httpModelSource } from '../adapters/model-source/http.ts';
import { readModelLocation } from '../core/model/model-location.ts';
import type { ModelSource } from '../ports/model-source.ts';

/** Reads from whatever a source names: see `readModelLocation`. */
export function anyModelSource(): ModelSource {
  const folder = folderModelSource();
  const http = httpModelSource();
  return {
    read(source, file, bytesMax, over) {
      const location = readModelLocation(source);
      return location.kind === 'folder'
        ? folder.read(location.path, file, bytesMax, over)
        : http.read(location.url, file, bytesMax, over);
    },
  };
}
