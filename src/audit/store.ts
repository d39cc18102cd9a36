import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { lockTenant, REMOVING } from '../db/meta-store.ts';
import { cellOf } from '../db/sql.ts';
import { commitAudit } from '../ledger/entries.ts';
import type { Act, InstallationAct } from '../lib/act.ts';
import type { Json } from '../lib/json.ts';
import {
  type AuditAction,
  type AuditEvent,
  type AuditFields,
  type AuditFilter,
  type AuditRow,
  auditText,
} from './audit.ts';

/** Columns of `ledger_heads`: the end of the anchored hours of verdicts and of the audit log. */
export type AnchoredTo = 'verdicts_sealed_to' | 'audit_sealed_to';

/** The end of the last anchored hour; 0 also without a log. */
export async function anchoredTo(db: Knex, column: AnchoredTo, kid: string): Promise<number> {
  return (await cellOf<number>(db('ledger_heads').where({ kid }), column)) ?? 0;
}

const SALT_BYTES = 16;

/** One row, in the transaction of the change that it records. */
export async function writeAudit(tx: Knex.Transaction, event: AuditEvent): Promise<void> {
  const { kid, actor, action, object } = event;
  await lockTenant(tx, kid);
  // An append-only log continues after its anchored hours, even if the clock was set back.
  const at = Math.max(event.at, await anchoredTo(tx, 'audit_sealed_to', kid));
  const row = {
    at,
    role: actor.role,
    actor: actor.ref,
    action,
    object,
    detail: JSON.stringify(event.detail),
  };
  const salt = randomBytes(SALT_BYTES);
  const commitment = commitAudit(salt, kid, auditText(row));
  await tx('audit_log').insert({ kid, ...row, salt: salt.toString('base64url'), commitment });
}

/** Records an action that changed nothing else, such as an export. */
export function recordAudit(database: Database, event: AuditEvent): Promise<void> {
  return database.transaction((tx) => writeAudit(tx, event));
}

type Detail = Readonly<Record<string, Json>>;

/** Records an act of an operator or of gpd, in the transaction of its change. */
export function writeAct(tx: Knex.Transaction, kid: string, act: Act, action: AuditAction, detail: Detail) {
  const { role, ref, at, apiKey } = act;
  const by = apiKey === undefined ? {} : { apiKey };
  return writeAudit(tx, {
    kid,
    at,
    actor: { role, ref },
    action,
    object: null,
    detail: { ...detail, ...by },
  });
}

/** Writes one row per tenant that is not being removed: an act on the installation concerns each. */
export async function writeActForAll(
  tx: Knex.Transaction,
  by: InstallationAct,
  action: AuditAction,
  detail: Detail,
): Promise<void> {
  const kids = (await tx('tenants').where('revision', '>', REMOVING).orderBy('kid').pluck('kid')) as string[];
  for (const kid of kids) {
    const actor = by.actorOf(kid);
    if (actor) await writeAct(tx, kid, { ...actor, at: by.at }, action, detail);
  }
}

export async function listAudit(database: Database, kid: string, filter: AuditFilter, limit: number) {
  const query = database.read('audit_log').where({ kid });
  for (const name of ['action', 'role', 'actor', 'object'] as const) {
    const value = filter[name];
    if (value !== undefined) query.where(name, value);
  }
  if (filter.from !== undefined) query.where('at', '>=', filter.from);
  if (filter.to !== undefined) query.where('at', '<', filter.to);
  if (filter.before !== undefined) query.where('seq', '<', filter.before);
  const columns = ['seq', 'at', 'role', 'actor', 'action', 'object', 'detail'];
  const rows = (await query.orderBy('seq', 'desc').limit(limit).select(columns)) as (AuditFields &
    Pick<AuditRow, 'seq'>)[];
  return rows.map((row) => ({
    ...row,
    seq: Number(row.seq),
    at: Number(row.at),
    detail: JSON.parse(row.detail) as Record<string, unknown>,
  }));
}
