import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { prometheusTelemetry } from '../../../../src/adapters/prometheus/telemetry.ts';
import { logProcessWarnings } from '../../../../src/adapters/system/process-warnings.ts';

describe('warnings of the process', () => {
  it('are log lines, and are printed by nobody else', () => {
    const lines: string[] = [];
    const { logger } = prometheusTelemetry({
      service: 'feature-extractor',
      level: 'info',
      destination: { write: (line) => void lines.push(line) },
    });
    const source = new EventEmitter();
    let printed = 0;
    source.on('warning', () => {
      printed += 1;
    });
    logProcessWarnings(source, logger);
    const warning = new Error('11 listeners added');
    warning.name = 'MaxListenersExceededWarning';
    source.emit('warning', warning);
    expect(printed).toBe(0);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', service: 'feature-extractor', warning: 'MaxListenersExceededWarning' },
    ]);
    expect(lines[0]).toContain('11 listeners added');
  });
});
