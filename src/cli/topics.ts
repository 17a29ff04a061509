import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { topicNames } from '../contracts/topics.ts';
import type { TopicConfig } from '../ports/message-bus.ts';
import { plannedTopics } from '../wiring/apply-topics.ts';
import type { CliContext } from './context.ts';
import { tableLines } from './table.ts';
import { carryOut, type Difference, planTopics, type TopicPlan, type TopicStep } from './topic-plan.ts';
import { waitingFor } from './waiting.ts';

interface ApplyFlags {
  configure: boolean;
  dryRun: boolean;
  json: boolean;
}

/** `millrace topics apply`: the topics that the settings and the fleet ask for. */
export function topicsCommand(context: CliContext): Command {
  const topics = new Command('topics').description('The topics of an installation');
  topics
    .command('apply')
    .description('Create the topics that are missing, and add partitions where there are too few')
    .option('--configure', 'also set the values of topics that exist to those asked for', false)
    .option('--dry-run', 'print the plan, and do nothing', false)
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
What there should be follows from the settings (kafka.partitions, kafka.replication, slotsPerPool, tenants) and from the pools
of the fleet. Doing it again changes nothing. Partitions are never taken away. Values of a topic that exists which differ from those
asked for (retention, LogAppendTime, …) are listed; --configure sets them, and leaves all others.

Examples:
  millrace topics apply --dry-run
  millrace topics apply --configure
  MILLRACE_KAFKA_PARTITIONS=48 MILLRACE_KAFKA_REPLICATION=3 millrace topics apply`,
    )
    .action((flags: ApplyFlags) => apply(context, flags));
  return topics;
}

async function apply(context: CliContext, flags: ApplyFlags): Promise<void> {
  const { settings } = loadSettings(context.environment);
  const specs = plannedTopics(settings);
  const bus = await waitingFor(context, 'connecting to Kafka', context.openBus(settings));
  try {
    const plan = await waitingFor(context, 'reading the topics', planTopics(specs, bus));
    const summary = { dryRun: flags.dryRun, ...countSteps(plan.steps), configured: flags.configure };
    if (!flags.json) context.stdout.write(`${planLines(plan, flags.configure).join('\n')}\n`);
    if (!flags.dryRun) await waitingFor(context, 'applying the plan', carryOut(plan, bus, flags));
    context.stdout.write(
      flags.json
        ? `${JSON.stringify({ ...summary, topics: plan.steps.map(jsonStep) })}\n`
        : `${summaryLine(summary)}\n`,
    );
  } finally {
    await bus.close();
  }
}

interface Summary {
  dryRun: boolean;
  create: number;
  grow: number;
  /** Of topics that exist: as asked for, or with other values. */
  exists: number;
  differ: number;
  /** Whether those that differ are given what was asked for. */
  configured: boolean;
}

function summaryLine({ dryRun, create, grow, exists, differ, configured }: Summary): string {
  const differing = differ === 0 ? '' : `, ${differ} with other values`;
  if (dryRun) {
    return `dry run, nothing was changed: ${create} to create, ${grow} to grow, ${exists} as they should be${differing}`;
  }
  const change = differ > 0 && configured ? ', which were set' : '';
  return `created ${create}, grew ${grow}, ${exists} were as they should be${differing}${change}`;
}

function countSteps(steps: readonly TopicStep[]): Pick<Summary, 'create' | 'grow' | 'exists' | 'differ'> {
  const counts = { create: 0, grow: 0, exists: 0, differ: 0 };
  for (const { action, differences } of steps) {
    if (differences.length > 0) counts.differ += 1;
    if (action !== 'exists' || differences.length === 0) counts[action] += 1;
  }
  return counts;
}

function jsonStep({ spec, action, partitions, differences }: TopicStep): object {
  const { name, replication, config } = spec;
  return action === 'create'
    ? { topic: name, action, partitions: spec.partitions, replication, config }
    : { topic: name, action, partitions: spec.partitions, partitionsBefore: partitions, differences };
}

/** How its name ends, whatever the prefix. */
const RESULTS = topicNames('').fixed('scored-results');

function planLines({ steps, unreadable }: TopicPlan, configure: boolean): string[] {
  const rows = steps.map(({ spec, action, partitions, differences }) => [
    action,
    spec.name,
    action === 'grow' ? `${partitions} → ${spec.partitions}` : String(partitions ?? spec.partitions),
    remark(spec.partitions, partitions) ?? retention(configNow(spec.config, differences)),
  ]);
  const lines = tableLines(['plan', 'topic', 'partitions', 'kept'], rows);
  const growing = steps.filter(({ action }) => action === 'grow');
  if (growing.length > 0) {
    lines.push(
      'More partitions give a key another one: let what is in flight drain first, or a second result of a request may lie elsewhere than its first.',
    );
  }
  const results = growing.find(({ spec }) => spec.name.endsWith(RESULTS));
  if (results !== undefined) {
    lines.push(
      `Services count the partitions of ${results.spec.name} when they start: restart every worker, then every router, then every extractor, before requests come again.`,
    );
  }
  lines.push(...differenceLines(steps, configure));
  if (unreadable !== undefined) {
    lines.push(
      `Values of topics that exist are not known: ${unreadable instanceof Error ? unreadable.message : String(unreadable)}`,
    );
  }
  return lines;
}

function differenceLines(steps: readonly TopicStep[], configure: boolean): string[] {
  const rows = steps.flatMap(({ spec, differences }) =>
    differences.map(({ name, present, wanted }) => [spec.name, name, present ?? '', wanted]),
  );
  if (rows.length === 0) return [];
  return [
    '',
    ...tableLines(['topic that exists', 'value', 'is', 'asked for'], rows),
    configure ? 'To be set to what is asked for.' : 'They stay as they are; --configure sets them.',
  ];
}

function remark(wanted: number, partitions: number | undefined): string | undefined {
  return partitions !== undefined && partitions > wanted
    ? `has more than the ${wanted} asked for; they stay`
    : undefined;
}

function configNow(wanted: TopicConfig, differences: readonly Difference[]): TopicConfig {
  return { ...wanted, ...Object.fromEntries(differences.map(({ name, present }) => [name, present ?? ''])) };
}

function retention(config: TopicConfig): string {
  if (config['cleanup.policy'] === 'compact') return 'the last per key';
  const retentionMs = Number(config['retention.ms']);
  if (retentionMs < 0) return 'for ever';
  const hours = retentionMs / 3_600_000;
  if (hours >= 48) return `${hours / 24} days`;
  return hours >= 1 ? `${hours} h` : `${retentionMs / 60_000} min`;
}
