import { describe, expect, it } from 'vitest';
import { unsignedWarning } from '../../../src/cli/up.ts';
import { loadSettings } from '../../../src/config/load-settings.ts';

const warning = (environment: Record<string, string>): string | undefined =>
  unsignedWarning(loadSettings(environment).settings);

describe('what millrace up says of commands', () => {
  it('is that every one will be refused where there are no keys, and what to do', () => {
    const text = warning({});
    expect(text).toMatch(/^warning: the controller has no keys, and refuses every command/);
    expect(text).toMatch(/millrace policy keygen .*MILLRACE_CONTROLLER_KEYS/);
    expect(text).toContain('MILLRACE_CONTROLLER_ACCEPT_UNSIGNED=true');
  });

  it('is that anybody decides where that was asked for, and nothing where there are keys', () => {
    expect(warning({ MILLRACE_CONTROLLER_ACCEPT_UNSIGNED: 'true' })).toMatch(
      /^warning: commands need no signature .*whoever may write to the control topic decides$/,
    );
    expect(warning({ MILLRACE_CONTROLLER_KEYS: 'keys.yaml' })).toBeUndefined();
  });
});
