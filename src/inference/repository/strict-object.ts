import { z } from 'zod';

/** An object without unknown keys; the complaint about one names the keys that are known. */
export function strictObject<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined;
      return `unknown key ${issue.keys.join(', ')}; allowed: ${Object.keys(shape).join(', ')}`;
    },
  });
}
