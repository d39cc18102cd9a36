import { readFileSync } from 'node:fs';
import { type Mail, type Relay, sendMail } from '../egress/smtp.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { type MailPayload, OPEN_CONTEST_EVENTS } from './notify-service.ts';
import type { Due } from './outbox-store.ts';

/** Writes mails with numbers, due dates and links; never a text that a person wrote, never a person's id. */

/** The parts of a contest that a mail needs. */
export interface MailContest {
  readonly status: 'open' | 'resolved';
  readonly dueAt: number;
  readonly answer: string | null;
  readonly email: string | null;
}

/** The relay that mails go to, and what they are made of. */
export interface Mailing {
  readonly relay: Relay;
  /** The public origin for links. */
  readonly origin: () => string;
  /** Null: gpd at the host of the origin. */
  readonly from: string | null;
  /** Null: it was erased. */
  readonly findContest: (kid: string, contestId: string) => Promise<MailContest | null>;
}

/** The words of mails, a line each: `contest.asked  A question waits …`. */
const LINES = readFileSync(new URL('../../views/mail.en.txt', import.meta.url), 'utf8').trim();

export const MAIL_WORDS: ReadonlyMap<string, string> = new Map(
  LINES.split('\n').map((line) => line.split('  ', 2) as [key: string, text: string]),
);

const wordsOf = (key: string, value: string | number = ''): string =>
  (MAIL_WORDS.get(key) ?? key).replace(/\{\w+\}/, String(value));

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

/** A row of the outbox with its payload. */
export type MailRow = Pick<Due, 'kid' | 'seq' | 'event' | 'created_at'> & MailPayload;

type Told = MailRow & { readonly contest: MailContest | null };

/** Null: erased, or no longer true. */
async function readNotice({ findContest }: Mailing, row: MailRow): Promise<Told | null> {
  const { kid, event, number } = row;
  if (number === null || !event.startsWith('contest.')) return { ...row, contest: null };
  const contest = await findContest(kid, number);
  if (!contest) return null;
  if (contest.status !== 'open' && OPEN_CONTEST_EVENTS.includes(event)) return null;
  return event === 'contest.asked' && contest.answer !== null ? null : { ...row, contest };
}

const PAGES: Readonly<Record<string, string>> = {
  'erasure.incomplete': '/console/receipts/',
  'export.ready': '/console/subjects',
  'log.fork': '/console/ledger',
  'backup.failed': '/console/overview',
};

function linkOf({ event, number, to }: Told): string {
  if (to === null) return '/case';
  const page = PAGES[event] ?? '/console/contests/';
  return page.endsWith('/') ? `${page}${number ?? ''}` : page;
}

const titleOf = ({ event, to }: Told): string => wordsOf(to === null ? `person.${event}` : event);

const textOf = (origin: string, notice: Told): string =>
  [
    titleOf(notice),
    ...(notice.number === null ? [] : [wordsOf('number', notice.number)]),
    ...(notice.contest?.status === 'open'
      ? [wordsOf('due', `${TIME.format(notice.contest.dueAt)} UTC`)]
      : []),
    `${origin}${linkOf(notice)}`,
  ].join('\n');

function composeMail({ from, origin }: Mailing, notices: readonly [Told, ...Told[]], address: string): Mail {
  const [first] = notices;
  const last = notices.at(-1) ?? first;
  const { kid, to } = first;
  const host = new URL(origin()).hostname;
  const foot = wordsOf(to === null ? 'person.foot' : 'foot', kid);
  const seqs = notices.length === 1 ? first.seq : `${first.seq}-${last.seq}`;
  return {
    from: from ?? `gpd@${host}`,
    to: address,
    subject: notices.length === 1 ? titleOf(first) : wordsOf('several', notices.length),
    text: `${[...notices.map((one) => textOf(origin(), one)), foot].join('\n\n')}\n`,
    messageId: `<evt_${seqs}.${last.created_at}.${kid}@${host}>`,
    date: new Date(Number(last.created_at)),
  };
}

/**
 * Sends these notices to their addressee as one mail.
 * @param rows of one lane, so all for one addressee
 * @returns false when the addressee is missing, or no notice applies any longer
 * @throws {EgressRefused} with a reason that identifies nobody
 */
export async function mailNotices(
  mailing: Mailing,
  { settings }: Tenant,
  rows: readonly MailRow[],
): Promise<boolean> {
  const notices: Told[] = [];
  // Reads one row after another: there may be hundreds, and visits need the connections.
  for (const row of rows) {
    const found = await readNotice(mailing, row);
    if (found) notices.push(found);
  }
  const [first, ...rest] = notices;
  if (!first || (first.to !== null && !settings['notify.email'].includes(first.to))) return false;
  const address = first.to ?? first.contest?.email ?? null;
  if (address === null) return false;
  await sendMail(mailing.relay, composeMail(mailing, [first, ...rest], address));
  return true;
}
