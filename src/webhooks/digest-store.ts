import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { rowsOf } from '../db/sql.ts';
import { DIGEST_LANE } from './mail.ts';
import type { Due } from './store.ts';

/** Mails that wait to become one. */

const MAX_ITEMS = 500;

/** Claims this tenant's rows for the digest: each row goes to one node only. */
export async function takeDigest(tx: Knex.Transaction, kid: string, before: number) {
  const sql = `DELETE FROM webhook_outbox WHERE seq IN
    (SELECT seq FROM webhook_outbox WHERE kid = ? AND webhook = ? AND state = 'waiting' AND next_at < ?
      ORDER BY seq LIMIT ?)
    RETURNING event, sealed`;
  return rowsOf<Pick<Due, 'event' | 'sealed'>>(await tx.raw(sql, [kid, DIGEST_LANE, before, MAX_ITEMS]));
}

export async function hasDigest({ read }: Database, kid: string, before: number): Promise<boolean> {
  const some = read('webhook_outbox').where({ kid, webhook: DIGEST_LANE, state: 'waiting' });
  return (await some.where('next_at', '<', before).first<object | undefined>('seq')) !== undefined;
}
