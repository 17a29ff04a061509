import { describe, expect, it } from 'vitest';
import { settingVariables } from '../../../src/config/load-settings.ts';
import { nearestSetting } from '../../../src/config/nearest-setting.ts';

const variables = settingVariables().map(({ variable }) => variable);
const paths = settingVariables().map(({ path }) => path.join('.'));

describe('nearestSetting', () => {
  it.each([
    ['MILLRACE_TOPOLGY', 'MILLRACE_TOPOLOGY'],
    ['MILLRACE_KAFKA_BROKER', 'MILLRACE_KAFKA_BROKERS'],
    ['MILLRACE_BROKERS', 'MILLRACE_KAFKA_BROKERS'],
    ['MILLRACE_KEYS', 'MILLRACE_CONTROLLER_KEYS'],
    ['MILLRACE_ACCEPT_UNSIGNED', 'MILLRACE_CONTROLLER_ACCEPT_UNSIGNED'],
    ['MILLRACE_PROMETHEUS_URL', 'MILLRACE_CONTROLLER_PROMETHEUS_URL'],
    ['MILLRACE_PORT', 'MILLRACE_HTTP_PORT'],
    ['MILLRACE_LOG', 'MILLRACE_LOG_LEVEL'],
    ['MILLRACE_MODEL_FOLDER', 'MILLRACE_MODELS'],
    ['MILLRACE_POLICY_FILE', 'MILLRACE_POLICY'],
    ['MILLRACE_FOO', undefined],
    ['MILLRACE_', undefined],
  ])('of %s is %s', (written, expected) => {
    expect(nearestSetting(written, variables)).toBe(expected);
  });

  it.each([
    ['brokers', 'kafka.brokers'],
    ['controller.acceptsUnsigned', 'controller.acceptUnsigned'],
    ['router.folder', 'router.stateFolder'],
  ])('of the path %s is %s', (written, expected) => {
    expect(nearestSetting(written, paths)).toBe(expected);
  });
});
