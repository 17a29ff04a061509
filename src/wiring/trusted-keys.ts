import { ed25519Signer, ed25519Verifier } from '../adapters/system/ed25519.ts';
import { readKeyFile } from '../config/key-file.ts';
import type { Settings } from '../config/settings.ts';
import { readUserFile } from '../config/user-file.ts';
import type { KeyRing } from '../core/control/key-ring.ts';
import { MillraceError } from '../core/errors.ts';
import type { Signer } from '../ports/signatures.ts';
import type { Logger } from '../ports/telemetry.ts';
import type { TrustedKeys } from '../stages/policy-controller/signature-gate.ts';
import type { SignatureTrust } from '../stages/signature-trust.ts';

/**
 * The keys that the settings name; says in the log who is trusted, and warns where that is everybody or nobody.
 * @throws MillraceError INVALID_CONFIG for a key file that is not valid
 */
export function trustedKeys({ controller, kafka }: Settings, logger: Logger): TrustedKeys {
  const keys = keysOf(controller);
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

/**
 * What a router takes policies by, and a worker model versions: the keys and the leave of the controller. Undefined where there is nothing that it
 * could check.
 * @param what `policies` or `model versions`: for the log
 * @throws MillraceError INVALID_CONFIG for a key file that is not valid
 */
export function storeTrust(
  { controller }: Settings,
  what: 'policies' | 'model versions',
  logger: Logger,
): SignatureTrust | undefined {
  const keys = keysOf(controller);
  const { acceptUnsigned } = controller;
  if (acceptUnsigned && keys.size === 0) return undefined;
  const trusted = { keys: [...keys.keys()] };
  if (keys.size === 0)
    logger.warn(
      trusted,
      `all ${what} of the store will be refused: set controller.keys to a key file, or controller.acceptUnsigned`,
    );
  else if (!acceptUnsigned) logger.info(trusted, `${what} of the store must be signed`);
  return { keys, acceptUnsigned, verify: ed25519Verifier().verify };
}

/**
 * The controller's own key; undefined where it has none.
 * @throws MillraceError INVALID_CONFIG where it cannot be read, or is no controller's key in the key file
 */
export function controllerSigner({ controller }: Settings, logger: Logger): Signer | undefined {
  const { signingKey, signingKeyId: keyId } = controller;
  if (signingKey === '') {
    if (controller.tuning && !controller.acceptUnsigned)
      logger.warn({}, 'nothing will be tuned: routers run nothing unsigned; set controller.signingKey');
    return undefined;
  }
  const keys = keysOf(controller);
  const signer = ed25519Signer({
    keyId,
    installation: keys.get(keyId)?.installation,
    privateKeyPem: readUserFile(signingKey, 'the key of controller.signingKey'),
  });
  if (keys.size === 0 || keys.get(keyId)?.role === 'controller') return signer;
  const known = [...keys.values()].filter(({ role }) => role === 'controller').map((key) => key.keyId);
  throw new MillraceError('INVALID_CONFIG', 'controller.signingKeyId names no key of a controller', {
    value: keyId,
    allowed: known.join(', ') || 'none in the key file has the role controller',
  });
}

function keysOf({ keys }: Settings['controller']): KeyRing {
  return keys === '' ? new Map() : readKeyFile(keys);
}
