import { isReconciled } from '../../ingest/verdict/verdict.ts';
import { quotedClass } from '../../ingest/verdict/verdict-words.ts';
import { contestContext } from '../../keys/master-key.ts';
import { DAY, HOUR } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import type { ContestOutcome, Extension, Ruling } from '../../schema/rights.ts';
import type { RightsProfile } from '../../tenants/settings.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { acknowledgeBy, dayOf, PERIODS, pausedMs } from './period.ts';

/** Texts in the order in which a row stores them. */
const ORDER = [
  'statement',
  /** The reviewer's question to the subject. */
  'question',
  'reason',
  'proposedReason',
  /** The person's answer to the question. */
  'answer',
  /** The person's e-mail address. */
  'email',
  /**
   * Keyed hash of the case key; null: filed with an account. Encrypted too, so that no hash of another case
   * opens this one.
   */
  'caseHash',
  /** Earlier questions with their answers. */
  'earlier',
  /** Why an answer takes longer. */
  'extensionReason',
  /** In which gpd writes to the e-mail address; null without one. */
  'language',
] as const;

/** Texts of the person and the reviewers, encrypted under the tenant's own key and bound to their contest. */
export type Texts = Readonly<Record<Exclude<(typeof ORDER)[number], 'earlier'>, string | null>> & {
  readonly earlier: readonly { readonly question: string; readonly answer: string }[];
};

const NOTHING = Object.fromEntries(ORDER.map((name) => [name, null])) as Record<keyof Texts, null>;
export const NO_TEXTS: Texts = { ...NOTHING, earlier: [] };

export type ContestTexts = ReturnType<typeof contestTextsOf>;

/** Uses the key that also wraps the keys of principals and the waiting messages. */
export function contestTextsOf(tenantOf: (kid: string) => Pick<Tenant, 'wrapper'> | undefined) {
  return {
    /**
     * Null when nobody wrote anything.
     * @throws {Error} for a tenant whose key is not known: nothing is written in the clear
     */
    encrypt(kid: string, contestId: string, texts: Texts): string | null {
      if (ORDER.every((name) => name === 'earlier' || texts[name] === null)) return null;
      const tenant = tenantOf(kid);
      if (!tenant) throw new Error('a contest of no tenant');
      const text = JSON.stringify(ORDER.map((name) => texts[name]));
      return tenant.wrapper.wrap(Buffer.from(text), contestContext(kid, contestId));
    },
    /**
     * @returns no texts for a tenant whose key is unknown @throws {WrongMasterKey} when it was encrypted with
     * another key
     */
    decrypt(kid: string, contestId: string, ciphertext: string): Texts {
      const tenant = tenantOf(kid);
      if (!tenant) return NO_TEXTS;
      const text = tenant.wrapper.unwrap(ciphertext, contestContext(kid, contestId)).toString();
      const stored = JSON.parse(text) as unknown[];
      return Object.fromEntries(ORDER.map((name, i) => [name, stored[i] ?? null])) as Texts;
    },
  };
}

/**
 * Contest of an automated decision (GDPR article 22(3), contract 6.2 and 6.3):
 *   filed → open ⇄ claimed → resolved (upheld | overturned)
 * Every change is a function from a record to the next; the store writes it only while the version is the one
 * read.
 */

export type ResolverRole = 'reviewer' | 'dpo' | 'operator';

export interface Claim {
  /** Keyed reference of the holder. */
  readonly by: string;
  /** The holder's name in the console. */
  readonly label: string;
  readonly until: number;
}

export interface Proposal {
  readonly outcome: ContestOutcome;
  readonly reason: string;
  readonly by: string;
  /** The reviewer's name in the console; null: proposed elsewhere. */
  readonly label: string | null;
  readonly at: number;
}

/** An objection to a decision, or a complaint about how data are handled (complaint.ts). */
export type CaseKind = 'contest' | 'complaint';

export interface Contest extends Omit<Texts, 'proposedReason'> {
  readonly kind: CaseKind;
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
  /** The notice of the due date that was sent last: 0 none, 1 due soon, 2 overdue. */
  readonly dueNotice: number;
  readonly status: 'open' | 'resolved';
  /** Counts changes. */
  readonly version: number;
  /** The class that is contested. */
  readonly class: string;
  readonly outcome: ContestOutcome | null;
  readonly resolvedAt: number | null;
  readonly resolvedBy: { readonly role: ResolverRole; readonly ref: string } | null;
  /** The resolver's name in the console; null: resolved elsewhere. */
  readonly resolvedLabel: string | null;
  readonly claim: Claim | null;
  /**
   * With `review.fourEyes`, the ruling that one reviewer proposed and another has to confirm; it is kept with
   * the other's ruling.
   */
  readonly proposal: Proposal | null;
  readonly askedAt: number | null;
  readonly answeredAt: number | null;
  /** The last time in which the clock stood still; with `pausedTo` null it still does. */
  readonly pausedFrom: number | null;
  readonly pausedTo: number | null;
  /** Only of a complaint. */
  readonly acknowledgedAt: number | null;
  /**
   * The network from which it was filed, hashed under a key of that day; null if it was not counted, or the
   * key has expired.
   */
  readonly caseNetwork: string | null;
}

/** The time, and the law that sets the due date. */
export interface At {
  readonly now: number;
  readonly profile: RightsProfile;
}

/** A claim that is not renewed in this time frees the case for others. */
const CLAIM_MS = HOUR;

type FiledFields = Pick<
  Contest,
  'kid' | 'contestId' | 'requestId' | 'durable' | 'class' | 'filedBy' | 'statement'
>;
/** Its kind, and fields that only a contest without an account has. */
export type CaseParts = Partial<Pick<Contest, 'kind' | 'email' | 'language' | 'caseHash' | 'caseNetwork'>>;

const { proposedReason: _, ...NOTHING_SAID } = NO_TEXTS;

export function fileContest(
  filing: FiledFields & CaseParts,
  now: number,
  profile: RightsProfile = 'gdpr',
): Contest {
  return {
    ...NOTHING_SAID,
    kind: 'contest',
    caseNetwork: null,
    ...filing,
    filedAt: now,
    dueAt: filing.kind === 'complaint' ? acknowledgeBy(now) : PERIODS[profile].dueAt(now),
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
    pausedFrom: null,
    pausedTo: null,
    acknowledgedAt: null,
  };
}

/** @returns the claim unless it has expired */
export function activeClaim(contest: Contest, now: number): Claim | null {
  return contest.claim !== null && contest.claim.until > now ? contest.claim : null;
}

export function withChange(contest: Contest, change: Partial<Contest>): Contest {
  return { ...contest, ...change, version: contest.version + 1 };
}

/** @throws {Refusal} unless the case is open and no other reviewer has claimed it */
function refuseClaimed(contest: Contest, by: string, now: number): void {
  if (contest.status === 'resolved') throw new Refusal('already-resolved');
  const claim = activeClaim(contest, now);
  if (claim !== null && claim.by !== by) throw new Refusal('claimed-by-another');
}

function refuseSelf(contest: Contest, by: string): void {
  if (contest.filedBy === by) throw new Refusal('self-review-denied');
}

/** @throws {Refusal} unless somebody else filed the case, it is open and no other reviewer has claimed it */
export function refuseUnclaimable(contest: Contest, by: string, now: number): void {
  refuseSelf(contest, by);
  refuseClaimed(contest, by, now);
}

/**
 * Takes the case for an hour, or renews it.
 * @throws {Refusal} `self-review-denied`, `already-resolved`, `claimed-by-another`
 */
export function claimContest(contest: Contest, holder: Omit<Claim, 'until'>, now: number): Contest {
  refuseUnclaimable(contest, holder.by, now);
  return withChange(contest, { claim: { ...holder, until: now + CLAIM_MS } });
}

/** Gives the case back; only its holder can. @throws {Refusal} */
export function releaseContest(contest: Contest, by: string, now: number): Contest {
  refuseClaimed(contest, by, now);
  return contest.claim === null ? contest : withChange(contest, { claim: null });
}

/** True while the clock of the case stands still, so that it cannot be late. */
export const isPaused = ({ pausedFrom, pausedTo }: Pick<Contest, 'pausedFrom' | 'pausedTo'>): boolean =>
  pausedFrom !== null && pausedTo === null;

/**
 * Stops the clock of a request while the person is asked for more, in the United Kingdom alone. A period that
 * has ended, and the time to acknowledge a complaint, cannot be stopped.
 */
function pause(contest: Contest, { now, profile }: At): Partial<Contest> {
  const { kind, dueAt, extendedFrom, pausedTo } = contest;
  if (profile !== 'uk' || kind !== 'contest' || dueAt < now || isPaused(contest)) return {};
  // A day on which one pause ends and the next begins is left out once.
  const back = pausedTo !== null && dayOf(pausedTo) === dayOf(now) ? DAY : 0;
  return {
    pausedFrom: now,
    pausedTo: null,
    dueAt: dueAt - back,
    extendedFrom: extendedFrom === null ? null : extendedFrom - back,
  };
}

/** Starts the clock again: the due dates move by the days that do not count. */
function resume(contest: Contest, now: number): Partial<Contest> {
  const { dueAt, extendedFrom, pausedFrom } = contest;
  if (pausedFrom === null || !isPaused(contest)) return {};
  const days = pausedMs(pausedFrom, now);
  return {
    pausedTo: now,
    dueAt: dueAt + days,
    extendedFrom: extendedFrom === null ? null : extendedFrom + days,
    dueNotice: 0,
  };
}

/** Asks the subject a question; the due date stays, or its clock stands still. @throws {Refusal} */
export function askSubject(contest: Contest, by: string, question: string, context: At): Contest {
  const { now } = context;
  refuseUnclaimable(contest, by, now);
  const { question: lastQuestion, answer, earlier } = contest;
  const earlierQuestions =
    lastQuestion !== null && answer !== null ? [...earlier, { question: lastQuestion, answer }] : earlier;
  return withChange(contest, {
    question,
    askedAt: now,
    answer: null,
    answeredAt: null,
    earlier: earlierQuestions,
    ...pause(contest, context),
  });
}

/**
 * Extends the period, once and before the due date, by which the person must be informed (GDPR article
 * 12(3)).
 * @throws {Refusal}
 */
export function extendContest(contest: Contest, by: string, extension: Extension, context: At): Contest {
  const { days, reason } = extension;
  const { now, profile } = context;
  refuseUnclaimable(contest, by, now);
  if (contest.kind !== 'contest')
    throw new Refusal('invalid-request', { details: ['a complaint has no due date that can be extended'] });
  const { extendDays } = PERIODS[profile];
  const { dueAt, extendedFrom } = contest;
  const staleVersion = (detail: string) => new Refusal('stale-version', { details: [detail] });
  if (extendedFrom !== null) throw staleVersion('the due date was extended before, and may be extended once');
  if (dueAt < now && !isPaused(contest)) throw staleVersion('the due date has passed');
  if (days > extendDays)
    throw new Refusal('invalid-request', {
      details: [`rights.profile ${profile} allows ${extendDays} days`],
    });
  const extendedDueAt = dueAt + days * DAY;
  return withChange(contest, {
    extendedFrom: dueAt,
    dueAt: extendedDueAt,
    extensionReason: reason,
    dueNotice: 0,
  });
}

/** The person answers the question, once. @throws {Refusal} `case-closed` */
export function answerQuestion(contest: Contest, answer: string, now: number): Contest {
  const isAwaited = contest.status === 'open' && contest.question !== null && contest.answer === null;
  if (!isAwaited) throw new Refusal('case-closed');
  return withChange(contest, { answer, answeredAt: now, ...resume(contest, now) });
}

/** A ruling with the person who makes it. */
export interface Resolution extends Omit<Ruling, 'contestId'> {
  readonly role: ResolverRole;
  /** Keyed reference of the resolver. */
  readonly by: string;
  /** The resolver's name in the console. */
  readonly label?: string | null;
  readonly fourEyes: boolean;
}

/**
 * A repeated outcome changes nothing. With four eyes the first ruling is a proposal: an equal ruling of
 * another person resolves the contest, a different one replaces the proposal.
 * @throws {Refusal} `no-such-contest` for a complaint, `self-review-denied`, `already-resolved`,
 * `claimed-by-another`, `stale-version`
 */
export function resolveContest(contest: Contest, ruling: Resolution, now: number): Contest {
  const { outcome, reason, role, by, label = null, version } = ruling;
  if (contest.kind !== 'contest') throw new Refusal('no-such-contest');
  refuseSelf(contest, by);
  if (contest.status === 'resolved' && contest.outcome === outcome) return contest;
  refuseClaimed(contest, by, now);
  if (version !== null && version !== contest.version) throw new Refusal('stale-version');
  const { proposal } = contest;
  if (ruling.fourEyes && (proposal?.outcome !== outcome || proposal.by === by)) {
    const isRepeated = proposal?.outcome === outcome && proposal.by === by && proposal.reason === reason;
    if (isRepeated) return contest;
    return withChange(contest, { proposal: { outcome, reason, by, label, at: now }, claim: null });
  }
  return withChange(contest, {
    ...resume(contest, now),
    status: 'resolved',
    outcome,
    reason,
    resolvedAt: now,
    resolvedBy: { role, ref: by },
    resolvedLabel: label,
    claim: null,
    caseNetwork: null,
    // The resolver's own proposal became the ruling; a colleague's proposal is kept for its reason.
    proposal: proposal?.by === by ? null : proposal,
  });
}

/** Says what an outcome means for the decision: an overturned decision of some classes keeps its class. */
export function outcomeText(outcome: ContestOutcome, decided: string): string {
  if (outcome === 'upheld') return 'the decision stands';
  if (isReconciled(decided)) return 'the decision no longer stands; it will count as a person';
  return `the objection is right; the decision said ${quotedClass(decided)}, and it stays that`;
}
