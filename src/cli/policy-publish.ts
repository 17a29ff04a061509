import { Command } from 'commander';
import type { CliContext } from './context.ts';
import { readValidPolicy } from './policy-check.ts';
import { dispatchCommand, newCommand, type SendFlags, withSendOptions } from './send-command.ts';

/** `millrace policy publish <file>`: a policy to the controller, and its answer. */
export function publishCommand(context: CliContext): Command {
  const command = new Command('publish')
    .description('Send a policy to the controller, and show what it made of it')
    .argument('<file>', 'policy, YAML or JSON');
  return withSendOptions(command)
    .addHelpText(
      'after',
      `
The policy is checked first, as millrace policy validate does, on the fleet of the settings; one that is not valid is not sent. Then the
controller checks it again, by its own fleet. What happens next is for its setting controller.rollout to say: the policy waits for
millrace policy rollout start, or is live at once.

Needs a running installation: MILLRACE_KAFKA_BROKERS and MILLRACE_REGISTRY_URL. Exit code: 0 accepted, 1 refused by the controller or not
answered in time, 2 not sent for something that you can correct.

Examples:
  millrace policy publish my-policy.yaml
  millrace policy publish my-policy.yaml --key ana-2026.pem
  millrace policy publish my-policy.yaml --key ana-2026.pem --json | jq .event.epoch`,
    )
    .action((file: string, flags: SendFlags) => publish(context, file, flags));
}

async function publish(context: CliContext, file: string, flags: SendFlags): Promise<void> {
  const policy = readValidPolicy(context, file);
  if (policy === undefined) return;
  const { name, bytes } = policy;
  const command = newCommand(context, { scope: `policy/${name}`, type: 'PUBLISH_POLICY', body: bytes });
  await dispatchCommand(context, command, flags);
}
