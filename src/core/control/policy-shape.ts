import { count, fields, type Shape, text } from './json-shape.ts';
import type { PublishedPolicy } from './published-policy.ts';

export const policyShape: Shape<PublishedPolicy> = fields({ digest: text, name: text, version: count });
