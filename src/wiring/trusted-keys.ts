import { ed25519Verifier } from '../adapters/system/ed25519.ts';
import { readKeyFile } from '../config/key-file.ts';
import type { Settings } from '../config/settings.ts';
import type { KeyRing } from '../core/control/key-ring.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { TrustedKeys } from '../stages/policy-controller/signature-gate.ts';

/**
 * The keys that the settings name; says in the log who is trusted, and warns where that is everybody or nobody.
 * @throws MillraceError INVALID_CONFIG for a key file that is not valid
 */
export function trustedKeys({ controller, kafka }: Settings, logger: Logger): TrustedKeys {
  const keys: KeyRing = controller.keys === '' ? new Map() : readKeyFile(controller.keys);
  const trusted = { keys: [...keys.keys()] };
  if (controller.acceptUnsigned) {
    const message =
      'control commands are accepted without a signature: whoever may write to the control topic decides';
    // Within one process nobody else can.
    if (kafka.brokers.length === 0) logger.info(trusted, message);
    else logger.warn(trusted, message);
  } else if (keys.size === 0) {
    logger.warn(
      trusted,
      'every control command will be refused: set controller.keys to a key file, or controller.acceptUnsigned',
    );
  } else logger.info(trusted, 'control commands must be signed');
  return { keys, verify: ed25519Verifier().verify };
}
