import { describe, expect, it } from 'vitest';
import { loadSettings } from '../../../src/config/load-settings.ts';
import { DEFAULT_LIMITS } from '../../../src/core/rollout/rollout-terms.ts';
import { DEFAULT_ROLLOUT_CONFIG } from '../../../src/stages/policy-controller/controller-config.ts';
import { rolloutConfig } from '../../../src/wiring/rollout-config.ts';

const configOf = (environment: Record<string, string>) => rolloutConfig(loadSettings(environment).settings);

describe('how rollouts go', () => {
  it('is by default what the controller has by default', () => {
    expect(configOf({})).toEqual(DEFAULT_ROLLOUT_CONFIG);
  });

  it('has every limit from a setting', () => {
    const environment = Object.fromEntries(
      Object.keys(DEFAULT_LIMITS)
        .filter((name) => name !== 'shadowRequestsMin')
        .map((name) => [
          `MILLRACE_GUARDRAILS_${name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toUpperCase()}`,
          name === 'toleratedRate' ? '0.002' : name === 'successObjective' ? '0.75' : '1',
        ]),
    );
    const { limits } = configOf(environment);
    const expected = Object.fromEntries(Object.keys(DEFAULT_LIMITS).map((name) => [name, 1]));
    expect(limits).toEqual({
      ...expected,
      shadowRequestsMin: DEFAULT_LIMITS.shadowRequestsMin,
      toleratedRate: 0.002,
      successObjective: 0.75,
    });
  });

  it('judges shares on no more requests than a shadow must have', () => {
    const { limits } = configOf({ MILLRACE_CONTROLLER_SHADOW_REQUESTS_MIN: '50' });
    expect(limits).toMatchObject({ shadowRequestsMin: 50, shareRequestsMin: 50 });
  });

  it.each([
    ['MILLRACE_GUARDRAILS_TOLERATED_RATE', '0', 'numbers 0.000001 … 0.1'],
    ['MILLRACE_GUARDRAILS_SCORE_PSI_MAX', '-1', 'numbers 0 … 1000'],
    ['MILLRACE_GUARDRAILS_BREACH_LOOKS', '1.5', 'whole numbers 1 … 1000'],
    ['MILLRACE_GUARDRAILS_SUCCESS_OBJECTIVE', '1', 'numbers 0.5 … 0.999999'],
    ['MILLRACE_CONTROLLER_PROMETHEUS_URL', 'https://user:secret@prometheus', 'without credentials'],
    ['MILLRACE_CONTROLLER_PROMETHEUS_URL', 'prometheus:9090', 'an http(s) URL'],
  ])('refuses %s=%s, and says what is allowed', (name, value, allowed) => {
    expect(() => configOf({ [name]: value })).toThrow(expect.objectContaining({ code: 'INVALID_CONFIG' }));
    expect(() => configOf({ [name]: value })).toThrow(allowed);
    expect(() => configOf({ [name]: value })).not.toThrow(/secret/);
  });
});
