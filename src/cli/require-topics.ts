import type { topicSpecs } from '../contracts/topic-specs.ts';
import { listNames, MillraceError } from '../core/errors.ts';
import type { MessageBus } from '../ports/message-bus.ts';

const INGRESS_SUFFIX = '.ingress.v1';

/**
 * With a wrong prefix an installation looks empty, and healthy.
 * @throws MillraceError BUS_UNAVAILABLE where not one of the planned topics exists
 */
export async function requireTopics(
  bus: MessageBus,
  specs: ReturnType<typeof topicSpecs>,
  prefix: string,
): Promise<void> {
  const existing = await bus.admin.listTopics();
  const planned = new Set(specs.map(({ name }) => name));
  if (existing.some((name) => planned.has(name))) return;
  const prefixes = existing
    .filter((name) => name.endsWith(INGRESS_SUFFIX))
    .map((name) => name.slice(0, -INGRESS_SUFFIX.length));
  throw new MillraceError('BUS_UNAVAILABLE', 'no topic of this prefix exists', {
    value: prefix,
    ...(prefixes.length === 0 ? {} : { allowed: `there are topics of ${listNames(prefixes)}` }),
    advice: 'Is MILLRACE_PREFIX right? `millrace topics apply` creates the topics of an installation',
  });
}
