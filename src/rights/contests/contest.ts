import { isReconciled } from '../../ingest/decisions-service.ts';
import { contestContext } from '../../keys/master-key.ts';
import { DAY, HOUR } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import type { ContestOutcome, Extension, Ruling } from '../../schema/rights.ts';
import type { RightsProfile } from '../../tenants/settings.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { quotedClass } from '../dsar/dsar.ts';

/** In the order in which a row holds them. */
const ORDER = [
  'statement',
  /** What the reviewer asked the subject. */
  'question',
  'reason',
  'proposedReason',
  /** What the person replied to the question. */
  'answer',
  /** Where the person may be written to. */
  'email',
  /** Keyed hash of the case key; null: filed with an account. Encrypted too, so that no hash of another case opens this one. */
  'caseHash',
  /** Questions answered before the last one was asked. */
  'earlier',
  /** Why an answer takes longer. */
  'extensionReason',
] as const;

/** What the person and the reviewers wrote, encrypted under the tenant's own key and bound to its contest. */
export type Texts = Readonly<Record<Exclude<(typeof ORDER)[number], 'earlier'>, string | null>> & {
  readonly earlier: readonly { readonly question: string; readonly answer: string }[];
};

const NOTHING = Object.fromEntries(ORDER.map((name) => [name, null])) as Record<keyof Texts, null>;
export const NO_TEXTS: Texts = { ...NOTHING, earlier: [] };

export type ContestTexts = ReturnType<typeof contestTextsOf>;

/** Under the key that also wraps the keys of principals and the messages that wait. */
export function contestTextsOf(tenantOf: (kid: string) => Pick<Tenant, 'wrapper'> | undefined) {
  return {
    /** Null when nobody wrote anything. @throws for a tenant whose key is not known: nothing is written in the clear */
    encrypt(kid: string, contestId: string, texts: Texts): string | null {
      if (ORDER.every((name) => name === 'earlier' || texts[name] === null)) return null;
      const tenant = tenantOf(kid);
      if (!tenant) throw new Error('a contest of no tenant');
      const text = JSON.stringify(ORDER.map((name) => texts[name]));
      return tenant.wrapper.wrap(Buffer.from(text), contestContext(kid, contestId));
    },
    /** None for a tenant whose key is not known. @throws {WrongMasterKey} when it was encrypted with another key */
    decrypt(kid: string, contestId: string, ciphertext: string): Texts {
      const tenant = tenantOf(kid);
      if (!tenant) return NO_TEXTS;
      const text = tenant.wrapper.unwrap(ciphertext, contestContext(kid, contestId)).toString();
      const stored = JSON.parse(text) as unknown[];
      return Object.fromEntries(ORDER.map((name, i) => [name, stored[i]])) as Texts;
    },
  };
}

/**
 * Contest of an automated decision (GDPR article 22(3), contract 6.2 and 6.3):
 *   filed → open ⇄ claimed → resolved (upheld | overturned)
 * Every change is a function from a record to the next; the store writes it only while the version is the one read.
 */

export type ResolverRole = 'reviewer' | 'dpo' | 'operator';

export interface Claim {
  /** Keyed reference of the holder. */
  readonly by: string;
  /** How the holder is called in the console. */
  readonly label: string;
  readonly until: number;
}

export interface Proposal {
  readonly outcome: ContestOutcome;
  readonly reason: string;
  readonly by: string;
  /** How they are called in the console; null: not by the console. */
  readonly label: string | null;
  readonly at: number;
}

export interface Contest extends Omit<Texts, 'proposedReason'> {
  readonly kid: string;
  readonly contestId: string;
  readonly requestId: string;
  readonly durable: string | null;
  /** Keyed reference of the person who filed it. */
  readonly filedBy: string;
  readonly filedAt: number;
  /** The date that counts, with the extension. */
  readonly dueAt: number;
  /** The date before the extension; null: not extended. */
  readonly extendedFrom: number | null;
  /** Which notice of the due date was sent: 0 none, 1 that it is soon, 2 that it has passed. */
  readonly dueNotice: number;
  readonly status: 'open' | 'resolved';
  /** Counts changes. */
  readonly version: number;
  /** The class that is contested. */
  readonly class: string;
  readonly outcome: ContestOutcome | null;
  readonly resolvedAt: number | null;
  readonly resolvedBy: { readonly role: ResolverRole; readonly ref: string } | null;
  /** How they are called in the console; null: not by the console. */
  readonly resolvedLabel: string | null;
  readonly claim: Claim | null;
  /** `review.fourEyes`: what one reviewer found and another has to confirm; it is kept with the ruling of the other. */
  readonly proposal: Proposal | null;
  readonly askedAt: number | null;
  readonly answeredAt: number | null;
  /** The network it was filed from, hashed under a key of that day; null: not counted, or no longer. */
  readonly caseNetwork: string | null;
}

/** When, and under which law. */
export interface At {
  readonly now: number;
  readonly profile: RightsProfile;
}

/** A claim that is not renewed frees the case for others. */
const CLAIM_MS = HOUR;

type Filed = Pick<Contest, 'kid' | 'contestId' | 'requestId' | 'durable' | 'class' | 'filedBy' | 'statement'>;
/** Of a contest without an account. */
export type CaseParts = Partial<Pick<Contest, 'email' | 'caseHash' | 'caseNetwork'>>;

const { proposedReason: _, ...NOTHING_SAID } = NO_TEXTS;

export function fileContest(
  filing: Filed & CaseParts,
  now: number,
  profile: RightsProfile = 'gdpr',
): Contest {
  return {
    ...NOTHING_SAID,
    caseNetwork: null,
    ...filing,
    filedAt: now,
    dueAt: PERIODS[profile].dueAt(now),
    extendedFrom: null,
    dueNotice: 0,
    status: 'open',
    version: 1,
    outcome: null,
    resolvedAt: null,
    resolvedBy: null,
    resolvedLabel: null,
    claim: null,
    proposal: null,
    askedAt: null,
    answeredAt: null,
  };
}

/** The claim that still holds. */
export function activeClaim(contest: Contest, now: number): Claim | null {
  return contest.claim !== null && contest.claim.until > now ? contest.claim : null;
}

function changed(contest: Contest, change: Partial<Contest>): Contest {
  return { ...contest, ...change, version: contest.version + 1 };
}

/** Of an open case that nobody else holds. */
function refuseHeld(contest: Contest, by: string, now: number): void {
  if (contest.status === 'resolved') throw new Refusal('already-resolved');
  const claim = activeClaim(contest, now);
  if (claim !== null && claim.by !== by) throw new Refusal('claimed-by-another');
}

function refuseSelf(contest: Contest, by: string): void {
  if (contest.filedBy === by) throw new Refusal('self-review-denied');
}

/** Only of somebody else's open case that nobody else holds. */
function refuseUnfree(contest: Contest, by: string, now: number): void {
  refuseSelf(contest, by);
  refuseHeld(contest, by, now);
}

/** Takes the case for an hour, or renews it. @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another` */
export function claimContest(contest: Contest, holder: Omit<Claim, 'until'>, now: number): Contest {
  refuseUnfree(contest, holder.by, now);
  return changed(contest, { claim: { ...holder, until: now + CLAIM_MS } });
}

/** Gives the case back; only its holder can. @throws {Refusal} */
export function releaseContest(contest: Contest, by: string, now: number): Contest {
  refuseHeld(contest, by, now);
  return contest.claim === null ? contest : changed(contest, { claim: null });
}

/** Asks the subject for more; the due date stays. @throws {Refusal} */
export function askSubject(contest: Contest, by: string, question: string, now: number): Contest {
  refuseUnfree(contest, by, now);
  const { question: asked, answer, earlier } = contest;
  const before = asked !== null && answer !== null ? [...earlier, { question: asked, answer }] : earlier;
  return changed(contest, { question, askedAt: now, answer: null, answeredAt: null, earlier: before });
}

/**
 * More time, once, before the date has passed: by then the person has to be told (GDPR article 12(3)).
 * @throws {Refusal}
 */
export function extendContest(contest: Contest, by: string, extension: Extension, context: At): Contest {
  const { days, reason } = extension;
  const { now, profile } = context;
  refuseUnfree(contest, by, now);
  const { extendDays } = PERIODS[profile];
  const { dueAt, extendedFrom } = contest;
  const changedSince = (what: string) => new Refusal('stale-version', { details: [what] });
  if (extendedFrom !== null) throw changedSince('the due date was extended before, and may be extended once');
  if (dueAt < now) throw changedSince('the due date has passed');
  if (days > extendDays)
    throw new Refusal('invalid-request', {
      details: [`rights.profile ${profile} allows ${extendDays} days`],
    });
  const until = dueAt + days * DAY;
  return changed(contest, { extendedFrom: dueAt, dueAt: until, extensionReason: reason, dueNotice: 0 });
}

/** The person answers the question, once. @throws {Refusal} `case-closed` */
export function answerQuestion(contest: Contest, answer: string, now: number): Contest {
  const waits = contest.status === 'open' && contest.question !== null && contest.answer === null;
  if (!waits) throw new Refusal('case-closed');
  return changed(contest, { answer, answeredAt: now });
}

/** A ruling with whose it is. */
export interface Resolution extends Omit<Ruling, 'contestId'> {
  readonly role: ResolverRole;
  /** Keyed reference of the resolver. */
  readonly by: string;
  /** How they are called in the console. */
  readonly label?: string | null;
  readonly fourEyes: boolean;
}

/**
 * The same outcome again changes nothing. With four eyes the first ruling is a proposal, and another person's equal
 * ruling resolves; a different one takes its place.
 * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`, `stale-version`
 */
export function resolveContest(contest: Contest, ruling: Resolution, now: number): Contest {
  const { outcome, reason, role, by, label = null, version } = ruling;
  refuseSelf(contest, by);
  if (contest.status === 'resolved' && contest.outcome === outcome) return contest;
  refuseHeld(contest, by, now);
  if (version !== null && version !== contest.version) throw new Refusal('stale-version');
  const { proposal } = contest;
  if (ruling.fourEyes && (proposal?.outcome !== outcome || proposal.by === by)) {
    const same = proposal?.outcome === outcome && proposal.by === by && proposal.reason === reason;
    if (same) return contest;
    return changed(contest, { proposal: { outcome, reason, by, label, at: now }, claim: null });
  }
  return changed(contest, {
    status: 'resolved',
    outcome,
    reason,
    resolvedAt: now,
    resolvedBy: { role, ref: by },
    resolvedLabel: label,
    claim: null,
    caseNetwork: null,
    // One's own is what became the ruling; a colleague's reason is not lost.
    proposal: proposal?.by === by ? null : proposal,
  });
}

/**
 * One calendar month on, in UTC: the same day and time of the next month, or its last day (Regulation 1182/71, article
 * 3(2)(c); GDPR article 12(3)).
 * @param at epoch milliseconds
 */
function oneMonthAfter(at: number): number {
  const from = new Date(at);
  const year = from.getUTCFullYear();
  const month = from.getUTCMonth() + 1;
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const time = at - Date.UTC(year, from.getUTCMonth(), from.getUTCDate());
  return Date.UTC(year, month, Math.min(from.getUTCDate(), lastDay)) + time;
}

const afterDays = (days: number) => (at: number) => at + days * DAY;

/** By how many days an answer may be extended, once; 0: not at all. `dueAt` takes and gives epoch milliseconds. */
type Periods = Readonly<{ dueAt: (at: number) => number; extendDays: number }>;

export const PERIODS: Readonly<Record<RightsProfile, Periods>> = {
  // Article 12(3): one month, and two further months.
  gdpr: { dueAt: oneMonthAfter, extendDays: 61 },
  // California, 11 CCR section 7021(b): 45 calendar days, and 45 more.
  ccpa: { dueAt: afterDays(45), extendDays: 45 },
  // India, DPDP Rules 2025, rule 14: 90 days at most, which nothing extends.
  dpdp: { dueAt: afterDays(90), extendDays: 0 },
};

/** Nothing is due later than that after it was filed: a month and 61 days. */
export const LONGEST_MS = 92 * DAY;
/** From here on a due date is soon. */
export const SOON_DAYS = 7;

/**
 * What is left until a due date, or how long ago it passed; whole units, rounded down, so that no time is promised that is not there.
 * 0 hours: less than one.
 */
export function due(dueAt: number, now: number) {
  const late = dueAt < now;
  const gap = Math.abs(dueAt - now);
  return gap >= DAY
    ? ({ late, unit: 'days', n: Math.floor(gap / DAY) } as const)
    : ({ late, unit: 'hours', n: Math.floor(gap / HOUR) } as const);
}

/** What an outcome means for the decision, of which some stay what they are. */
export function outcomeText(outcome: ContestOutcome, decided: string): string {
  if (outcome === 'upheld') return 'the decision stands';
  if (isReconciled(decided)) return 'the decision no longer stands; it will count as a person';
  return `the objection is right; the decision said ${quotedClass(decided)}, and it stays that`;
}
