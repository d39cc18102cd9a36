import type { Request, Router } from 'express';
import { DAY } from '../lib/clock.ts';
import {
  QUEUE_GROUPS,
  type QueueCursor,
  type QueueFilter,
  type QueueGroup,
} from '../rights/contests/queue.ts';
import type { QueuePort } from './ports-cases.ts';
import type { Render } from './render.ts';
import type { Desk } from './session-guard.ts';

/** The review queue: every filter is in the address, so that a view can be kept and sent. */

const PAGE = 25;
const AGES = ['7', '14', '21', '28'];
const DUES = ['late', '2', '7'];
const CLASSES = ['human', 'declared_agent', 'undeclared_automation', 'unknown'];
const GROUPS: readonly string[] = QUEUE_GROUPS;

interface Wanted {
  readonly state: 'open' | 'resolved';
  readonly class: string;
  readonly age: string;
  readonly due: string;
  readonly after: QueueCursor | null;
}

function oneOf(value: unknown, known: readonly string[]): string {
  return typeof value === 'string' && known.includes(value) ? value : '';
}

/** Whatever somebody writes into the address: what is not known is left out. */
function readCursor(value: unknown): QueueCursor | null {
  const [, group = '', at = '', contestId = ''] =
    /^(\w+)~(\d{1,15})~(con_\w{26})$/.exec(typeof value === 'string' ? value : '') ?? [];
  return GROUPS.includes(group) ? { group: group as QueueGroup, at: Number(at), contestId } : null;
}

function readWanted({ query }: Request): Wanted {
  return {
    state: query['state'] === 'resolved' ? 'resolved' : 'open',
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

function linkTo(wanted: Wanted, cursor: QueueCursor | null): string {
  const query = new URLSearchParams();
  for (const name of ['state', 'class', 'age', 'due'] as const) {
    if (wanted[name] !== '' && wanted[name] !== 'open') query.set(name, wanted[name]);
  }
  if (cursor) query.set('after', `${cursor.group}~${cursor.at}~${cursor.contestId}`);
  const text = query.toString();
  return `/console/queue${text === '' ? '' : `?${text}`}`;
}

export function queuePages(router: Router, queue: QueuePort, desk: Desk, render: Render): void {
  router.get(
    '/queue',
    desk.page('reviewer', async ({ request, response, staff, now }) => {
      const { q } = request.query;
      const search = typeof q === 'string' ? q.trim().slice(0, 128) : '';
      const found = search === '' ? null : await queue.find(staff, search);
      if (found !== null) {
        response.redirect(303, `/console/contests/${found}`);
        return;
      }
      const wanted = readWanted(request);
      const filter = filterOf(wanted, now);
      const rows =
        wanted.state === 'open'
          ? await queue.open(staff, filter, wanted.after, PAGE + 1)
          : (await queue.resolved(staff, filter, wanted.after, PAGE + 1)).map((contest) => {
              return { group: 'free' as const, contest };
            });
      const [counts, load] = await Promise.all([
        queue.counts(staff),
        staff.role === 'dpo' ? queue.workload(staff) : [],
      ]);
      const shown = rows.slice(0, PAGE);
      const last = shown.at(-1);
      const next =
        rows.length > PAGE && last
          ? {
              group: last.group,
              at: last.contest.resolvedAt ?? last.contest.dueAt,
              contestId: last.contest.contestId,
            }
          : null;
      render(response, 'queue', {
        here: 'queue',
        rows: shown,
        counts,
        load,
        cap: queue.cap,
        wanted,
        search,
        missed: search !== '',
        filtered: wanted.class !== '' || wanted.age !== '' || wanted.due !== '',
        first: wanted.after === null ? null : linkTo(wanted, null),
        next: next && linkTo(wanted, next),
        ages: AGES,
        dues: DUES,
        classes: CLASSES,
        done: oneOf(request.query['done'], ['resolved', 'proposed', 'released']),
      });
    }),
  );
}
