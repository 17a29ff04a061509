import type { MessageBus, TopicConfig, TopicSpec } from '../ports/message-bus.ts';

/** What is to be done about one topic. */
export interface TopicStep {
  spec: TopicSpec;
  action: 'create' | 'grow' | 'exists';
  /** What it has now; undefined where there is none. */
  partitions: number | undefined;
  /** Values of a topic that exists which are not those asked for. */
  differences: readonly Difference[];
}

export interface Difference {
  name: string;
  present: string | undefined;
  wanted: string;
}

export interface TopicPlan {
  steps: readonly TopicStep[];
  /** Why the topics' configurations could not be read, and no difference is known. */
  unreadable: unknown;
}

/** Compares what there should be with what there is. */
export async function planTopics(specs: readonly TopicSpec[], bus: MessageBus): Promise<TopicPlan> {
  const existing = new Set(await bus.admin.listTopics());
  const names = specs.map(({ name }) => name).filter((name) => existing.has(name));
  let configs: ReadonlyMap<string, TopicConfig> = new Map();
  let unreadable: unknown;
  try {
    configs = await bus.admin.topicConfigs(names);
  } catch (error) {
    // Whoever may create topics need not be allowed to describe configurations.
    unreadable = error;
  }
  const steps = specs.map(async (spec) =>
    stepFor(
      spec,
      existing.has(spec.name) ? await bus.partitionCount(spec.name) : undefined,
      configs.get(spec.name),
    ),
  );
  return { steps: await Promise.all(steps), unreadable };
}

function stepFor(
  spec: TopicSpec,
  partitions: number | undefined,
  config: TopicConfig | undefined,
): TopicStep {
  if (partitions === undefined) return { spec, action: 'create', partitions, differences: [] };
  const action = partitions < spec.partitions ? 'grow' : 'exists';
  const differences = config === undefined ? [] : differencesOf(spec.config, config);
  return { spec, action, partitions, differences };
}

function differencesOf(wanted: TopicConfig, present: TopicConfig): Difference[] {
  return Object.entries(wanted)
    .filter(([name, value]) => present[name] !== value)
    .map(([name, value]) => ({ name, present: present[name], wanted: value }));
}

/** Does what the plan says; what others did meanwhile is left as it is. */
export async function carryOut(
  { steps }: TopicPlan,
  bus: MessageBus,
  { configure }: { configure: boolean },
): Promise<void> {
  await bus.admin.createTopics(steps.filter(({ action }) => action === 'create').map(({ spec }) => spec));
  for (const { spec, action, differences } of steps) {
    if (action === 'grow') await bus.admin.growTopic(spec.name, spec.partitions);
    if (!configure || differences.length === 0) continue;
    await bus.admin.configureTopic(
      spec.name,
      Object.fromEntries(differences.map(({ name, wanted }) => [name, wanted])),
    );
  }
}
