import { INDEX_INPUTS } from '../rocs/lowering.ts';

/** Inputs that a version has beside what requests send: which request each candidate is of, and how candidates lie in tiles. */
export const REQUEST_INDEX = 'request_index';
export const TILE_INPUTS: readonly string[] = Object.values(INDEX_INPUTS);
