import { leafHash } from '../ledger/merkle.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { equalBytes } from '../lib/hash.ts';
import { parseStored } from './fold.ts';

/** Entries that say something about the log itself, or excuse missing rows: they have to come from gpd, and to make sense. */

export type EntryCode =
  | 'entry-unauthenticated'
  | 'hour-repeated'
  | 'time-out-of-order'
  | 'retention-implausible';

/** Under a key of the tenant. */
export interface EntryMacs {
  /** @param hash of the entry as a leaf, in hex */
  readonly ofEntry: (seq: number, hash: string) => string;
}

export interface MacedEntry {
  readonly seq: number;
  readonly entry: string;
  readonly mac: string | null;
}

/** Whose entries commit to a person: nobody can open what was forged. */
const ABOUT_PEOPLE = /^consent\./;
/** Clocks of several nodes differ, and a clock is set back; a forged time is off by as much as retention lasts. */
const TOLERANCE_MS = DAY;
/** `retention.days` of a tenant is at least one day. */
const MIN_RETENTION_MS = DAY;

interface CheckOptions {
  /** Undefined: MACs are not compared. */
  readonly macs?: EntryMacs | undefined;
  /** Undefined: nothing is compared with the present. */
  readonly now?: number | undefined;
  readonly add: (code: EntryCode, what: string, seq: number) => void;
}

/** @returns what is called with each entry of a log, in order */
export function makeEntryCheck({ macs, now = Number.POSITIVE_INFINITY, add }: CheckOptions) {
  const hours = new Set<string>();
  let newest = Number.NEGATIVE_INFINITY;
  return ({ seq, entry, mac }: MacedEntry): void => {
    const { type, time, body } = parseStored(entry);
    const at = Date.parse(String(time));
    if (at < newest - TOLERANCE_MS)
      add('time-out-of-order', `the time of entry ${seq} is before that of an earlier entry`, seq);
    if (at > now + TOLERANCE_MS)
      add('time-out-of-order', `the time of entry ${seq}, ${isoTime(at)}, has not come yet`, seq);
    newest = Math.max(newest, at || newest);
    if (ABOUT_PEOPLE.test(String(type))) return;
    if (macs && !isFrom(macs, { seq, entry, mac }))
      add('entry-unauthenticated', `entry ${seq} (${String(type)}) was not written by gpd`, seq);
    const said = (body ?? {}) as Readonly<Record<string, unknown>>;
    if (type === 'verdicts.sealed' || type === 'audit.sealed') {
      const hour = `${type} ${Date.parse(String(said['from']))}`;
      if (hours.has(hour)) add('hour-repeated', `entry ${seq} anchors an hour a second time`, seq);
      hours.add(hour);
    }
    if (type === 'retention.applied' && !(Date.parse(String(said['before'])) <= at - MIN_RETENTION_MS))
      add('retention-implausible', `entry ${seq} says that retention deleted rows of less than a day`, seq);
  };
}

/** Constant-time: a writer of the database may time its guesses. */
function isFrom(macs: EntryMacs, { seq, entry, mac }: MacedEntry): boolean {
  if (mac === null) return false;
  const hash = leafHash(Buffer.from(entry)).toString('hex');
  return equalBytes(Buffer.from(mac, 'latin1'), Buffer.from(macs.ofEntry(seq, hash), 'latin1'));
}
