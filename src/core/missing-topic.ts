import { MillraceError } from './errors.ts';

/** What every bus says of a topic that is not there: most often it was never created, or is another installation's. */
export function missingTopic(topic: string): MillraceError {
  return new MillraceError('BUS_UNAVAILABLE', 'The topic does not exist', {
    value: topic,
    advice:
      'Create it with `millrace topics apply`: using a topic never creates it. Or is MILLRACE_PREFIX right?',
  });
}
