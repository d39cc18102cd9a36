import type { Knex } from 'knex';
import { commitVerdict } from '../ledger/commitment.ts';
import { impersonalEntry } from '../ledger/entries.ts';
import { sealedBody } from '../ledger/sealed-root.ts';
import { HOUR, MINUTE } from '../lib/clock.ts';
import type { Database } from './db.ts';
import { appendOne } from './ledger-append.ts';

/**
 * Every hour's verdicts are sealed into the tenant's log by one root over their commitments, so that a changed or
 * missing one is noticed. An erased verdict leaves its commitment, and the root still holds.
 */

/** A batch that was stamped before the hour ended may commit a little later. */
const LATE_MS = 2 * MINUTE;

interface Commitment {
  readonly request_id: string;
  readonly decided_at: number;
  readonly commitment: string;
}

async function commitmentsOf(db: Knex, kid: string, hour: number): Promise<readonly Commitment[]> {
  const columns = ['request_id', 'decided_at', 'commitment'] as const;
  const within = (table: string) =>
    db(table)
      .where({ kid })
      .where('decided_at', '>=', hour)
      .where('decided_at', '<', hour + HOUR)
      .select<Commitment[]>(...columns);
  const rows = [...(await within('decisions')), ...(await within('erased_verdicts'))];
  return rows.sort((a, b) => (a.request_id < b.request_id ? -1 : 1));
}

/** The oldest hour that is over, has verdicts and is not sealed. */
async function nextHour(database: Database, kid: string, now: number): Promise<number | null> {
  const sealed = await database
    .read('verdict_seals')
    .where({ kid })
    .max<{ hour: number | null }[]>({ hour: 'hour' })
    .first();
  const from = sealed?.hour == null ? 0 : Number(sealed.hour) + HOUR;
  const oldest = await database
    .read('decisions')
    .where({ kid })
    .where('decided_at', '>=', from)
    .min<{ at: number | null }[]>({ at: 'decided_at' })
    .first();
  if (oldest?.at == null) return null;
  const hour = Math.floor(Number(oldest.at) / HOUR) * HOUR;
  return hour + HOUR + LATE_MS <= now ? hour : null;
}

async function sealHour(database: Database, kid: string, hour: number, now: number): Promise<void> {
  await database.transaction(async (tx) => {
    const commitments = await commitmentsOf(tx, kid, hour);
    const body = sealedBody(
      hour,
      hour + HOUR,
      commitments.map((row) => row.commitment),
    );
    const row = { kid, hour, seq: -1, count: body.count, root: body.root };
    const won = await tx('verdict_seals').insert(row).onConflict(['kid', 'hour']).ignore().returning('hour');
    // Another node sealed it.
    if (won.length === 0) return;
    const entry = impersonalEntry({ type: 'verdicts.sealed', at: now, purpose: null }, { ...body });
    const { seq } = await appendOne(tx, kid, entry);
    await tx('verdict_seals').where({ kid, hour }).update({ seq });
  });
}

/** Seals every hour that is over. Returns how many. Off the hot path, safe on many nodes. */
export async function sealVerdicts(database: Database, kid: string, now: number): Promise<number> {
  let count = 0;
  for (;;) {
    const hour = await nextHour(database, kid, now);
    if (hour === null) return count;
    await sealHour(database, kid, hour, now);
    count += 1;
  }
}

interface DecisionRow {
  readonly request_id: string;
  readonly verdict: string;
  readonly salt: string;
  readonly commitment: string;
}

async function changedVerdicts(database: Database, kid: string, hour: number): Promise<string[]> {
  const rows = await database
    .read('decisions')
    .where({ kid })
    .where('decided_at', '>=', hour)
    .where('decided_at', '<', hour + HOUR)
    .select<DecisionRow[]>('request_id', 'verdict', 'salt', 'commitment');
  return rows
    .filter(({ request_id, verdict, salt, commitment }) => {
      return commitVerdict(Buffer.from(salt, 'base64url'), kid, request_id, verdict) !== commitment;
    })
    .map((row) => `verdict ${row.request_id} was changed`);
}

/** Holds every sealed hour against the verdicts that are there. Problems in words; the log itself is checked apart. */
export async function checkSeals(database: Database, kid: string): Promise<readonly string[]> {
  const seals = await database
    .read('verdict_seals')
    .where({ kid })
    .orderBy('hour')
    .select<{ hour: number; seq: number; count: number; root: string }[]>('hour', 'seq', 'count', 'root');
  const problems: string[] = [];
  for (const { hour, seq, count, root } of seals) {
    const at = new Date(Number(hour)).toISOString();
    const commitments = await commitmentsOf(database.read, kid, Number(hour));
    const body = sealedBody(
      Number(hour),
      Number(hour) + HOUR,
      commitments.map((row) => row.commitment),
    );
    const entry = await database
      .read('ledger_entries')
      .where({ kid, seq })
      .first<{ entry: string } | undefined>('entry');
    if (!entry?.entry.includes(JSON.stringify(root)))
      problems.push(`the seal of ${at} is not the one in the log`);
    if (body.root !== root) {
      const missing = count - body.count;
      problems.push(
        missing > 0
          ? `${missing} of ${count} verdicts of ${at} are missing`
          : `the verdicts of ${at} are not the sealed ones`,
      );
    }
    problems.push(...(await changedVerdicts(database, kid, Number(hour))));
  }
  return problems;
}
