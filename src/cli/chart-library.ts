import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { ChartLibrary } from '../simulation/report/simulation-page.ts';

/** uPlot as it is installed. */
export function chartLibrary(): ChartLibrary {
  const installed = createRequire(import.meta.url);
  const read = (file: string): string => readFileSync(installed.resolve(`uplot/${file}`), 'utf8');
  return {
    script: read('dist/uPlot.iife.min.js'),
    style: read('dist/uPlot.min.css'),
    licence: read('LICENSE'),
  };
}
