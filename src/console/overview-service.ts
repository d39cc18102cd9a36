import { countDoubts } from '../consent/doubts-store.ts';
import { untranslatedLanguages } from '../consent/purpose-words.ts';
import type { Database } from '../db/engine.ts';
import { LAST_BACKUP, readMeta } from '../db/meta-store.ts';
import { ruleText } from '../ingest/verdict/verdict-words.ts';
import { DAY } from '../lib/clock.ts';
import { wilson } from '../lib/wilson.ts';
import { COUNT_CAP, countWaiting, openByDue } from '../rights/contests/queue-store.ts';
import { readOldestDecision } from '../rights/dsar/store.ts';
import { readTallies, ruleReviews, talliedUntil } from '../rights/tally-store.ts';
import { listSealKeys } from '../tenants/secrets-store.ts';
import { createTenantStore } from '../tenants/tenant-store.ts';
import { type AttentionFacts, WEAKENED_DAYS } from './attention.ts';
import { type ChartPeriod, periodOf, type Range } from './charts.ts';
import type { Context, Staff } from './context-service.ts';
import { groupByName, settledUntil, startOfSpan } from './group-counts.ts';
import {
  countAnswered,
  countFailedEvents,
  countProposed,
  countWaitingErasures,
  countWeakeningActs,
  readAnswered,
  readMostUrgent,
} from './overview-store.ts';

/** Reads the overview. Nothing in it scans decisions: their hours were counted when they were new. */

export const ANSWERED_DAYS = 30;
const ERASURES_CAP = 99;

async function countOpenByDue(database: Database, kid: string, now: number) {
  const bounds = [
    [0, now],
    [now, now + 2 * DAY],
    [now + 2 * DAY, now + 7 * DAY],
    [now + 7 * DAY, Number.MAX_SAFE_INTEGER],
  ] as const;
  const [overdue = 0, two = 0, seven = 0, later = 0] = await openByDue(database, kid, bounds);
  return { late: overdue, two, seven, later };
}

export async function readCases({ database, clock }: Context, { kid, ref: me }: Staff) {
  const now = clock();
  const from = now - ANSWERED_DAYS * DAY;
  const [due, urgent, waiting, proposed, answered, answeredBefore] = await Promise.all([
    countOpenByDue(database, kid, now),
    readMostUrgent(database, kid),
    countWaiting(database, { kid, me, now }),
    countProposed(database, kid),
    readAnswered(database, kid, from, now),
    countAnswered(database, kid, from - ANSWERED_DAYS * DAY, from),
  ]);
  return { due, urgent, waiting, proposed, answered, answeredBefore, cap: COUNT_CAP };
}

/** Consent is rarer than visits, so its bar covers at least a week. */
const CONSENT_RANGE = { step: DAY, slots: 7 };

interface Counted {
  readonly classes: readonly string[];
  readonly choices: readonly string[];
  readonly range: Range;
}

/** Visits and choices in groups, over the range and the period before it. */
export async function readCounts({ database, config, clock }: Context, { kid }: Staff, counted: Counted) {
  const { classes, choices, range } = counted;
  const countedUntil = await talliedUntil(database, kid);
  const settled = settledUntil(countedUntil ?? clock()) ?? 0;
  const period = periodOf(range, settled);
  const isShort = range.step * range.slots < CONSENT_RANGE.step * CONSENT_RANGE.slots;
  const consentDays = isShort ? CONSENT_RANGE.slots : (range.step * range.slots) / DAY;
  const consentPeriod: ChartPeriod = { from: settled - consentDays * DAY, until: settled, before: settled };
  const floor = config.k_anonymity_floor;
  const [verdicts, consent] = await Promise.all([
    readTallies(database, kid, 'verdict', startOfSpan(period.before)),
    readTallies(database, kid, 'consent', startOfSpan(consentPeriod.from)),
  ]);
  return {
    period,
    floor,
    countedUntil: countedUntil === null ? null : period.until,
    visits: groupByName(verdicts, classes, { floor, until: settled }),
    consent: groupByName(consent, choices, { floor, until: settled }),
    consentPeriod,
    consentDays,
  };
}

/**
 * Rules that rulings or reported outcomes found wrong. Sorted by the lower bound of the share, so that one
 * ruling weighs less than many.
 */
export async function readOverturned({ database }: Context, { kid }: Staff, limit: number) {
  return (await ruleReviews(database, kid))
    .map(({ rule, overturned, mistaken, upheld, confirmed }) => {
      const wrongCount = Number(overturned) + Number(mistaken);
      const total = wrongCount + Number(upheld) + Number(confirmed);
      const rulings = Number(overturned) + Number(upheld);
      return { rule, text: ruleText(rule), wrongCount, total, rulings, ...wilson(wrongCount, total) };
    })
    .filter(({ wrongCount }) => wrongCount > 0)
    .sort((a, b) => b.low - a.low || b.total - a.total || a.rule.localeCompare(b.rule))
    .slice(0, limit);
}

export async function readAttention(context: Context, { kid }: Staff): Promise<AttentionFacts> {
  const { database, tenantOf, config, clock } = context;
  const now = clock();
  const settings = tenantOf(kid)?.settings;
  const [failedEvents, erasures, backup, weakeningActs, purposes, keys] = await Promise.all([
    countFailedEvents(database, kid),
    countWaitingErasures(database, kid, ERASURES_CAP),
    readMeta(database, LAST_BACKUP),
    countWeakeningActs(database, kid, now - WEAKENED_DAYS * DAY),
    createTenantStore(database).purposes(kid),
    listSealKeys(database.read, kid),
  ]);
  const texts = settings?.['banner.texts'] ?? {};
  return {
    kid,
    now,
    failedEvents,
    erasures,
    lastBackupAt: backup === null ? null : (JSON.parse(backup) as { at: number }).at,
    needsBackup: config.database_url === null,
    weakeningActs,
    untranslated: purposes
      .filter((purpose) => untranslatedLanguages(purpose, texts).length > 0)
      .map(({ title }) => title),
    hasNotice: (settings?.['notice.controller'] ?? '') !== '' && (settings?.['notice.contact'] ?? '') !== '',
    publishedKeyAt: keys.find(({ state }) => state === 'published')?.publishedAt ?? null,
  };
}

export async function readRetention({ database, tenantOf }: Context, { kid }: Staff) {
  const oldest = await readOldestDecision(database, kid);
  return { days: tenantOf(kid)?.settings['retention.days'] ?? 0, oldest };
}

export const readDoubts = ({ database }: Context, { kid }: Staff) => countDoubts(database, kid);
