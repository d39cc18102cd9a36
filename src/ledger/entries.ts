import { canonicalJson, type Json } from '../lib/canonical-json.ts';
import { isoTime } from '../lib/clock.ts';
import { type CommitmentOpening, commitBody, commitSubject } from './commitment.ts';
import { MAX_ENTRY_BYTES } from './tile-bytes.ts';
import { parseVkey } from './vkey.ts';

/** Contract section 7: what a log holds. An entry is the RFC 8785 bytes of one JSON object. */

export const PERSONAL_TYPES = [
  'consent.granted',
  'consent.denied',
  'consent.withdrawn',
  'consent.gpc-opt-out',
  'consent.doubted',
  'subject.erased',
] as const;

export const IMPERSONAL_TYPES = [
  'ledger.genesis',
  'purpose.defined',
  'policy.published',
  'key.rotated',
  'banner.published',
  'verdicts.sealed',
  'audit.sealed',
  'retention.applied',
] as const;

export type PersonalType = (typeof PERSONAL_TYPES)[number];
export type ImpersonalType = (typeof IMPERSONAL_TYPES)[number];

export interface EntryHead<Type> {
  readonly type: Type;
  /** Epoch milliseconds; the entry keeps the second. */
  readonly at: number;
  readonly purpose: string | null;
}

/** `YYYY-MM-DDTHH:MM:SSZ`: milliseconds would help to link an entry with an access log. */
export function entryTime(epochMs: number): string {
  return `${isoTime(epochMs).slice(0, -'.000Z'.length)}Z`;
}

/** @throws {RangeError} when it would not fit into an entry bundle, so could never be published */
function encodeEntry({ type, at, purpose }: EntryHead<string>, told: Readonly<Record<string, Json>>): Buffer {
  const bytes = Buffer.from(canonicalJson({ v: 1, type, time: entryTime(at), purpose, ...told }));
  if (bytes.length > MAX_ENTRY_BYTES) throw new RangeError('an entry has at most 65,535 bytes');
  return bytes;
}

export function personalEntry(head: EntryHead<PersonalType>, opening: CommitmentOpening): Buffer {
  return encodeEntry(head, { subject: commitSubject(opening), body: commitBody(opening) });
}

export function impersonalEntry(
  head: EntryHead<ImpersonalType>,
  body: Readonly<Record<string, Json>>,
): Buffer {
  return encodeEntry(head, { body });
}

/** Seq 0 of every log: its name and the key that it begins with. */
export function genesisEntry(at: number, vkey: string): Buffer {
  const key = parseVkey(vkey);
  if (key === null) throw new TypeError('not a verifier key');
  return impersonalEntry({ type: 'ledger.genesis', at, purpose: null }, { key: vkey, origin: key.name });
}
