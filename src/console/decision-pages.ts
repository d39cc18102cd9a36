import type { Request } from 'express';
import { RULES } from '../ingest/verdict/classify.ts';
import { ruleText } from '../ingest/verdict/verdict-words.ts';
import { DAY, isoTime } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { requestIdSchema, visitorClassSchema } from '../schema/responses.ts';
import { listDecisions, openDecision } from './decisions-service.ts';
import type { DecisionCursor, DecisionFilter, ListedDecision } from './decisions-store.ts';
import { buildAddress, matchParameter, parseDay } from './form.ts';
import type { ConsoleVisit, PageTable } from './session-guard-service.ts';

/** The list of decisions, with all filters in the address, and the page of one decision. */

const PAGE = 25;
const CLASSES = visitorClassSchema.options;
const RULE_IDS = RULES.map(({ id }) => id);

/** @returns null for an invalid position, so that an edited address shows the first page */
function readCursor(value: unknown): DecisionCursor | null {
  const [, at = '', requestId = ''] = matchParameter(value, /^(\d{1,15})~(req_\w{1,64})$/);
  return requestId === '' ? null : { at: Number(at), requestId };
}

const readText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.trim().slice(0, 256) || undefined : undefined;

function readFilter(query: Request['query']): DecisionFilter {
  const to = parseDay(query['to']);
  return {
    class: CLASSES.find((name) => name === query['class']),
    rule: RULE_IDS.find((id) => id === query['rule']),
    agent: readText(query['agent']),
    policy: readText(query['policy']),
    from: parseDay(query['from']),
    // The last day of the range is included.
    to: to === undefined ? undefined : to + DAY,
  };
}

/** Turns a filter into parameters, for the fields of the form and for links. */
function toParameters({ class: name, rule = '', agent = '', policy = '', from, to }: DecisionFilter) {
  const day = (at: number | undefined): string => (at === undefined ? '' : isoTime(at).slice(0, 10));
  return {
    class: name ?? '',
    rule,
    agent,
    policy,
    from: day(from),
    to: day(to === undefined ? undefined : to - DAY),
  };
}

const positionOf = ({ at, requestId }: DecisionCursor): string => `${at}~${requestId}`;

const linkTo = (
  filter: DecisionFilter,
  page: { readonly after?: string; readonly before?: string },
): string => buildAddress('/console/decisions', { ...toParameters(filter), ...page });

/** The rule that weighs most says why, in the words that people read. */
function describeRow({ requestId, at, verdict }: ListedDecision) {
  const [heaviest] = verdict.rules.toSorted((a, b) => b.weight - a.weight);
  const reason = heaviest === undefined ? 'No rule fired' : ruleText(heaviest.id);
  return {
    requestId,
    at,
    class: verdict.class,
    text: verdict.declaredAgentId ?? reason,
    score: verdict.suspectScore,
    isOverridden: verdict.overridden,
  };
}

async function showDecisions({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const { query } = request;
  const filter = readFilter(query);
  const before = readCursor(query['before']);
  const cursor = before ?? readCursor(query['after']);
  const isBackward = before !== null;
  const { found, stoppedAt } = await listDecisions(context, staff, {
    filter,
    cursor,
    isBackward,
    limit: PAGE + 1,
  });
  const hasMore = found.length > PAGE;
  const page = found.slice(0, PAGE);
  const rows = isBackward ? page.toReversed() : page;
  const [first, last] = [rows[0], rows.at(-1)];
  const newer = isBackward ? (hasMore ? first : stoppedAt) : cursor && (first ?? cursor);
  const older = isBackward ? (last ?? cursor) : hasMore ? last : stoppedAt;
  const parameters = toParameters(filter);
  context.render(response, 'decisions', {
    here: 'decisions',
    rows: rows.map(describeRow),
    wanted: parameters,
    filtered: Object.values(parameters).some((value) => value !== ''),
    rules: RULE_IDS.map((id) => ({ id, text: ruleText(id) })),
    classes: CLASSES,
    stoppedAt: hasMore ? null : (stoppedAt?.at ?? null),
    isBackward,
    first: cursor === null ? null : linkTo(filter, {}),
    previous: newer ? linkTo(filter, { before: positionOf(newer) }) : null,
    next: older ? linkTo(filter, { after: positionOf(older) }) : null,
  });
}

async function showDecision({ context, request, response, staff }: ConsoleVisit): Promise<void> {
  const requestId = requestIdSchema.safeParse(request.params['id']);
  const view = requestId.success ? await openDecision(context, staff, requestId.data) : null;
  if (!view) throw new Refusal('not-found');
  context.render(response, 'decision', { here: 'decisions', ...view });
}

export const decisionPages: PageTable = {
  pages: {
    '/decisions': ['reviewer', showDecisions],
    '/decisions/:id': ['reviewer', showDecision],
  },
};
