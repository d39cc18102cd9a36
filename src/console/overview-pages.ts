import { listAttention } from './attention.ts';
import { layOutChart, percentOf, RANGES, type Range } from './charts.ts';
import { groupsIn, sumOf } from './group-counts.ts';
import { chooseHeadline } from './overview-headline.ts';
import {
  ANSWERED_DAYS,
  readAttention,
  readCases,
  readCounts,
  readDoubts,
  readOverturned,
  readRetention,
} from './overview-service.ts';
import type { ConsoleVisit, PageTable } from './session-guard-service.ts';

/** The overview: one sentence, four figures, the visits, the consent, and what needs attention. */

/** From the ground of the chart up. */
const CLASSES = ['human', 'declared_agent', 'undeclared_automation', 'unknown'];
const AUTOMATED = 'undeclared_automation';
const CHOICES = ['granted', 'denied', 'withdrawn', 'gpc-opt-out'];
const MAX_RULES = 5;

const readRange = (value: unknown): Range => RANGES.find(({ id }) => id === value) ?? RANGES[0];

type Counts = Awaited<ReturnType<typeof readCounts>>;

function describeVisits({ visits, period }: Counts, range: Range) {
  const chart = layOutChart(visits, CLASSES, { range, period, peakOf: AUTOMATED });
  const automated = chart.series.find(({ name }) => name === AUTOMATED);
  return {
    chart,
    /** Percent. */
    automated: percentOf(automated?.n ?? 0, chart.total),
    before: percentOf(automated?.before ?? 0, chart.totalBefore),
    /** Percent of more or fewer visits than in the period before; null without a period before. */
    change: chart.totalBefore === 0 ? null : Math.round(100 * (chart.total / chart.totalBefore - 1)),
  };
}

function describeConsent({ consent, consentPeriod: { from, until } }: Counts) {
  const rows = CHOICES.map((name) => ({ name, n: sumOf(groupsIn(consent.get(name) ?? [], from, until)) }));
  const total = rows.reduce((sum, { n }) => sum + n, 0);
  return { total, rows: rows.map((row) => ({ ...row, share: total === 0 ? 0 : row.n / total })) };
}

async function showOverview({ context, request, response, staff, now }: ConsoleVisit): Promise<void> {
  const range = readRange(request.query['range']);
  const [cases, counts, rules, facts, doubts, retention] = await Promise.all([
    readCases(context, staff),
    readCounts(context, staff, { classes: CLASSES, choices: CHOICES, range }),
    readOverturned(context, staff, MAX_RULES),
    readAttention(context, staff),
    readDoubts(context, staff),
    readRetention(context, staff),
  ]);
  const attention = listAttention(facts, staff.role);
  const visits = describeVisits(counts, range);
  const mayRule = staff.role !== 'operator';
  const headline = chooseHeadline({
    now,
    mayRule,
    due: cases.due,
    cap: cases.cap,
    urgent: cases.urgent,
    waiting: cases.waiting,
    attention: attention[0]?.text ?? null,
    automated: visits.automated,
    before: visits.before,
    beforeText: range.before,
  });
  context.render(response, 'overview', {
    here: 'overview',
    headline,
    ranges: RANGES,
    range,
    ...counts,
    ...visits,
    cases,
    mayRule,
    answeredDays: ANSWERED_DAYS,
    consent: describeConsent(counts),
    doubts,
    rules,
    attention,
    retention,
  });
}

export const overviewPages: PageTable = { pages: { '/overview': ['staff', showOverview] } };
