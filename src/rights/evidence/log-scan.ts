import { isoTime } from '../../lib/clock.ts';
import type { Json } from '../../lib/json.ts';
import { parseStored } from '../../log/fold.ts';
import type { Period } from './period.ts';

/** One walk through the log finds the entries of a period, and the definitions that were in force. */

/** Canonical JSON puts the time and the type last, so that most entries need no parser. */
const TAIL = /"time":"([^"]+)","type":"([^"]+)","v":1\}$/;

const DEFINITIONS = new Set(['ledger.genesis', 'purpose.defined', 'policy.published', 'banner.published']);

export interface LoggedDefinition {
  readonly seq: number;
  readonly hash: string;
  readonly type: string;
  readonly at: number;
  readonly body: { readonly [name: string]: Json };
}

export interface LogScan {
  /** The first and the last entry of the period; without any, `last` is -1. */
  first: number;
  last: number;
  readonly definitions: LoggedDefinition[];
}

export interface ScannedEntry {
  readonly seq: number;
  readonly hash: string;
  readonly entry: string;
}

export const typeOf = (entry: string): string => TAIL.exec(entry)?.[2] ?? String(parseStored(entry).type);

export function createScan({ from, to }: Period) {
  const scan: LogScan = { first: 0, last: -1, definitions: [] };
  return {
    scan,
    add({ seq, hash, entry }: ScannedEntry): void {
      const [, time = '', type = ''] = TAIL.exec(entry) ?? [];
      const at = Date.parse(time);
      if (at >= from && at < to) {
        if (scan.last === -1) scan.first = seq;
        scan.last = seq;
      }
      if (!DEFINITIONS.has(type) || at >= to) return;
      const body = (parseStored(entry).body ?? {}) as LoggedDefinition['body'];
      scan.definitions.push({ seq, hash, type, at, body });
    },
  };
}

/** A definition with the time in which it was in force. */
export interface InForce extends LoggedDefinition {
  readonly from: string;
  /** The time of the next one; null: it is in force at the end of the period. */
  readonly until: string | null;
}

/** The field of a definition, as a text. */
export function textIn(body: LoggedDefinition['body'], name: string): string {
  const value = body[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** A later definition with the same key replaces this one: a purpose by its id, others by their type. */
const keyOf = ({ type, body }: LoggedDefinition): string =>
  type === 'purpose.defined' ? `${type} ${textIn(body, 'id')}` : type;

/**
 * Each definition with the time in which it was in force. A choice may name an old purpose or policy, so that
 * only banners that were replaced before `from` are left out.
 */
export function definitionsInForce(all: readonly LoggedDefinition[], from: number): readonly InForce[] {
  return all.flatMap((one, i) => {
    const next = all.slice(i + 1).find((later) => keyOf(later) === keyOf(one));
    const isOver = one.type === 'banner.published' && next !== undefined && next.at < from;
    return isOver ? [] : [{ ...one, from: isoTime(one.at), until: next ? isoTime(next.at) : null }];
  });
}

/** A sentence for a person who reads the entries. @param titles of the purposes, by id */
export function wordsFor(entry: string, titles: ReadonlyMap<string, string>): string {
  const { type, purpose, body } = parseStored(entry);
  const title = titles.get(String(purpose)) ?? String(purpose);
  const fields = (body ?? {}) as { readonly [name: string]: unknown };
  const words: Readonly<Record<string, string>> = {
    'consent.granted': `A person agreed to “${title}”.`,
    'consent.denied': `A person refused “${title}”.`,
    'consent.withdrawn': `A person withdrew their consent to “${title}”.`,
    'consent.gpc-opt-out': `Global Privacy Control opted a person out of “${title}”.`,
    'consent.doubted': `A consent to “${title}” was marked: a program may have given it, or a review cleared it.`,
    'subject.linked': 'A browser was joined with an account.',
    'subject.erased': 'The record of a person was erased. Their earlier entries can no longer be opened.',
    'ledger.genesis': 'The log began, under this key.',
    'purpose.defined': `The site ${fields['removed'] === true ? 'removed' : 'defined'} the purpose “${title}”.`,
    'policy.published': `The site published version ${String(fields['version'])} of its policy.`,
    'key.rotated': 'A key was replaced.',
    'banner.published': 'The banner with these texts was shown from here on.',
    'verdicts.sealed': `One hash stands for ${String(fields['count'])} decisions of an hour.`,
    'audit.sealed': `One hash stands for ${String(fields['count'])} rows of the audit log of an hour.`,
    'retention.applied': 'Rows that had reached their age were deleted.',
  };
  return words[String(type)] ?? String(type);
}
