import { z } from 'zod';
import { decodeBase64Url } from '../lib/base64.ts';
import { canonicalJson, type Json } from '../lib/canonical-json.ts';
import { IMPERSONAL_TYPES, type LedgerEntry, PERSONAL_TYPES } from './entries.ts';
import { HASH_BYTES } from './merkle.ts';
import { commitBody, commitSubject, type Opening } from './personal-commitment.ts';

const common = {
  v: z.literal(1),
  time: z.iso.datetime({ precision: 0 }),
  purpose: z.string().nullable(),
};

const commitment = z.string().refine((text) => decodeBase64Url(text)?.length === HASH_BYTES);

const entrySchema = z.union([
  z.strictObject({ ...common, type: z.enum(PERSONAL_TYPES), subject: commitment, body: commitment }),
  z.strictObject({
    ...common,
    type: z.enum(IMPERSONAL_TYPES),
    body: z.record(z.string(), z.json()),
  }),
]);

/** Null unless the bytes are an entry, in the one form that RFC 8785 gives it: what parses is what was hashed. */
export function parseEntry(bytes: Uint8Array): LedgerEntry | null {
  try {
    const value = JSON.parse(Buffer.from(bytes).toString()) as Json;
    if (!Buffer.from(canonicalJson(value)).equals(bytes)) return null;
    return entrySchema.safeParse(value).data ?? null;
  } catch {
    return null;
  }
}

/** True when this key, salt, principal and detail are the ones that the entry was made of. */
export function openPersonalEntry(bytes: Uint8Array, opening: Opening): boolean {
  const entry = parseEntry(bytes);
  if (entry === null || !('subject' in entry)) return false;
  return entry.subject === commitSubject(opening) && entry.body === commitBody(opening);
}
