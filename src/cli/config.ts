import { Command } from 'commander';
import { loadSettings, type SettingVariable, settingVariables, shownValue } from '../config/load-settings.ts';
import type { CliContext } from './context.ts';
import { tableLines } from './table.ts';

interface ShowFlags {
  json: boolean;
  markdown: boolean;
}

/** `millrace config show`: every setting with its variable, value and source. */
export function configCommand(context: CliContext): Command {
  const config = new Command('config').description('The settings of this environment');
  config
    .command('show')
    .description('Show every setting: its value, where that comes from, its variable, and what it means')
    .option('--json', 'print a JSON array instead of text', false)
    .option(
      '--markdown',
      'print the page docs/configuration.md: defaults only, whatever the environment',
      false,
    )
    .addHelpText(
      'after',
      `
A setting has its default, unless the YAML file that MILLRACE_CONFIG names sets it, unless its variable does; flags of a
command win over all. Secrets are masked.

Examples:
  millrace config show
  MILLRACE_TOPOLOGY=fused millrace config show --json
  echo 'kafka: {partitions: 48, replication: 3}' > millrace.yaml && MILLRACE_CONFIG=millrace.yaml millrace config show`,
    )
    .action((flags: ShowFlags) => {
      if (flags.markdown) context.stdout.write(configurationPage());
      else show(context, flags.json);
    });
  return config;
}

function show(context: CliContext, json: boolean): void {
  const { settings, sources } = loadSettings(context.environment);
  const shown = settingVariables().map((variable) => {
    const setting = variable.path.join('.');
    return {
      setting,
      variable: variable.variable,
      value: shownValue(variable, settings),
      source: sources.get(setting) ?? 'default',
      default: variable.defaultValue,
      allowed: variable.allowed,
      description: variable.description,
    };
  });
  if (json) {
    context.stdout.write(`${JSON.stringify(shown, null, 2)}\n`);
    return;
  }
  const rows = shown.map(({ setting, value, source, variable, description }) => [
    setting,
    plain(value),
    source,
    variable,
    description,
  ]);
  const lines = tableLines(['setting', 'value', 'source', 'variable', 'meaning'], rows);
  context.stdout.write(`${lines.join('\n')}\n`);
}

/** Text of a value as the variable would be written. */
function plain(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '–' : value.join(',');
  return value === '' ? '–' : String(value);
}

/** docs/configuration.md: the settings with their defaults. */
export function configurationPage(): string {
  const groups = Map.groupBy(settingVariables(), ({ path }) => (path.length === 1 ? '' : (path[0] ?? '')));
  const sections = [...groups].map(([group, variables]) =>
    [
      group === '' ? '## General' : `## \`${group}\``,
      '',
      '| setting | variable | default | allowed | meaning |',
      '| --- | --- | --- | --- | --- |',
      ...variables.map(markdownRow),
    ].join('\n'),
  );
  return `${PAGE_HEAD}\n${sections.join('\n\n')}\n`;
}

const PAGE_HEAD = `# Configuration

Written by \`millrace config show --markdown > docs/configuration.md\`: to change it, change \`src/config/settings.ts\`.

Every process of millrace reads the same settings. Each has a default; the YAML file that \`MILLRACE_CONFIG\` names overrides it;
the environment variable overrides both; flags of a command win over all. In the file, settings nest as their names do:

    topology: fused
    kafka:
      brokers: [broker-1:9092, broker-2:9092]
      replication: 3

A variable that begins with \`MILLRACE_\` and is none of these, a key of the file that is none of these, and a value that is not
allowed are refused at the start, by name. In a variable, the items of a list are separated by commas. \`millrace config show\`
tells what is in force and where it came from; passwords, and credentials within URLs, are masked.

Variables that are no settings: \`MILLRACE_CONFIG\` (the file), \`MILLRACE_STACK_CACHE\` (where \`millrace stack\` keeps what it downloads, and which stack is up).
`;

function markdownRow(variable: SettingVariable): string {
  const { defaultValue } = variable;
  const isEmpty = defaultValue === '' || (Array.isArray(defaultValue) && defaultValue.length === 0);
  const cells = [
    `\`${variable.path.join('.')}\``,
    `\`${variable.variable}\``,
    isEmpty ? '' : `\`${plain(defaultValue)}\``,
    variable.allowed,
    variable.description,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
