import { appendFileSync, cpSync } from 'node:fs';
import { join } from 'node:path';

/** `dcn@3` of the committed models behind the stages; beside it `two-tower@1`, `ranker@1` and `dcn@1`. @returns the folder */
export function cascadeFolder(folder: string, cascade: string): string {
  for (const version of ['two-tower/1', 'ranker/1', 'dcn/1', 'dcn/3'])
    cpSync(join('models/repository', version), join(folder, version), { recursive: true });
  appendFileSync(join(folder, 'dcn/3/config.yaml'), `\ncascade: ${cascade}\n`);
  return folder;
}
