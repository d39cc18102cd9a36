import type { SafeguardAct } from '../audit/untold-store.ts';
import type { Mail } from '../egress/smtp.ts';
import { languageOf, type PeopleLanguage } from '../lib/languages.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { hasMailText, mailText } from './mail-words-files.ts';
import { type MailPayload, OPEN_CONTEST_EVENTS } from './notify-service.ts';
import type { Due } from './outbox-store.ts';

/** Writes mails with numbers, due dates and links; never a text that a person wrote, never a person's id. */

/** The parts of a contest that a mail needs. */
export interface MailContest {
  readonly kind: 'contest' | 'complaint';
  readonly status: 'open' | 'resolved';
  readonly dueAt: number;
  readonly answer: string | null;
  readonly email: string | null;
  /** The person's, as their browser said when they filed it. */
  readonly language: string | null;
}

/** Sends mails, and has what they are made of. */
export interface Mailing {
  /** @throws {EgressRefused} with a reason that identifies nobody */
  readonly send: (mail: Mail) => Promise<void>;
  /** The public origin for links. */
  readonly origin: () => string;
  /** Null: gpd at the host of the origin. */
  readonly from: string | null;
  /** Null: it was erased. */
  readonly findContest: (kid: string, contestId: string) => Promise<MailContest | null>;
}

/** A row of the outbox with its payload. */
export type MailRow = Pick<Due, 'kid' | 'seq' | 'event' | 'created_at'> & MailPayload;

type Told = MailRow & { readonly contest: MailContest | null };

/** Null: erased, or no longer true. */
async function readNotice({ findContest }: Mailing, row: MailRow): Promise<Told | null> {
  const { kid, event, number } = row;
  if (number === null || !/^(?:contest|complaint)\./.test(event)) return { ...row, contest: null };
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
  'safeguard.weakened': '/console/audit',
};

function linkOf({ event, number }: Told): string {
  const page = PAGES[event] ?? '/console/contests/';
  return page.endsWith('/') ? `${page}${number ?? ''}` : page;
}

/** In UTC, because gpd does not know the reader's time zone. */
const timeText = (language: PeopleLanguage, at: number): string => {
  const locale = language === 'en' ? 'en-GB' : language;
  const format = new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
  return `${format.format(at)} UTC`;
};

type Settings = Tenant['settings'];

/** The host of the tenant's pages, which a person knows better than any other name of it. */
const siteOf = (kid: string, { origins: [first] }: Settings): string =>
  first === undefined ? kid : new URL(first).host;

/** Says what was done, by whom and when, and how to undo it; never who that is. */
function safeguardText(kid: string, { action, role, at, detail }: SafeguardAct): string {
  const name = action === 'tenant.set' ? String(detail['key']) : action;
  const texts = Object.entries(detail).map(([key, value]) => [key, String(value)] as const);
  const values = { ...Object.fromEntries(texts), kid };
  const ownUndo = `safeguard.undo.${name}`;
  const undo = mailText('en', hasMailText(ownUndo) ? ownUndo : `safeguard.undo.${action}`, values);
  return [
    mailText('en', `safeguard.${name}`, values),
    mailText('en', 'safeguard.by', { role: mailText('en', `role.${role}`), at: timeText('en', at) }),
    mailText('en', 'safeguard.undo', { undo }),
  ].join('\n');
}

const dueText = (language: PeopleLanguage, key: string, contest: MailContest | null): readonly string[] =>
  contest?.status === 'open' ? [mailText(language, key, { due: timeText(language, contest.dueAt) })] : [];

/** Events of both kinds have one name on the wire, and a sentence per kind in a mail. */
function wordsOf({ event, contest }: Told): string {
  if (contest?.kind !== 'complaint') return event;
  return event === 'contest.answered' ? 'complaint.replied' : event.replace('contest.', 'complaint.');
}

function staffText(origin: string, notice: Told): string {
  const { kid, number, act, contest } = notice;
  const title = mailText('en', wordsOf(notice));
  return [
    act === undefined ? `${title.charAt(0).toUpperCase()}${title.slice(1)}.` : safeguardText(kid, act),
    ...(number === null ? [] : [mailText('en', 'number', { number })]),
    ...dueText('en', 'due', contest),
    `${origin}${linkOf(notice)}`,
  ].join('\n');
}

type Letter = Pick<Mail, 'subject' | 'text'>;

/** One mail for all notices to an address of the tenant. */
function writeToStaff(origin: string, settings: Settings, notices: readonly [Told, ...Told[]]): Letter {
  const [first] = notices;
  const { kid } = first;
  const site = siteOf(kid, settings);
  const title =
    notices.length === 1 ? mailText('en', wordsOf(first)) : mailText('en', 'several', { n: notices.length });
  const contact = settings['notice.contact'] || mailText('en', 'unnamed');
  const foot = mailText('en', 'foot', { kid, site, contact });
  return {
    subject: mailText('en', 'subject', { site, title }),
    text: [...notices.map((one) => staffText(origin, one)), foot].join('\n\n'),
  };
}

function writeToPerson(origin: string, settings: Settings, notice: Told): Letter {
  const { kid, number, contest } = notice;
  const words = wordsOf(notice);
  const isComplaint = contest?.kind === 'complaint';
  const language = languageOf(contest?.language ?? null);
  const site = siteOf(kid, settings);
  const contact = settings['notice.contact'];
  const parts = [
    [
      mailText(language, `person.intro.${words}`),
      ...(number === null ? [] : [mailText(language, 'person.number', { number })]),
      ...(isComplaint ? [] : dueText(language, 'person.due', contest)),
    ],
    [mailText(language, 'person.read'), `${origin}/case`],
    [
      ...(contact === '' ? [] : [mailText(language, 'person.contact', { contact })]),
      mailText(language, isComplaint ? 'person.complaint.foot' : 'person.foot', { site }),
    ],
  ];
  return {
    subject: mailText(language, 'subject', { site, title: mailText(language, `person.${words}`) }),
    text: parts.map((lines) => lines.join('\n')).join('\n\n'),
  };
}

function composeMail(
  { from, origin }: Mailing,
  settings: Settings,
  notices: readonly [Told, ...Told[]],
  address: string,
): Mail {
  const [first] = notices;
  const last = notices.at(-1) ?? first;
  const { kid, to } = first;
  const host = new URL(origin()).hostname;
  const seqs = notices.length === 1 ? first.seq : `${first.seq}-${last.seq}`;
  const letter =
    to === null ? writeToPerson(origin(), settings, first) : writeToStaff(origin(), settings, notices);
  return {
    from: from ?? `gpd@${host}`,
    to: address,
    subject: letter.subject,
    text: `${letter.text}\n`,
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
  await mailing.send(composeMail(mailing, settings, [first, ...rest], address));
  return true;
}
