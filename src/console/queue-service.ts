import { isPlainText } from '../lib/plain-text.ts';
import type { QueueQuery, QueueRow } from '../rights/contests/queue.ts';
import { COUNT_CAP, queueCounts, queuePage, resolvedPage, workload } from '../rights/contests/queue-store.ts';
import { contestOf, findContest } from '../rights/contests/store.ts';
import type { Context } from './context.ts';
import type { Staff } from './staff.ts';

/** The review queue. */

async function resolvedRows(
  { database, contestTexts }: Context,
  { kid }: Staff,
  query: QueueQuery,
): Promise<readonly QueueRow[]> {
  const resolved = await resolvedPage(database, contestTexts, kid, query);
  return resolved.map((contest) => ({ group: 'free', contest }));
}

export async function readQueue(
  context: Context,
  staff: Staff,
  state: 'open' | 'resolved',
  query: QueueQuery,
) {
  const { database, contestTexts, clock } = context;
  const { kid, ref: me, role } = staff;
  const viewer = { kid, me, now: clock() };
  const rows =
    state === 'open'
      ? await queuePage(database, contestTexts, viewer, query)
      : await resolvedRows(context, staff, query);
  const [counts, load] = await Promise.all([
    queueCounts(database, viewer),
    role === 'dpo' ? workload(database, kid, viewer.now) : [],
  ]);
  // Load: of the colleagues, for a dpo. Counts above the cap are shown as "more than".
  return { rows, counts, load, cap: COUNT_CAP };
}

/** By the id of a contest or of a request. */
export async function findCase(
  { database, contestTexts }: Context,
  { kid }: Staff,
  id: string,
): Promise<string | null> {
  if (!isPlainText(id)) return null;
  const byRequest = await contestOf(database.read, contestTexts, kid, id);
  if (byRequest) return byRequest.contestId;
  const byId = await findContest(database.read, contestTexts, id);
  return byId?.kid === kid ? byId.contestId : null;
}
