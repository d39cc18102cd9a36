import { readFileSync } from 'node:fs';
import { OF_OPEN } from '../consent/tell-service.ts';
import type { Mail } from '../egress/smtp.ts';
import type { MailItem, MailPayload } from '../webhooks/mail.ts';
import type { Due } from '../webhooks/store.ts';
import type { Contest } from './contests/contest.ts';
import type { ContestDeps } from './contests/service.ts';
import { findContest } from './contests/store.ts';

/** A mail contains the number, the due date and a link; never a text that a person wrote, never a person's id. */

export interface MailDeps extends Pick<ContestDeps, 'database' | 'contestTexts' | 'tenantOf'> {
  /** The public origin, which links are made from. */
  readonly origin: () => string;
  /** Null: gpd at the host of the origin. */
  readonly from: string | null;
  /** The sentences, by event. */
  readonly texts: ReadonlyMap<string, string>;
}

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });

interface Told extends MailItem {
  readonly contest: Contest | null;
}

/** Null: it was erased or is no longer so. */
async function look({ database, contestTexts }: MailDeps, kid: string, item: MailItem): Promise<Told | null> {
  const { event, number } = item;
  if (number === null || !event.startsWith('contest.')) return { ...item, contest: null };
  const contest = await findContest(database.read, contestTexts, { contestId: number });
  if (contest?.kid !== kid) return null;
  if (contest.status !== 'open' && OF_OPEN.includes(event)) return null;
  return event === 'contest.asked' && contest.answer !== null ? null : { ...item, contest };
}

const PAGES: Readonly<Record<string, string>> = {
  'erasure.incomplete': '/console/receipts/',
  'export.ready': '/console/subjects',
  'log.fork': '/console/ledger',
  'backup.failed': '/console/overview',
};

function linkOf({ event, number }: Told, isPerson: boolean): string {
  if (isPerson) return '/case';
  const page = PAGES[event] ?? '/console/contests/';
  return page.endsWith('/') ? `${page}${number ?? ''}` : page;
}

/** @returns null when no addressee is left, or the notice no longer applies */
export async function composeMail(
  deps: MailDeps,
  { kid, seq, created_at: at }: Due,
  { to, items }: MailPayload,
): Promise<Mail | null> {
  const say = (key: string, value: string | number = ''): string =>
    (deps.texts.get(key) ?? key).replace(/\{\w+\}/, String(value));
  const settings = deps.tenantOf(kid)?.settings;
  if (!settings || (to !== null && !settings['notify.email'].includes(to))) return null;
  const told: Told[] = [];
  // One after another: a digest may have thousands, and visits need the connections.
  for (const item of items) {
    const found = await look(deps, kid, item);
    if (found) told.push(found);
  }
  const [first] = told;
  const address = to ?? first?.contest?.email ?? null;
  if (!first || address === null) return null;
  const isPerson = to === null;
  const origin = deps.origin();
  const title = ({ event }: Told): string => say(isPerson ? `person.${event}` : event);
  const blocks = told.map((one) =>
    [
      title(one),
      ...(one.number === null ? [] : [say('number', one.number)]),
      ...(one.contest?.status === 'open' ? [say('due', `${TIME.format(one.contest.dueAt)} UTC`)] : []),
      `${origin}${linkOf(one, isPerson)}`,
    ].join('\n'),
  );
  const host = new URL(origin).hostname;
  return {
    from: deps.from ?? `gpd@${host}`,
    to: address,
    subject: items.length > 1 ? say('digest', told.length) : title(first),
    text: `${[...blocks, say(isPerson ? 'person.foot' : 'foot', kid)].join('\n\n')}\n`,
    messageId: `<evt_${seq}.${at}.${kid}@${host}>`,
    date: new Date(Number(at)),
  };
}

/** The words of mails, a line each: `contest.asked  A question waits …`. */
const LINES = readFileSync(new URL('../../views/mail.en.txt', import.meta.url), 'utf8').trim();

export const MAIL_WORDS: ReadonlyMap<string, string> = new Map(
  LINES.split('\n').map((line) => line.split('  ', 2) as [key: string, text: string]),
);
