import type { IncomingHttpHeaders } from 'node:http';
import type { z } from 'zod';
import { Refusal } from '../lib/errors.ts';
import { orElse } from '../lib/or-else.ts';
import { parseStrictJson } from '../lib/strict-json.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Parameters are allowed, another type or a compressed body is not: Node passes over a coding of the transfer but chunked. */
export function isPlainJson(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  const transfer = headers['transfer-encoding']?.trim().toLowerCase() ?? 'chunked';
  return type === 'application/json' && encoding === 'identity' && transfer === 'chunked';
}

/** Content-Length is judged before a byte of the body is read. */
export function declaresTooMuch(contentLength: string | undefined, limit: number): boolean {
  return contentLength !== undefined && Number(contentLength) > limit;
}

/** Where it does not fit, never what was sent. */
function detailsOf(error: z.ZodError): string[] {
  return error.issues.slice(0, 10).map((issue) => {
    const path = issue.path.map(String).join('.');
    const keys = issue.code === 'unrecognized_keys' ? 'it has an unknown field' : issue.message;
    return path === '' ? keys : `${path}: ${keys}`;
  });
}

/** @throws {Refusal} `invalid-json`, or `invalid-request` with what to fix */
export function parseBody<Schema extends z.ZodType>(body: Uint8Array, schema: Schema): z.output<Schema> {
  const value = orElse(() => parseStrictJson(utf8.decode(body)), undefined);
  if (value === undefined) throw new Refusal('invalid-json');
  return parseShape(value, schema);
}

/** @throws {Refusal} `invalid-request` with what to fix */
export function parseShape<Schema extends z.ZodType>(value: unknown, schema: Schema): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Refusal('invalid-request', { details: detailsOf(parsed.error) });
  return parsed.data;
}
