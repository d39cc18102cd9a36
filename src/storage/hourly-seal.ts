import type { Knex } from 'knex';
import { impersonalEntry } from '../ledger/entries.ts';
import { sealedBody } from '../ledger/sealed-root.ts';
import { HOUR, MINUTE } from '../lib/clock.ts';
import type { Database } from './db.ts';
import { appendOne, lockHead } from './ledger-append.ts';

/**
 * Every hour's rows of a table are sealed into the tenant's log by one root over their commitments, so that a changed or
 * missing one is noticed.
 */
export interface SealedTable {
  readonly type: 'verdicts.sealed' | 'audit.sealed';
  readonly rows: 'decisions' | 'audit_log';
  /** The column of `rows` with the moment in epoch milliseconds. */
  readonly at: 'decided_at' | 'at';
  readonly seals: 'verdict_seals' | 'audit_seals';
  /** What one row is called when something is wrong. */
  readonly noun: string;
  /** The commitments of an hour in their order. */
  readonly commitments: (db: Knex, kid: string, hour: number) => Promise<readonly string[]>;
}

/** A batch that was stamped before the hour ended may commit a little later. */
const LATE_MS = 2 * MINUTE;

/** The oldest hour that is over, has rows and is not sealed. */
export async function nextHour(
  database: Database,
  table: SealedTable,
  kid: string,
  now: number,
): Promise<number | null> {
  const sealed = await database
    .read(table.seals)
    .where({ kid })
    .max<{ hour: number | null }[]>({ hour: 'hour' })
    .first();
  const from = sealed?.hour == null ? 0 : Number(sealed.hour) + HOUR;
  const oldest = await database
    .read(table.rows)
    .where({ kid })
    .where(table.at, '>=', from)
    .min<{ at: number | null }[]>({ at: table.at })
    .first();
  if (oldest?.at == null) return null;
  const hour = Math.floor(Number(oldest.at) / HOUR) * HOUR;
  return hour + HOUR + LATE_MS <= now ? hour : null;
}

async function sealHour(
  database: Database,
  table: SealedTable,
  kid: string,
  hour: number,
  now: number,
): Promise<void> {
  await database.transaction(async (tx) => {
    // First of all: an erasure takes this lock too, and must find the hour sealed or not sealed.
    await lockHead(tx, kid);
    const body = sealedBody(hour, hour + HOUR, await table.commitments(tx, kid, hour));
    const row = { kid, hour, seq: -1, count: body.count, root: body.root };
    const won = await tx(table.seals).insert(row).onConflict(['kid', 'hour']).ignore().returning('hour');
    // Another node sealed it.
    if (won.length === 0) return;
    const entry = impersonalEntry({ type: table.type, at: now, purpose: null }, { ...body });
    const { seq } = await appendOne(tx, kid, entry);
    await tx(table.seals).where({ kid, hour }).update({ seq });
  });
}

/** Seals every hour that is over. Returns how many. Off the hot path, safe on many nodes. */
export async function sealHours(
  database: Database,
  table: SealedTable,
  kid: string,
  now: number,
): Promise<number> {
  let count = 0;
  for (;;) {
    const hour = await nextHour(database, table, kid, now);
    if (hour === null) return count;
    await sealHour(database, table, kid, hour, now);
    count += 1;
  }
}

/** Holds every sealed hour against the rows that are there. Problems in words; the log itself is checked apart. */
export async function checkHours(
  database: Database,
  table: SealedTable,
  kid: string,
): Promise<readonly string[]> {
  const seals = await database
    .read(table.seals)
    .where({ kid })
    .orderBy('hour')
    .select<{ hour: number; seq: number; count: number; root: string }[]>('hour', 'seq', 'count', 'root');
  const problems: string[] = [];
  for (const { hour, seq, count, root } of seals) {
    const at = new Date(Number(hour)).toISOString();
    const commitments = await table.commitments(database.read, kid, Number(hour));
    const body = sealedBody(Number(hour), Number(hour) + HOUR, commitments);
    const entry = await database
      .read('ledger_entries')
      .where({ kid, seq })
      .first<{ entry: string } | undefined>('entry');
    if (!entry?.entry.includes(JSON.stringify(root)))
      problems.push(`the seal of ${at} is not the one in the log`);
    if (body.root === root) continue;
    const missing = count - body.count;
    problems.push(
      missing > 0
        ? `${missing} of ${count} ${table.noun} of ${at} are missing`
        : `the ${table.noun} of ${at} are not the sealed ones`,
    );
  }
  return problems;
}
