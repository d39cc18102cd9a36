import type { Request } from 'express';
import { DAY } from '../lib/clock.ts';
import {
  QUEUE_GROUPS,
  type QueueCursor,
  type QueueFilter,
  type QueueGroup,
  type QueueRow,
} from '../rights/contests/record.ts';
import { visitorClassSchema } from '../schema/responses.ts';
import { findCase, readQueue } from './case-queue-service.ts';
import { takeFlash } from './flash.ts';
import { buildAddress, matchParameter } from './form.ts';
import type { ConsoleVisit, PageTable } from './session-guard-service.ts';

/**
 * The page of the review queue. All filters are in the address, so that a view can be bookmarked and sent.
 */

const PAGE = 25;
const AGES = ['7', '14', '21', '28'];
const DUES = ['late', '2', '7'];
const CLASSES = visitorClassSchema.options;
const GROUPS: readonly string[] = QUEUE_GROUPS;

/** @returns an empty text for a value that is not in the list */
function oneOf(value: unknown, options: readonly string[]): string {
  return typeof value === 'string' && options.includes(value) ? value : '';
}

/** @returns null for an invalid position, so that an edited address shows the first page */
function readCursor(value: unknown): QueueCursor | null {
  const [, group = '', at = '', contestId = ''] = matchParameter(value, /^(\w+)~(\d{1,15})~(con_\w{26})$/);
  return GROUPS.includes(group) ? { group: group as QueueGroup, at: Number(at), contestId } : null;
}

type QueueChoice = ReturnType<typeof readChoice>;

function readChoice({ query }: Request) {
  const state: 'open' | 'resolved' = query['state'] === 'resolved' ? 'resolved' : 'open';
  return {
    state,
    class: oneOf(query['class'], CLASSES),
    age: oneOf(query['age'], AGES),
    due: oneOf(query['due'], DUES),
    after: readCursor(query['after']),
  };
}

function toFilter(choice: QueueChoice, now: number): QueueFilter {
  const { age, due } = choice;
  return {
    class: choice.class === '' ? undefined : choice.class,
    filedBefore: age === '' ? undefined : now - Number(age) * DAY,
    dueBefore: due === '' ? undefined : due === 'late' ? now : now + Number(due) * DAY,
  };
}

function linkTo({ state, class: className, age, due }: QueueChoice, cursor: QueueCursor | null): string {
  const after = cursor ? `${cursor.group}~${cursor.at}~${cursor.contestId}` : '';
  return buildAddress('/console/queue', {
    state: state === 'open' ? '' : state,
    class: className,
    age,
    due,
    after,
  });
}

/** @returns the position after the last row of this page; null on the last page */
function findNextCursor(rows: readonly QueueRow[]): QueueCursor | null {
  const last = rows[PAGE - 1];
  if (rows.length <= PAGE || !last) return null;
  const { resolvedAt, dueAt, contestId } = last.contest;
  return { group: last.group, at: resolvedAt ?? dueAt, contestId };
}

async function showQueue(visit: ConsoleVisit): Promise<void> {
  const { context, request, response, staff, now } = visit;
  const { q } = request.query;
  const search = typeof q === 'string' ? q.trim().slice(0, 128) : '';
  const found = search === '' ? null : await findCase(context, staff, search);
  if (found !== null) {
    response.redirect(303, `/console/contests/${found}`);
    return;
  }
  const choice = readChoice(request);
  const done = takeFlash(visit)?.done ?? null;
  const { state, after } = choice;
  const query = { filter: toFilter(choice, now), after, limit: PAGE + 1 };
  const { rows, ...view } = await readQueue(context, staff, state, query);
  const next = findNextCursor(rows);
  context.render(response, 'queue', {
    here: 'queue',
    ...view,
    rows: rows.slice(0, PAGE),
    wanted: choice,
    search,
    missed: search !== '',
    filtered: choice.class !== '' || choice.age !== '' || choice.due !== '',
    first: after === null ? null : linkTo(choice, null),
    next: next && linkTo(choice, next),
    ages: AGES,
    dues: DUES,
    classes: CLASSES,
    done,
  });
}

export const queuePages: PageTable = { pages: { '/queue': ['reviewer', showQueue] } };
