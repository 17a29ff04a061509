import { Command } from 'commander';
import { loadSettings } from '../config/load-settings.ts';
import { plannedTopics } from '../wiring/apply-topics.ts';
import type { CliContext } from './context.ts';
import { tableLines } from './table.ts';
import { carryOut, planTopics, type TopicStep } from './topic-plan.ts';
import { waitingFor } from './waiting.ts';

interface ApplyFlags {
  dryRun: boolean;
  json: boolean;
}

/** `millrace topics apply`: the topics that the settings and the fleet ask for. */
export function topicsCommand(context: CliContext): Command {
  const topics = new Command('topics').description('The topics of an installation');
  topics
    .command('apply')
    .description(
      'Create the topics that are missing, and add partitions where there are too few; nothing else is touched',
    )
    .option('--dry-run', 'print the plan, and do nothing', false)
    .option('--json', 'print one JSON object instead of text', false)
    .addHelpText(
      'after',
      `
What there should be follows from the settings (kafka.partitions, kafka.replication, slotsPerPool, tenants) and from the pools
of the fleet. Doing it again changes nothing. Partitions are never taken away, and settings of a topic that exists stay.

Examples:
  millrace topics apply --dry-run
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
    const steps = await waitingFor(context, 'reading the topics', planTopics(specs, bus));
    if (!flags.json) context.stdout.write(`${planLines(steps).join('\n')}\n`);
    if (!flags.dryRun) await waitingFor(context, 'applying the plan', carryOut(steps, bus));
    const summary = { dryRun: flags.dryRun, ...countSteps(steps) };
    context.stdout.write(
      flags.json
        ? `${JSON.stringify({ ...summary, topics: steps.map(jsonStep) })}\n`
        : `${summaryLine(flags.dryRun, summary)}\n`,
    );
  } finally {
    await bus.close();
  }
}

function summaryLine(dryRun: boolean, { create, grow, exists }: ReturnType<typeof countSteps>): string {
  return dryRun
    ? `dry run, nothing was changed: ${create} to create, ${grow} to grow, ${exists} as they should be`
    : `created ${create}, grew ${grow}, ${exists} were as they should be`;
}

function countSteps(steps: readonly TopicStep[]): Record<TopicStep['action'], number> {
  const counts = { create: 0, grow: 0, exists: 0 };
  for (const { action } of steps) counts[action] += 1;
  return counts;
}

function jsonStep({ spec, action, partitions }: TopicStep): object {
  const { name, replication, config } = spec;
  return action === 'create'
    ? { topic: name, action, partitions: spec.partitions, replication, config }
    : { topic: name, action, partitions: spec.partitions, partitionsBefore: partitions };
}

function planLines(steps: readonly TopicStep[]): string[] {
  const rows = steps.map(({ spec, action, partitions }) => [
    action,
    spec.name,
    action === 'grow' ? `${partitions} → ${spec.partitions}` : String(partitions ?? spec.partitions),
    remark(spec.partitions, partitions) ?? retention(spec.config),
  ]);
  const lines = tableLines(['plan', 'topic', 'partitions', 'kept'], rows);
  if (!steps.some(({ action }) => action === 'grow')) return lines;
  return [
    ...lines,
    'More partitions give a key another one: let what is in flight drain first, or a second result of a request may lie elsewhere than its first.',
  ];
}

function remark(wanted: number, partitions: number | undefined): string | undefined {
  return partitions !== undefined && partitions > wanted
    ? `has more than the ${wanted} asked for; they stay`
    : undefined;
}

function retention(config: Readonly<Record<string, string>>): string {
  if (config['cleanup.policy'] === 'compact') return 'the last per key';
  const retentionMs = Number(config['retention.ms']);
  if (retentionMs < 0) return 'for ever';
  const hours = retentionMs / 3_600_000;
  if (hours >= 48) return `${hours / 24} days`;
  return hours >= 1 ? `${hours} h` : `${retentionMs / 60_000} min`;
}
