import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { remove } from '../db/purge.ts';
import {
  type Bindings,
  type Columns,
  insertMany,
  lockClause,
  pagesOf,
  rowsOf,
  runAsked,
  type Transaction,
} from '../db/sql.ts';
import { HOUR } from '../lib/clock.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';

/** The outbox of webhooks and mail. A row names its lane: the id of its webhook, or one of these. */

/** Mails to people: each is sent separately. */
export const MAIL_LANE = 'mail';
/**
 * Mails to staff: one lane per address, by keyed reference. All due notices of a lane become one mail, then
 * the lane rests.
 */
export const STAFF_LANES = 'mail:';
const REST_MS = HOUR;
export const isStaffLane = ({ webhook }: Pick<OutboxEntry, 'webhook'>): boolean =>
  webhook.startsWith(STAFF_LANES);

/** Events that become mails alone. */
export type MailEvent = 'safeguard.weakened' | 'complaint.acknowledged';
export type OutboxEvent = WebhookEvent | MailEvent;

/** A new event, written in the transaction of the change that it reports. */
export interface OutboxEntry {
  readonly kid: string;
  readonly webhook: string;
  readonly event: OutboxEvent;
  /** The decision that it reports; its payload is read when it is sent. */
  readonly requestId: string | null;
  /** The person's keyed reference, so that an erasure finds the row. */
  readonly principal: string | null;
  /** The payload, encrypted with the tenant's key; null where another row has it. */
  readonly ciphertext: string | null;
  readonly at: number;
}

export async function enqueue(tx: Transaction, entries: readonly OutboxEntry[]): Promise<void> {
  const rows = entries.map(({ kid, webhook, event, requestId, principal, ciphertext, at }): Bindings => {
    return [kid, webhook, event, requestId, principal, ciphertext, at, 'waiting', 0, at];
  });
  const head =
    'INSERT INTO webhook_outbox (kid, webhook, event, request_id, principal, sealed, created_at, state, attempts, next_at)';
  await insertMany(tx, head, rows);
}

export type Due = Columns<Omit<OutboxEntry, 'principal' | 'ciphertext' | 'at'>> &
  Readonly<Record<'sealed', OutboxEntry['ciphertext']>> &
  Readonly<Record<'seq' | 'created_at' | 'attempts', number>>;

/** The events of one webhook or addressee. They wait only for each other. */
export type Lane = Pick<OutboxEntry, 'kid' | 'webhook'>;

const hasDueEvent = (kid: string, lane: string): string => `EXISTS (SELECT 1 FROM webhook_outbox AS event
  WHERE event.kid = ${kid} AND event.webhook = ${lane} AND event.state = 'waiting' AND event.next_at <= ?
    AND event.leased_until <= ?)`;
/** No mail is on its way to the addressee, and the last one is an hour old. */
const isRested = (kid: string, lane: string): string => `NOT EXISTS (SELECT 1 FROM webhook_outbox AS event
  WHERE event.kid = ${kid} AND event.webhook = ${lane} AND event.state = 'waiting' AND event.leased_until > ?)
  AND NOT EXISTS (SELECT 1 FROM webhook_outbox AS event
  WHERE event.kid = ${kid} AND event.principal = ${lane} AND event.next_at > ?)`;
const DUE_WEBHOOKS = `SELECT kid, id AS webhook FROM webhooks WHERE ${hasDueEvent('webhooks.kid', 'webhooks.id')}`;
const DUE_MAILS = `SELECT kid, '${MAIL_LANE}' AS webhook FROM tenants WHERE ${hasDueEvent('tenants.kid', `'${MAIL_LANE}'`)}`;
const DUE_STAFF = `SELECT q.kid AS kid, q.webhook AS webhook FROM q
  WHERE ${hasDueEvent('q.kid', 'q.webhook')} AND ${isRested('q.kid', 'q.webhook')}`;

/**
 * Webhooks with due events; with a relay also the mails to people and staff.
 * @param staff null: no relay is configured
 */
export async function dueLanes(
  { read }: Database,
  now: number,
  staff: readonly Lane[] | null,
): Promise<readonly Lane[]> {
  if (!staff) return rowsOf<Lane>(await read.raw(DUE_WEBHOOKS, [now, now]));
  const due = rowsOf<Lane>(await read.raw(`${DUE_WEBHOOKS} UNION ALL ${DUE_MAILS}`, Array(4).fill(now)));
  if (staff.length === 0) return due;
  const rows = staff.map(({ kid, webhook }): Bindings => [kid, webhook]);
  const query = { columns: { kid: 'text', webhook: 'text' }, rows, sql: DUE_STAFF } as const;
  return [...due, ...(await runAsked<Lane>(read, query, ...Array<number>(4).fill(now)))];
}

const LEASE_MS = 60_000;

/**
 * Takes due rows of these lanes for a minute: if this node dies, another takes them again. The changed
 * columns are in no index.
 */
export function takeDue(
  database: Database,
  now: number,
  lanes: readonly (Lane & { readonly limit: number })[],
): Promise<readonly Due[]> {
  const isPostgres = database.kind === 'postgres';
  const take = (
    condition: string,
  ): string => `UPDATE webhook_outbox SET leased_until = ?, attempts = attempts + 1
    WHERE seq IN (SELECT seq FROM webhook_outbox
      WHERE kid = ? AND webhook = ? AND state = 'waiting' AND next_at <= ? AND leased_until <= ? ${condition}
      ORDER BY next_at, seq LIMIT ? ${lockClause(database.read, 'FOR UPDATE SKIP LOCKED')})
    RETURNING seq, kid, webhook, event, request_id, sealed, created_at, attempts`;
  const rested = `AND ${isRested('webhook_outbox.kid', 'webhook_outbox.webhook')}`;
  return database.transaction(async (tx) => {
    const dueRows: Due[] = [];
    for (const lane of lanes) {
      const { kid, webhook, limit } = lane;
      const isStaff = isStaffLane(lane);
      const sql = isStaff ? take(rested) : take('');
      const bindings = [now + LEASE_MS, kid, webhook, now, now, ...(isStaff ? [now, now] : []), limit];
      // One node at a time: the next node must see the lane as busy once this one has committed.
      if (isStaff && isPostgres)
        await tx.raw('SELECT kid FROM tenants WHERE kid = ? FOR NO KEY UPDATE', [kid]);
      dueRows.push(...rowsOf<Due>(await tx.raw(sql, bindings)));
    }
    return dueRows;
  });
}

const MAX_FAILED_AT_ONCE = 1000;

/** Gives up on rows that have been due since `before`. */
export async function failOverdue(
  database: Database,
  { kid, webhook }: Lane,
  before: number,
  failure: string,
): Promise<void> {
  await database.transaction(async (tx) => {
    const overdue = tx('webhook_outbox')
      .where({ kid, webhook, state: 'waiting' })
      .where('next_at', '<=', before)
      .where('leased_until', '<=', before)
      .limit(MAX_FAILED_AT_ONCE);
    await tx('webhook_outbox')
      .whereIn('seq', overdue.select('seq'))
      .update({ state: 'failed', next_at: 0, failure });
  });
}

export interface Attempt {
  readonly seq: number;
  /** The time of the next attempt; after a mail to staff, the end of the lane's rest. */
  readonly nextAt: number;
  readonly state: 'delivered' | 'waiting' | 'failed';
  readonly failure: string | null;
}

const ATTEMPT = { seq: 'bigint', state: 'text', next_at: 'bigint', failure: 'text' } as const;

/**
 * A delivered event keeps its row without its payload, for counting and for `webhooks replay` of decisions.
 * The row of a staff mail stays under its addressee and keeps the end of the lane's rest.
 */
export async function recordAttempts(database: Database, attempts: readonly Attempt[]): Promise<void> {
  const rows = attempts.map(({ seq, state, nextAt, failure }): Bindings => [seq, state, nextAt, failure]);
  const sql = `UPDATE webhook_outbox SET state = q.state, next_at = q.next_at, leased_until = 0, failure = q.failure,
    sealed = CASE q.state WHEN 'delivered' THEN NULL ELSE sealed END,
    principal = CASE WHEN q.state = 'delivered' AND q.next_at > 0 THEN webhook ELSE principal END
    FROM q WHERE webhook_outbox.seq = q.seq`;
  await database.transaction((tx) => runAsked(tx, { columns: ATTEMPT, rows, sql }));
}

/** The result of a delivery that arrived: after a mail to staff the lane rests. */
export const delivered = ({ seq, webhook }: Due, now: number): Attempt => ({
  seq,
  state: 'delivered',
  nextAt: isStaffLane({ webhook }) ? now + REST_MS : 0,
  failure: null,
});

/** Schedules events from `from` on again, if they can still be sent. Returns how many. */
export async function replayFrom(
  database: Database,
  kid: string,
  webhook: string,
  from: number,
  now: number,
): Promise<number> {
  const staff = webhook === MAIL_LANE ? `${STAFF_LANES}%` : '';
  return database.transaction((tx) =>
    tx('webhook_outbox')
      .where({ kid })
      .whereRaw('(webhook = ? OR webhook LIKE ?)', [webhook, staff])
      .where('seq', '>=', from)
      .whereRaw('(request_id IS NOT NULL OR sealed IS NOT NULL)')
      .update({ state: 'waiting', attempts: 0, next_at: now, leased_until: 0, failure: null }),
  );
}

const PAGE = 2000;

/** True without a webhook too: a node may have enqueued the event after its webhook was removed. */
const IS_SETTLED = `(state IN ('delivered', 'failed') OR NOT EXISTS (SELECT 1 FROM webhooks
  WHERE webhooks.kid = webhook_outbox.kid AND webhooks.id = webhook_outbox.webhook))`;

/** Events are nearly in the order of time: the walk ends at the first page that is too young. */
export async function purgeOutbox(database: Database, before: number): Promise<void> {
  const events = database.read('webhook_outbox').select('seq', 'created_at');
  for await (const page of pagesOf<Pick<Due, 'seq' | 'created_at'>>(events, ['seq'], PAGE)) {
    const last = page.findLast(({ created_at: at }) => Number(at) < before);
    if (!last) return;
    const range: [number, number] = [Number(page[0]?.seq), Number(last.seq)];
    const due = (db: Knex) =>
      db('webhook_outbox').whereBetween('seq', range).where('created_at', '<', before).whereRaw(IS_SETTLED);
    await remove(database, { table: 'webhook_outbox', key: 'seq', within: {}, due }, 'seq');
    if (last !== page.at(-1)) return;
  }
}

/** Why the newest delivery that failed did, by webhook. */
export async function lastFailures({ read }: Database, kid: string): Promise<ReadonlyMap<string, string>> {
  const newest = read('webhook_outbox').where({ kid }).whereNotNull('failure').groupBy('webhook').max('seq');
  const rows = await read('webhook_outbox')
    .whereIn('seq', newest)
    .select<{ webhook: string; failure: string }[]>('webhook', 'failure');
  return new Map(rows.map(({ webhook, failure }) => [webhook, failure]));
}

export async function countOutbox(database: Database, kid: string) {
  return (await database
    .read('webhook_outbox')
    .where({ kid })
    .groupBy('webhook', 'state')
    .select('webhook', 'state')
    .count({ count: '*' })) as { webhook: string; state: string; count: number }[];
}
