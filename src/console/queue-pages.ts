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
import { findCase, readQueue } from './cases-service.ts';
import { addressOf, partsOf } from './form.ts';
import type { ConsoleVisit, PageTable } from './session-guard.ts';

/** The review queue: every filter is in the address, so that a view can be kept and sent. */

const PAGE = 25;
const AGES = ['7', '14', '21', '28'];
const DUES = ['late', '2', '7'];
const CLASSES = visitorClassSchema.options;
const GROUPS: readonly string[] = QUEUE_GROUPS;

function oneOf(value: unknown, known: readonly string[]): string {
  return typeof value === 'string' && known.includes(value) ? value : '';
}

/** Whatever somebody writes into the address: what is not known is left out. */
function readCursor(value: unknown): QueueCursor | null {
  const [, group = '', at = '', contestId = ''] = partsOf(value, /^(\w+)~(\d{1,15})~(con_\w{26})$/);
  return GROUPS.includes(group) ? { group: group as QueueGroup, at: Number(at), contestId } : null;
}

type Wanted = ReturnType<typeof readWanted>;

function readWanted({ query }: Request) {
  const state: 'open' | 'resolved' = query['state'] === 'resolved' ? 'resolved' : 'open';
  return {
    state,
    class: oneOf(query['class'], CLASSES),
    age: oneOf(query['age'], AGES),
    due: oneOf(query['due'], DUES),
    after: readCursor(query['after']),
  };
}

function filterOf(wanted: Wanted, now: number): QueueFilter {
  const { age, due } = wanted;
  return {
    class: wanted.class === '' ? undefined : wanted.class,
    filedBefore: age === '' ? undefined : now - Number(age) * DAY,
    dueBefore: due === '' ? undefined : due === 'late' ? now : now + Number(due) * DAY,
  };
}

function linkTo({ state, class: of, age, due }: Wanted, cursor: QueueCursor | null): string {
  const after = cursor ? `${cursor.group}~${cursor.at}~${cursor.contestId}` : '';
  return addressOf('/console/queue', { state: state === 'open' ? '' : state, class: of, age, due, after });
}

/** Where the page after `rows` begins; null on the last page. */
function nextAfter(rows: readonly QueueRow[]): QueueCursor | null {
  const last = rows[PAGE - 1];
  if (rows.length <= PAGE || !last) return null;
  const { resolvedAt, dueAt, contestId } = last.contest;
  return { group: last.group, at: resolvedAt ?? dueAt, contestId };
}

async function showQueue({ context, request, response, staff, now }: ConsoleVisit): Promise<void> {
  const { q } = request.query;
  const search = typeof q === 'string' ? q.trim().slice(0, 128) : '';
  const found = search === '' ? null : await findCase(context, staff, search);
  if (found !== null) {
    response.redirect(303, `/console/contests/${found}`);
    return;
  }
  const wanted = readWanted(request);
  const { state, after } = wanted;
  const query = { filter: filterOf(wanted, now), after, limit: PAGE + 1 };
  const { rows, ...view } = await readQueue(context, staff, state, query);
  const next = nextAfter(rows);
  context.render(response, 'queue', {
    here: 'queue',
    ...view,
    rows: rows.slice(0, PAGE),
    wanted,
    search,
    missed: search !== '',
    filtered: wanted.class !== '' || wanted.age !== '' || wanted.due !== '',
    first: after === null ? null : linkTo(wanted, null),
    next: next && linkTo(wanted, next),
    ages: AGES,
    dues: DUES,
    classes: CLASSES,
    done: oneOf(request.query['done'], ['resolved', 'proposed', 'released']),
  });
}

export const queuePages: PageTable = { pages: { '/queue': ['reviewer', showQueue] } };
