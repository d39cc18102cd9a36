import type { StaffRole } from '../auth/credentials.ts';
import { DAY } from '../lib/clock.ts';
import { say } from './words.ts';

/** Chooses what the overview says needs attention, the most urgent first, each with the next act. */

export interface AttentionFacts {
  readonly kid: string;
  readonly now: number;
  readonly failedEvents: number;
  readonly erasures: { readonly held: number; readonly unfinished: number };
  /** Null: gpd never made one. */
  readonly lastBackupAt: number | null;
  /** False on PostgreSQL, which has its own backups that gpd does not see. */
  readonly needsBackup: boolean;
  readonly weakeningActs: number;
  /** Titles of purposes that some people read in another language. */
  readonly untranslated: readonly string[];
  readonly hasNotice: boolean;
  readonly publishedKeyAt: number | null;
}

export interface Attention {
  readonly text: string;
  /** An act on a page of the console, or a command for the operator. */
  readonly act: { readonly href: string; readonly text: string } | { readonly command: string };
}

/** The age at which `gpd doctor` warns of a backup and of a key. */
const OLD_BACKUP = 7 * DAY;
const OLD_KEY = 365 * DAY;
export const WEAKENED_DAYS = 7;

function backupAttention({ lastBackupAt, needsBackup, now }: AttentionFacts): Attention | null {
  const act = { command: 'gpd backup DIRECTORY' };
  if (lastBackupAt === null) return needsBackup ? { text: 'No backup was ever made', act } : null;
  if (now - lastBackupAt <= OLD_BACKUP) return null;
  return { text: say('The last backup is {n} days old', { n: Math.floor((now - lastBackupAt) / DAY) }), act };
}

function erasureAttention({ erasures: { held: waiting, unfinished } }: AttentionFacts, isDpo: boolean) {
  const act = isDpo
    ? { href: '/console/receipts', text: 'Open' }
    : { command: 'Tell your data-protection officer' };
  return [
    unfinished > 0 && {
      text: say('{n} erasures are not finished', { n: unfinished }, '1 erasure is not finished'),
      act,
    },
    waiting > 0 && {
      text: say('{n} erasures wait for a legal hold', { n: waiting }, '1 erasure waits for a legal hold'),
      act,
    },
  ];
}

export function listAttention(facts: AttentionFacts, role: StaffRole): readonly Attention[] {
  const { kid, failedEvents, weakeningActs, untranslated, hasNotice, publishedKeyAt, now } = facts;
  const isDpo = role === 'dpo';
  const words = { n: weakeningActs, days: WEAKENED_DAYS };
  const found = [
    failedEvents > 0 && {
      text: say('{n} events were not delivered', { n: failedEvents }, '1 event was not delivered'),
      act: { command: `gpd webhooks list ${kid}` },
    },
    ...erasureAttention(facts, isDpo),
    backupAttention(facts),
    weakeningActs > 0 && {
      text: say(
        '{n} acts of the last {days} days weakened a safeguard or gave access',
        words,
        '1 act of the last {days} days weakened a safeguard or gave access',
      ),
      act: isDpo ? { href: '/console/audit', text: 'Look at it' } : { command: `gpd audit ${kid}` },
    },
    !hasNotice && {
      text: 'People are not told who is responsible, or how to reach them',
      act: { command: `gpd tenants set ${kid} notice.contact=ADDRESS` },
    },
    untranslated.length > 0 && {
      text: say('People read {list} in another language', { list: untranslated.join(', ') }),
      act: { href: '/console/terms', text: 'Open' },
    },
    publishedKeyAt !== null &&
      now - publishedKeyAt > OLD_KEY && {
        text: 'The seal key is older than a year',
        act: { href: '/console/keys', text: 'Open' },
      },
  ];
  return found.filter((one): one is Attention => one !== false && one !== null);
}
