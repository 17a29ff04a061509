import type { Settings } from '../config/settings.ts';
import { MillraceError } from '../core/errors.ts';

/** @throws MillraceError INVALID_CONFIG where the settings name no installation */
export function requireKafka(settings: Settings): void {
  if (settings.kafka.brokers.length > 0) return;
  throw new MillraceError(
    'INVALID_CONFIG',
    'this command needs an installation, and MILLRACE_KAFKA_BROKERS is not set',
    { advice: 'Set it, or run `millrace stack up` and use the environment that it prints' },
  );
}
