import type { Request } from 'express';
import { DAY } from '../lib/clock.ts';
import {
  cursorOf,
  QUEUE_LISTS,
  QUEUE_ORDERS,
  type QueueCursor,
  type QueueFilter,
  type QueueQuery,
} from '../rights/contests/record.ts';
import { visitorClassSchema } from '../schema/responses.ts';
import { findCase, readQueue } from './case-queue-service.ts';
import { takeFlash } from './flash.ts';
import { buildAddress, matchParameter } from './form.ts';
import { readTurn, turnPage } from './paging.ts';
import { readWords } from './queue-words.ts';
import type { ConsoleVisit, PageTable } from './session-guard-service.ts';

/**
 * The page of the review queue. All filters are in the address, so that a view can be bookmarked and sent.
 */

const PAGE = 25;
const AGES = ['7', '14', '21', '28'];
const DUES = ['late', 'week', '2', '7'];
const CLASSES = visitorClassSchema.options;

/** @returns undefined for a value that is not in the list */
function oneOf<Option extends string>(value: unknown, options: readonly Option[]): Option | undefined {
  return options.find((option) => option === value);
}

/** @returns null for an invalid position, so that an edited address shows the first page */
function readCursor(value: unknown): QueueCursor | null {
  const [, at = '', contestId = ''] = matchParameter(value, /^(\d{1,15})~(con_\w{26})$/);
  return contestId === '' ? null : { at: Number(at), contestId };
}

type QueueChoice = ReturnType<typeof readChoice>;

function readChoice({ query }: Request) {
  const { q } = query;
  return {
    state: oneOf(query['state'], ['open', 'resolved']) ?? ('open' as const),
    list: oneOf(query['list'], QUEUE_LISTS),
    class: oneOf(query['class'], CLASSES),
    age: oneOf(query['age'], AGES),
    due: oneOf(query['due'], DUES),
    sort: oneOf(query['sort'], QUEUE_ORDERS) ?? ('due' as const),
    q: typeof q === 'string' ? q.trim().slice(0, 128) : '',
    ...readTurn(query, readCursor),
  };
}

function dueBounds(due: string | undefined, now: number): Pick<QueueFilter, 'dueFrom' | 'dueBefore'> {
  if (due === undefined) return {};
  if (due === 'late') return { dueBefore: now };
  if (due === 'week') return { dueFrom: now, dueBefore: now + 7 * DAY };
  return { dueBefore: now + Number(due) * DAY };
}

function toQuery(choice: QueueChoice, now: number): QueueQuery {
  const { state: status, list, age, due, sort: order, cursor, isBackward } = choice;
  const words = readWords(choice.q);
  return {
    status,
    list: list ?? words.list,
    holder: words.holder,
    filter: {
      class: choice.class ?? words.class,
      filedBefore: age === undefined ? undefined : now - Number(age) * DAY,
      ...dueBounds(words.isOverdue ? 'late' : due, now),
    },
    order,
    cursor,
    isBackward,
    limit: PAGE + 1,
  };
}

const positionOf = ({ at, contestId }: QueueCursor): string => `${at}~${contestId}`;

/** @param page the position of another page; an empty object for the first */
function linkTo(choice: QueueChoice, page: Readonly<Record<string, string>>): string {
  const { state, list = '', class: className = '', age = '', due = '', sort, q } = choice;
  return buildAddress('/console/queue', {
    state: state === 'open' ? '' : state,
    list,
    class: className,
    age,
    due,
    sort: sort === 'due' ? '' : sort,
    q,
    ...page,
  });
}

type Page = Awaited<ReturnType<typeof readQueue>>;

/** Links to the pages around this one. The extra row only says that there is one more page. */
function pagesAround(choice: QueueChoice, query: QueueQuery, { contests, place }: Page) {
  const { shown, ...links } = turnPage(contests, PAGE, query, {
    positionOf: (contest) => positionOf(cursorOf(query, contest)),
    linkTo: (page) => linkTo(choice, page),
  });
  return { contests: shown, place: shown[0] === contests[0] ? place : place + 1, ...links };
}

/** A search that can only be an id is answered as one. */
const ID = /^(?:con|req)_/;

async function showQueue(visit: ConsoleVisit): Promise<void> {
  const { context, request, response, staff, now } = visit;
  const choice = readChoice(request);
  const found = choice.q === '' ? null : await findCase(context, staff, choice.q);
  if (found !== null) {
    response.redirect(303, `/console/contests/${found}`);
    return;
  }
  const done = takeFlash(visit)?.done ?? null;
  const query = toQuery(choice, now);
  const page = await readQueue(context, staff, query);
  context.render(response, 'queue', {
    here: 'queue',
    ...page,
    ...pagesAround(choice, query, page),
    wanted: choice,
    missed: ID.test(choice.q),
    filtered: [choice.list, choice.class, choice.age, choice.due].some((one) => one !== undefined),
    ages: AGES,
    dues: DUES,
    classes: CLASSES,
    done,
  });
}

export const queuePages: PageTable = { pages: { '/queue': ['reviewer', showQueue] } };
