import type { Knex } from 'knex';
import { writeAct } from '../audit/store.ts';
import type { Database } from '../db/db.ts';
import { bumpTenant } from '../db/meta-store.ts';
import { remove } from '../db/purge.ts';
import {
  type Bindings,
  insertMany,
  isTrue,
  lockClause,
  pagesOf,
  rowsOf,
  runAsked,
  type Transaction,
} from '../db/sql.ts';
import type { Act } from '../lib/act.ts';
import { type Columns, fromColumns, toColumns } from '../lib/collections.ts';
import type { WebhookEvent } from '../schema/webhooks.ts';
import { DIGEST_LANE, MAIL_LANE } from './mail.ts';

export interface Webhook {
  readonly kid: string;
  readonly id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  /** The operator vouches for a target inside the perimeter. */
  readonly allowPrivate: boolean;
  readonly wrappedSecret: string;
  readonly createdAt: number;
}

export type WebhookRow = Columns<Omit<Webhook, 'events' | 'allowPrivate'>> & {
  readonly events: string;
  readonly allow_private: unknown;
};

export const rowToWebhook = (row: WebhookRow): Webhook =>
  fromColumns<Webhook>({
    ...row,
    events: JSON.parse(row.events) as WebhookEvent[],
    allow_private: isTrue(row.allow_private),
  });

export async function listWebhooks(database: Database, kid?: string): Promise<readonly Webhook[]> {
  const query = database.read<WebhookRow>('webhooks').orderBy(['kid', 'created_at']);
  const rows = await (kid === undefined ? query : query.where({ kid }));
  return rows.map(rowToWebhook);
}

/** @returns whether there is such a tenant */
export function insertWebhook(database: Database, webhook: Webhook, by: Act): Promise<boolean> {
  const { kid, id, url, events } = webhook;
  return database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid))) return false;
    await tx('webhooks').insert(toColumns({ ...webhook, events: JSON.stringify(events) }));
    // Its path may hold a secret of the target.
    await writeAct(tx, kid, by, 'webhook.added', { id, host: new URL(url).host, events: [...events] });
    return true;
  });
}

/** Its waiting events go with it. @returns whether there was one */
export function removeWebhook(database: Database, kid: string, id: string, by: Act): Promise<boolean> {
  return database.transaction(async (tx) => {
    await bumpTenant(tx, kid);
    await tx('webhook_outbox').where({ kid, webhook: id }).delete();
    const removed = (await tx('webhooks').where({ kid, id }).delete()) === 1;
    if (removed) await writeAct(tx, kid, by, 'webhook.removed', { id });
    return removed;
  });
}

/** An event on its way into the outbox, in the transaction of the change that it reports. */
export interface OutboxEntry {
  readonly kid: string;
  readonly webhook: string;
  readonly event: WebhookEvent;
  /** The decision that it reports; its payload is read when it is sent. */
  readonly requestId: string | null;
  /** Whose it is, by keyed reference, so that an erasure finds it. */
  readonly principal: string | null;
  /** The payload under the tenant's key, where nothing else holds it. */
  readonly sealed: string | null;
  readonly at: number;
}

export async function enqueue(tx: Transaction, entries: readonly OutboxEntry[]): Promise<void> {
  const rows = entries.map(({ kid, webhook, event, requestId, principal, sealed, at }): Bindings => {
    return [kid, webhook, event, requestId, principal, sealed, at, 'waiting', 0, at];
  });
  const head =
    'INSERT INTO webhook_outbox (kid, webhook, event, request_id, principal, sealed, created_at, state, attempts, next_at)';
  await insertMany(tx, head, rows);
}

export type Due = Columns<Omit<OutboxEntry, 'principal' | 'at'>> &
  Readonly<Record<'seq' | 'created_at' | 'attempts', number>>;

/** A webhook's events: they wait for nobody else's. */
export type Lane = Pick<OutboxEntry, 'kid' | 'webhook'>;

const waits = (kid: string, lane: string): string => `EXISTS (SELECT 1 FROM webhook_outbox AS event
  WHERE event.kid = ${kid} AND event.webhook = ${lane} AND event.state = 'waiting' AND event.next_at <= ?
    AND event.leased_until <= ?)`;
const DUE_WEBHOOKS = `SELECT kid, id AS webhook FROM webhooks WHERE ${waits('webhooks.kid', 'webhooks.id')}`;
const DUE_MAILS = `SELECT kid, '${MAIL_LANE}' AS webhook FROM tenants WHERE ${waits('tenants.kid', `'${MAIL_LANE}'`)}`;

/** The webhooks that have something to send, and the mail of tenants where there is a relay. */
export async function dueLanes({ read }: Database, now: number, mail: boolean): Promise<readonly Lane[]> {
  if (!mail) return rowsOf<Lane>(await read.raw(DUE_WEBHOOKS, [now, now]));
  return rowsOf<Lane>(await read.raw(`${DUE_WEBHOOKS} UNION ALL ${DUE_MAILS}`, Array(4).fill(now)));
}

const LEASE_MS = 60_000;

/** Takes what is due in these lanes, for a minute: another node takes it again if this one dies. No index has what this changes. */
export function takeDue(
  database: Database,
  now: number,
  lanes: readonly (Lane & { readonly limit: number })[],
): Promise<readonly Due[]> {
  const skip = lockClause(database.read, 'FOR UPDATE SKIP LOCKED');
  const sql = `UPDATE webhook_outbox SET leased_until = ?, attempts = attempts + 1 WHERE seq IN
    (SELECT seq FROM webhook_outbox
      WHERE kid = ? AND webhook = ? AND state = 'waiting' AND next_at <= ? AND leased_until <= ?
      ORDER BY next_at, seq LIMIT ? ${skip})
    RETURNING seq, kid, webhook, event, request_id, sealed, created_at, attempts`;
  return database.transaction(async (tx) => {
    const taken: Due[] = [];
    for (const { kid, webhook, limit } of lanes)
      taken.push(...rowsOf<Due>(await tx.raw(sql, [now + LEASE_MS, kid, webhook, now, now, limit])));
    return taken;
  });
}

const MAX_FAILED_AT_ONCE = 1000;

/** Gives up on what has been due since `before`. */
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
  readonly nextAt: number;
  readonly state: 'delivered' | 'waiting' | 'failed';
  readonly failure: string | null;
}

const ATTEMPT = { seq: 'bigint', state: 'text', next_at: 'bigint', failure: 'text' } as const;

/** A delivered event leaves the row without its payload, for `webhooks replay` of decisions and for counting. */
export async function recordAttempts(database: Database, attempts: readonly Attempt[]): Promise<void> {
  const rows = attempts.map(({ seq, state, nextAt, failure }): Bindings => [seq, state, nextAt, failure]);
  const sql = `UPDATE webhook_outbox SET state = q.state, next_at = q.next_at, leased_until = 0, failure = q.failure,
    sealed = CASE q.state WHEN 'delivered' THEN NULL ELSE sealed END FROM q WHERE webhook_outbox.seq = q.seq`;
  await database.transaction((tx) => runAsked(tx, { columns: ATTEMPT, rows, sql }));
}

/** Sends again from `from` on what still can be sent. Returns how many. */
export async function replayFrom(
  database: Database,
  kid: string,
  webhook: string,
  from: number,
  now: number,
): Promise<number> {
  return database.transaction((tx) =>
    tx('webhook_outbox')
      .where({ kid, webhook })
      .where('seq', '>=', from)
      .whereRaw('(request_id IS NOT NULL OR sealed IS NOT NULL)')
      .update({ state: 'waiting', attempts: 0, next_at: now, leased_until: 0, failure: null }),
  );
}

const PAGE = 2000;

/** An event that a node enqueued after its webhook was removed has none. */
const IS_SETTLED = `(state IN ('delivered', 'failed') OR NOT EXISTS (SELECT 1 FROM webhooks
  WHERE webhooks.kid = webhook_outbox.kid AND webhooks.id = webhook_outbox.webhook))`;

/** Events come in the order of their time, near enough: the walk ends at the first page that is too young. */
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

export async function countOutbox(database: Database, kid: string) {
  return (await database
    .read('webhook_outbox')
    .where({ kid })
    .groupBy('webhook', 'state')
    .select('webhook', 'state')
    .count({ count: '*' })) as { webhook: string; state: string; count: number }[];
}

/** Mails that wait to become one. */

/** Claims all of this tenant's rows for the digest, the oldest first: each row goes to one node only. */
export async function takeDigest(tx: Knex.Transaction, kid: string, before: number) {
  const sql = `DELETE FROM webhook_outbox WHERE kid = ? AND webhook = ? AND state = 'waiting' AND next_at < ?
    RETURNING seq, event, sealed`;
  const rows = rowsOf<Pick<Due, 'seq' | 'event' | 'sealed'>>(await tx.raw(sql, [kid, DIGEST_LANE, before]));
  return [...rows].sort((one, other) => Number(one.seq) - Number(other.seq));
}

export async function hasDigest({ read }: Database, kid: string, before: number): Promise<boolean> {
  const some = read('webhook_outbox').where({ kid, webhook: DIGEST_LANE, state: 'waiting' });
  return (await some.where('next_at', '<', before).first<object | undefined>('seq')) !== undefined;
}
