import { type Client, connect } from '../client/client.ts';
import { loadSettings } from '../config/load-settings.ts';
import type { CliContext } from './context.ts';
import { opening } from './opening.ts';
import { requireKafka } from './require-kafka.ts';

/** Does something with a client of the installation that the settings name, and closes it. @throws MillraceError INVALID_CONFIG where they name none */
export async function withClient<T>(context: CliContext, work: (client: Client) => Promise<T>): Promise<T> {
  const { settings } = loadSettings(context.environment);
  requireKafka(settings);
  // What is left unread at the end is nothing that the bus need warn of.
  const logLevel = settings.logLevel === 'info' ? 'error' : settings.logLevel;
  const transport = context.transport({ ...settings, logLevel });
  const client = await opening(context, 'connecting to the installation', transport, (told) =>
    connect({ transport: told }),
  );
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
