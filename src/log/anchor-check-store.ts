import type { Knex } from 'knex';
import { anchoredTo as readAnchoredTo } from '../audit/audit-store.ts';
import type { Database } from '../db/engine.ts';
import { cellOf } from '../db/sql.ts';
import { HOUR, isoTime } from '../lib/clock.ts';
import { type AnchoredTable, AUDIT, bodyOf, VERDICTS } from './anchors-store.ts';
import { type LogHead, textsSince } from './entries-store.ts';
import { type AnchoredHour, type Expired, expiredBy, type Fold, floorHour, parseStored } from './fold.ts';
import type { Problems } from './problems.ts';

/**
 * Compares the anchored hours of a log with the rows that they cover. It trusts the log's entries, not the
 * anchor tables.
 */

/** The retention recorded since the log was walked: retention records it before it deletes. */
async function expiredSince(tx: Knex, kid: string, from: number, before: Expired): Promise<Expired> {
  return (await textsSince(tx, kid, from))
    .map(parseStored)
    .filter(({ type }) => type === 'retention.applied')
    .reduce((expired, entry) => expiredBy(entry, expired), before);
}

interface Checked {
  readonly database: Database;
  readonly table: AnchoredTable;
  readonly kid: string;
  /** The number of entries that were walked. */
  readonly size: number;
  /** With these entries: what is anchored later has its entry behind them. */
  readonly anchoredTo: LogHead['anchoredTo'];
  readonly expired: Expired;
  readonly problems: Problems;
}

const expiryOf = ({ table, expired }: Pick<Checked, 'table' | 'expired'>): number =>
  table === VERDICTS ? expired.verdicts : expired.audit;

/** Runs in one snapshot, so that an erasure or a retention meanwhile does not look like tampering. */
async function checkHour(checked: Checked, hour: number, entry: AnchoredHour): Promise<void> {
  const { database, table, kid, size, problems } = checked;
  const found = await database.snapshot(async (tx) => {
    const anchors = tx(table.anchors).where({ kid, hour });
    const anchor = await anchors.first<{ count: number; root: string } | undefined>('count', 'root');
    const { commitments } = await table.read(tx, kid, hour);
    const expired = await expiredSince(tx, kid, size, checked.expired);
    const isLogRemoved = !(await tx('ledger_heads').where({ kid }).first('kid'));
    return { anchor, commitments, over: isLogRemoved || hour < expiryOf({ table, expired }) };
  });
  if (found.over) return;
  const at = isoTime(hour);
  const { anchor, commitments } = found;
  const { seq } = entry;
  if (!anchor) problems.add('seal-missing', `the anchor of the ${table.noun} of ${at} is missing`, seq);
  else if (anchor.root !== entry.root || Number(anchor.count) !== entry.count)
    problems.add('seal-changed', `the anchor of the ${table.noun} of ${at} is not the one in the log`, seq);
  const body = await bodyOf(hour, commitments);
  const missing = entry.count - body.count;
  if (missing > 0)
    problems.add('rows-missing', `${missing} of ${entry.count} ${table.noun} of ${at} are missing`, seq);
  else if (missing < 0)
    problems.add('rows-added', `${-missing} ${table.noun} of ${at} were added to ${entry.count}`, seq);
  else if (body.root !== entry.root)
    problems.add('seal-changed', `the ${table.noun} of ${at} differ from the anchored ones`, seq);
  for await (const problem of table.changed(database, kid, hour)) problems.add('seal-changed', problem, seq);
}

/** Finds rows between two anchored hours: there were none when the later hour was anchored. */
async function checkGaps(checked: Checked, hours: readonly number[]): Promise<void> {
  const { database, table, kid, problems } = checked;
  // A log that was removed meanwhile is anchored to 0.
  const present = await readAnchoredTo(database.read, table.anchoredTo, kid);
  const ends = [...hours, Math.min(checked.anchoredTo[table.anchoredTo], present)];
  let from = expiryOf(checked);
  for (const to of ends) {
    if (to > from) {
      const rows = database.read(table.rows).where({ kid }).where(table.at, '>=', from);
      const at = await cellOf<number>(rows.where(table.at, '<', to), table.at);
      if (at !== undefined) {
        const hour = isoTime(floorHour(Number(at)));
        problems.add('rows-added', `there are ${table.noun} of ${hour}, which was anchored without any`);
      }
    }
    from = Math.max(from, to + HOUR);
  }
}

export async function checkAnchoredHours(
  database: Database,
  kid: string,
  { size, anchoredTo }: Pick<LogHead, 'size' | 'anchoredTo'>,
  fold: Fold,
  problems: Problems,
): Promise<void> {
  for (const [table, anchored] of [
    [VERDICTS, fold.verdicts],
    [AUDIT, fold.audit],
  ] as const) {
    const checked = { database, table, kid, size, anchoredTo, expired: fold.expired, problems };
    const hours = [...anchored].filter(([hour]) => hour >= expiryOf(checked)).sort(([a], [b]) => a - b);
    for (const [hour, entry] of hours) await checkHour(checked, hour, entry);
    await checkGaps(
      checked,
      hours.map(([hour]) => hour),
    );
  }
}
