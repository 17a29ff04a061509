import { z } from 'zod';
import {
  COMMAND_TYPES,
  type ControlCommand,
  makeControlCommand,
  type Signature,
} from '../contracts/records.ts';
import { MillraceError } from '../core/errors.ts';
import { notJson } from './not-json.ts';

/**
 * A command as a file, from who signs it to who co-signs or sends it: JSON, so that the second person reads what the signature is for. The body
 * is the exact text that was signed.
 */
const SIGNATURE = z.strictObject({
  keyId: z.string(),
  version: z.int(),
  notAfter: z.iso.datetime({ offset: true }),
  nonce: z.string(),
  bytes: z.base64(),
});
const SCHEMA = z.strictObject({
  commandId: z.string().min(1),
  scope: z.string().min(1),
  type: z.enum(COMMAND_TYPES),
  actor: z.string(),
  body: z.string(),
  signature: SIGNATURE.nullable(),
  coSignature: SIGNATURE.nullable(),
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
  const parsed = SCHEMA.safeParse(content);
  if (parsed.success) {
    const { body, signature, coSignature, ...rest } = parsed.data;
    return makeControlCommand({
      ...rest,
      body: Buffer.from(body),
      signature: readSignature(signature),
      coSignature: readSignature(coSignature),
    });
  }
  const [issue] = parsed.error.issues;
  const path = (issue?.path ?? []).map(String).join('.');
  throw new MillraceError(
    'INVALID_COMMAND',
    `${file}: ${path === '' ? '' : `${path}: `}${issue?.message ?? 'it is no command'}`,
    {
      allowed: 'a file that --out of a millrace command wrote',
      advice: 'Write it again; a change by hand makes its signature void',
    },
  );
}

function writeSignature(signature: Signature | null): z.infer<typeof SIGNATURE> | null {
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

function readSignature(signature: z.infer<typeof SIGNATURE> | null): Signature | null {
  if (signature === null) return null;
  const { notAfter, bytes, ...rest } = signature;
  return { ...rest, notAfter: Date.parse(notAfter), bytes: Buffer.from(bytes, 'base64') };
}
