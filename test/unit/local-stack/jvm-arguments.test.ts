import { describe, expect, it } from 'vitest';
import { classArchive, jvmArguments } from '../../../src/local-stack/jvm-arguments.ts';

describe('jvmArguments', () => {
  it.each([
    ['use', '-XX:SharedArchiveFile='],
    ['create', '-XX:ArchiveClassesAtExit='],
  ] as const)('to %s the archive of a service', (mode, option) => {
    const archive = classArchive('/cache/classes', 'kafka');
    expect(archive).toBe('/cache/classes/kafka.jsa');
    expect(jvmArguments(mode, '/cache/classes', 'kafka')).toContain(`${option}${archive}`);
  });
});
