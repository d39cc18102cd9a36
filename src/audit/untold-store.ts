import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import type { ActorRole } from '../lib/act.ts';
import type { AuditAction } from './audit-store.ts';

/**
 * Rows of acts that weakened a safeguard, until gpd wrote of them to staff. The mark is set in the
 * transaction of the act, so it makes no difference where the act was done.
 */

/** An act as the audit log has it: keyed references and closed words, no address of anybody. */
export interface SafeguardAct {
  readonly at: number;
  readonly role: ActorRole;
  readonly action: AuditAction;
  readonly detail: Readonly<Record<string, unknown>>;
}

type MarkedRow = Omit<SafeguardAct, 'detail'> & { readonly seq: number; readonly detail: string };

const markedRows = (db: Knex, kid: string) => db('audit_log').where({ kid, unsent: 1 });

export const hasUntoldActs = async ({ read }: Database, kid: string): Promise<boolean> =>
  (await markedRows(read, kid).first('seq')) !== undefined;

/** Rows of one transaction; the next minute has the rest. */
const MAX_ROWS = 200;

/** Removes the marks, so that no other node tells the same acts. @returns the acts, oldest first */
export async function takeUntoldActs(tx: Knex.Transaction, kid: string): Promise<readonly SafeguardAct[]> {
  const oldest = markedRows(tx, kid).orderBy('seq').limit(MAX_ROWS).select('seq');
  const rows = (await markedRows(tx, kid)
    .whereIn('seq', oldest)
    .update({ unsent: 0 })
    .returning(['seq', 'at', 'role', 'action', 'detail'])) as MarkedRow[];
  return rows
    .toSorted((a, b) => Number(a.seq) - Number(b.seq))
    .map(({ at, role, action, detail }) => {
      return { at: Number(at), role, action, detail: JSON.parse(detail) as SafeguardAct['detail'] };
    });
}
