import { isSameJson } from '../control/same-json.ts';
import { DocumentError } from './problem.ts';
import { readSource, type SourceNode } from './source.ts';

/** What a child of tuning says anew, or leaves out. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['version', 'parent', 'tuned', 'expect']);

/**
 * Holds a policy against the one that it should differ from in tuned constants only, however both are written. That each constant is inside its bounds
 * is up to the check of the policy itself.
 *
 * @throws DocumentError INVALID_POLICY where it differs in anything else, or one of them is no document
 */
export function checkTunedOf(root: Uint8Array, child: Uint8Array): void {
  if (isSameJson(contentOf(root), contentOf(child))) return;
  const what = 'the policy differs from the one that it was tuned from in more than its tuned constants';
  throw new DocumentError('INVALID_POLICY', [{ severity: 'error', path: '', position: undefined, what }]);
}

function contentOf(bytes: Uint8Array): unknown {
  const source = readSource(bytes, 'INVALID_POLICY');
  if (source.kind !== 'map') return undefined;
  const kept = [...source.entries].filter(([name]) => !OWN_FIELDS.has(name));
  return Object.fromEntries(kept.map(([name, node]) => [name, plain(node)]));
}

function plain(node: SourceNode): unknown {
  switch (node.kind) {
    case 'scalar':
      return node.value;
    case 'list':
      return node.items.map(plain);
    case 'map':
      return Object.fromEntries([...node.entries].map(([name, each]) => [name, plain(each)]));
    default:
      return node satisfies never;
  }
}
