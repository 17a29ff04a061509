import { redisFeatureSource } from '../adapters/redis/feature-source.ts';
import type { Settings } from '../config/settings.ts';
import type { Clock } from '../ports/clock.ts';
import type { FeatureSource } from '../ports/feature-source.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** The online store that the settings name; undefined where they name none. */
export function openFeatureSource(
  { features: { url, project } }: Pick<Settings, 'features'>,
  deps: { clock: Clock; telemetry: Telemetry },
): FeatureSource | undefined {
  return url === '' ? undefined : redisFeatureSource({ url, project, ...deps });
}
