import type { Database } from '../db/db.ts';
import { cellOf, type HotTransaction, runHot } from '../db/sql.ts';
import { inChunks } from '../lib/chunks.ts';
import { unmarked } from './erasing-store.ts';
import type { RecordEntry } from './ports.ts';

/** What a later bundle of the same session supersedes. */

/** One that was erased meanwhile, or superseded already, is left alone. */
export async function writeUpdates(tx: HotTransaction, entries: readonly RecordEntry[]): Promise<void> {
  for (const { kid, after, verdict } of entries) {
    if (after === undefined) continue;
    await runHot(
      tx,
      `INSERT INTO decision_updates (kid, earlier, request_id)
        SELECT kid, request_id, ? FROM decisions WHERE kid = ? AND request_id = ? ON CONFLICT DO NOTHING`,
      [verdict.requestId, kid, after],
    );
  }
}

export async function supersededBy({ read }: Database, kid: string, requestId: string) {
  const rows = read('decision_updates').where({ kid, earlier: requestId });
  return (await cellOf<string>(unmarked(rows, 'decision_updates'), 'request_id')) ?? null;
}

type Link = Readonly<Record<'earlier' | 'request_id', string>>;

/** These requests with all others of their sessions: one person's, whichever of them is shown. */
export async function withUpdates({ read }: Database, kid: string, requests: readonly string[]) {
  const found = new Set(requests);
  for (let edge = [...requests]; edge.length > 0; ) {
    const next: string[] = [];
    await inChunks(edge, async (ids) => {
      const rows = read('decision_updates').where({ kid });
      const either = rows.where((row) => {
        row.whereIn('earlier', ids).orWhereIn('request_id', ids);
      });
      const links: Link[] = await either.select('earlier', 'request_id');
      next.push(...links.flatMap((link) => [link.earlier, link.request_id]));
    });
    edge = next.filter((id) => !found.has(id));
    for (const id of edge) found.add(id);
  }
  return [...found];
}
