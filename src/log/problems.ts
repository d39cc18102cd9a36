import { leafHash } from '../ledger/merkle.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { equalBytes } from '../lib/crypto.ts';
import { parseStored } from './fold.ts';

/** Problems of a log: their codes, their list, and what an entry is checked for. */

/** Codes of the problems that `gpd consent verify` finds (contract, section 14). */
export type ProblemCode =
  | 'checkpoint-missing'
  | 'checkpoint-not-extended'
  | 'vkey-changed'
  | 'entry-changed'
  | 'opening-changed'
  | 'state-changed'
  | 'policy-changed'
  | 'purpose-changed'
  | 'seal-missing'
  | 'seal-changed'
  | 'rows-missing'
  | 'rows-added'
  | EntryCode;

export interface LogProblem {
  readonly code: ProblemCode;
  /** The number of the entry with the problem. */
  readonly seq?: number;
  readonly what: string;
}

/** Problems listed per code; a rewritten log has a million. */
const MAX_LISTED = 20;

export type Problems = ReturnType<typeof collectProblems>;

export function collectProblems() {
  const found: LogProblem[] = [];
  const counts = new Map<ProblemCode, number>();
  return {
    /** May be read while problems are still collected. */
    found: found as readonly LogProblem[],
    add(code: ProblemCode, problem: string, seq?: number): void {
      const count = (counts.get(code) ?? 0) + 1;
      counts.set(code, count);
      if (count <= MAX_LISTED) found.push({ code, ...(seq === undefined ? {} : { seq }), what: problem });
    },
  };
}

export type EntryCode =
  | 'entry-unauthenticated'
  | 'hour-repeated'
  | 'time-out-of-order'
  | 'retention-implausible';

/** MACs under a key of the tenant. */
export interface EntryMacs {
  /** @param hash of the entry as a leaf, in hex */
  readonly ofEntry: (seq: number, hash: string) => string;
}

export interface MacedEntry {
  readonly seq: number;
  readonly entry: string;
  readonly mac: string | null;
}

/** These entries commit to a person: nobody could open a forged commitment. */
const ABOUT_PEOPLE = /^consent\./;
/**
 * Clocks of several nodes differ, and a clock may be set back; a forged time would be off by the length of a
 * retention.
 */
const TOLERANCE_MS = DAY;
/** The setting `retention.days` is at least one day. */
const MIN_RETENTION_MS = DAY;

interface CheckOptions {
  /** Undefined: MACs are not compared. */
  readonly macs?: EntryMacs | undefined;
  /** Undefined: times are not compared with the present. */
  readonly now?: number | undefined;
  readonly add: (code: EntryCode, what: string, seq: number) => void;
}

/**
 * Checks entries about the log itself, and those that excuse missing rows: gpd must have written them, and
 * they must make sense. @returns a function to call with each entry of a log, in order;
 * a caller that has parsed the entry hands it over
 */
export function createEntryCheck({ macs, now = Number.POSITIVE_INFINITY, add }: CheckOptions) {
  const hours = new Set<string>();
  let newest = Number.NEGATIVE_INFINITY;
  return ({ seq, entry, mac }: MacedEntry, { type, time, body } = parseStored(entry)): void => {
    const at = Date.parse(String(time));
    if (at < newest - TOLERANCE_MS)
      add('time-out-of-order', `the time of entry ${seq} is before that of an earlier entry`, seq);
    if (at > now + TOLERANCE_MS)
      add('time-out-of-order', `the time of entry ${seq}, ${isoTime(at)}, has not come yet`, seq);
    newest = Math.max(newest, at || newest);
    if (ABOUT_PEOPLE.test(String(type))) return;
    if (macs && !isAuthentic(macs, { seq, entry, mac }))
      add('entry-unauthenticated', `entry ${seq} (${String(type)}) was not written by gpd`, seq);
    const fields = (body ?? {}) as Readonly<Record<string, unknown>>;
    if (type === 'verdicts.sealed' || type === 'audit.sealed') {
      const hour = `${type} ${Date.parse(String(fields['from']))}`;
      if (hours.has(hour)) add('hour-repeated', `entry ${seq} anchors an hour a second time`, seq);
      hours.add(hour);
    }
    if (type === 'retention.applied' && !(Date.parse(String(fields['before'])) <= at - MIN_RETENTION_MS))
      add('retention-implausible', `entry ${seq} says that retention deleted rows of less than a day`, seq);
  };
}

/** Compares in constant time: a writer of the database may time its guesses. */
function isAuthentic(macs: EntryMacs, { seq, entry, mac }: MacedEntry): boolean {
  if (mac === null) return false;
  const hash = leafHash(Buffer.from(entry)).toString('hex');
  return equalBytes(Buffer.from(mac, 'latin1'), Buffer.from(macs.ofEntry(seq, hash), 'latin1'));
}
