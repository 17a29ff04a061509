import type { MessageBus, TopicSpec } from '../ports/message-bus.ts';

/** What is to be done about one topic. */
export interface TopicStep {
  spec: TopicSpec;
  action: 'create' | 'grow' | 'exists';
  /** What it has now; undefined where there is none. */
  partitions: number | undefined;
}

/** Compares what there should be with what there is. */
export async function planTopics(specs: readonly TopicSpec[], bus: MessageBus): Promise<TopicStep[]> {
  const existing = new Set(await bus.admin.listTopics());
  return Promise.all(
    specs.map(async (spec) =>
      stepFor(spec, existing.has(spec.name) ? await bus.partitionCount(spec.name) : undefined),
    ),
  );
}

function stepFor(spec: TopicSpec, partitions: number | undefined): TopicStep {
  if (partitions === undefined) return { spec, action: 'create', partitions };
  return { spec, action: partitions < spec.partitions ? 'grow' : 'exists', partitions };
}

/** Does what the plan says; what others did meanwhile is left as it is. */
export async function carryOut(steps: readonly TopicStep[], bus: MessageBus): Promise<void> {
  await bus.admin.createTopics(steps.filter(({ action }) => action === 'create').map(({ spec }) => spec));
  for (const { spec, action } of steps)
    if (action === 'grow') await bus.admin.growTopic(spec.name, spec.partitions);
}
