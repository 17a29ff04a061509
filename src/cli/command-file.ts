import * as v from 'valibot';
import {
  COMMAND_TYPES,
  type ControlCommand,
  makeControlCommand,
  type Signature,
} from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { closedObject, problemOf, timeWithZone, whole } from '../core/json-values.ts';
import { notJson } from './not-json.ts';

/**
 * A command as a file, from who signs it to who co-signs or sends it: JSON, so that the second person reads what the signature is for. The body
 * is the exact text that was signed.
 */
const SIGNATURE = closedObject({
  keyId: v.string(),
  version: whole,
  notAfter: timeWithZone,
  nonce: v.string(),
  bytes: v.pipe(v.string(), v.base64()),
});
const SCHEMA = closedObject({
  commandId: v.pipe(v.string(), v.minLength(1)),
  scope: v.pipe(v.string(), v.minLength(1)),
  type: v.picklist(COMMAND_TYPES),
  actor: v.string(),
  body: v.string(),
  signature: v.nullable(SIGNATURE),
  coSignature: v.nullable(SIGNATURE),
});

/** Ends with a line break. @throws MillraceError INVALID_COMMAND for a body that is no text: what was signed could not be read off the file */
export function commandText(command: ControlCommand): string {
  const { commandId, scope, type, actor, signature, coSignature } = command;
  const body = command.body.toString('utf8');
  if (!Buffer.from(body).equals(command.body))
    throw new MillraceError(
      'INVALID_COMMAND',
      'the body is no text in UTF-8, and a command file holds text',
      {
        value: command.body,
        advice: 'Send it without --out',
      },
    );
  const written = {
    commandId,
    scope,
    type,
    actor,
    body,
    signature: writeSignature(signature),
    coSignature: writeSignature(coSignature),
  };
  return `${JSON.stringify(written, null, 2)}\n`;
}

/** Whether a file looks like one, rather than like a policy. */
export function isCommandText(text: string): boolean {
  return text.trimStart().startsWith('{') && /"commandId"\s*:/.test(text);
}

/** @param file names the text in messages @throws MillraceError INVALID_COMMAND naming the field that is wrong */
export function readCommandText(text: string, file: string): ControlCommand {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw notJson(
      'INVALID_COMMAND',
      { file, text, cause: error },
      {
        allowed: 'a file that --out of a millrace command wrote',
        advice: 'Name one, or write it with --out',
      },
    );
  }
  const parsed = v.safeParse(SCHEMA, content);
  if (parsed.success) {
    const { body, signature, coSignature, ...rest } = parsed.output;
    return makeControlCommand({
      ...rest,
      body: Buffer.from(body),
      signature: readSignature(signature),
      coSignature: readSignature(coSignature),
    });
  }
  throw new MillraceError('INVALID_COMMAND', `${file}: ${problemOf(parsed.issues[0])}`, {
    allowed: 'a file that --out of a millrace command wrote',
    advice: 'Write it again; a change by hand makes its signature void',
  });
}

function writeSignature(signature: Signature | null): v.InferOutput<typeof SIGNATURE> | null {
  if (signature === null) return null;
  const { keyId, version, notAfter, nonce, bytes } = signature;
  return {
    keyId,
    version,
    notAfter: new Date(notAfter).toISOString(),
    nonce,
    bytes: bytes.toString('base64'),
  };
}

function readSignature(signature: v.InferOutput<typeof SIGNATURE> | null): Signature | null {
  if (signature === null) return null;
  const { notAfter, bytes, ...rest } = signature;
  return { ...rest, notAfter: Date.parse(notAfter), bytes: Buffer.from(bytes, 'base64') };
}
