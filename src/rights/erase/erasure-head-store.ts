import type { Knex } from 'knex';
import { listAudit } from '../../audit/store.ts';
import { chainLine, NO_LINES, openLine } from '../../db/chained-line.ts';
import { raiseForgotten } from '../../db/clock-rule-store.ts';
import type { Database } from '../../db/db.ts';
import { readMeta, writeMeta } from '../../db/meta-store.ts';
import { bumpTenant } from '../../db/revision.ts';
import { isoTime } from '../../lib/clock.ts';
import { AUDIT_DAYS_MS } from '../../log/fold.ts';
import type { Scope } from './erasure.ts';
import { type Cut, firstOf, type HoldLine, type LogHead } from './erasure-chain-service.ts';

/** What the database knows of DATA_DIR/erasures.log: lines cut off its end are found by it. */

const NAME = 'erasures-head';

/** Nodes on one PostgreSQL have a log each, named by its first line; of a file that is missing whole none of them can tell. */
const nameOf = (kind: Database['kind'], first: string): string =>
  kind === 'sqlite' ? NAME : `${NAME} ${first.slice(0, 16)}`;

function open(key: Uint8Array, value: string | null): LogHead | 'changed' | null {
  if (value === null) return null;
  const opened = openLine(key, NAME, NO_LINES, value);
  return typeof opened === 'object' ? (JSON.parse(opened.body) as LogHead) : 'changed';
}

/** Null: it knows nothing. */
export async function readLogHead(
  database: Pick<Database, 'kind' | 'read'>,
  key: Uint8Array,
  lines: readonly string[],
): Promise<LogHead | 'changed' | null> {
  return open(key, await readMeta(database, nameOf(database.kind, firstOf(lines))));
}

/** Of a database that a restore makes ready. */
export const putLogHead = (tx: Knex.Transaction, key: Uint8Array, head: LogHead): Promise<void> =>
  writeMeta(tx, NAME, chainLine(key, NAME, NO_LINES, JSON.stringify(head)));

/** Never lower than it was: two appends may come to this in another order. */
export function saveLogHead(database: Database, key: Uint8Array, head: LogHead): Promise<void> {
  const name = nameOf(database.kind, head.first);
  return database.transaction(async (tx) => {
    const known = open(key, await readMeta({ read: tx }, name));
    const lines = known === null || known === 'changed' ? 0 : known.lines;
    if (lines < head.lines) await writeMeta(tx, name, chainLine(key, NAME, NO_LINES, JSON.stringify(head)));
  });
}

/** What somebody ended and an older database brings back: ended again, before the first request. */

/**
 * All sessions end: some of them had ended since. Of nonces that were used since nothing is known: older bundles are `stale`.
 */
export async function cutOff(tx: Knex.Transaction, now: number): Promise<void> {
  await tx('console_sessions').delete();
  await tx('principal_sessions').delete();
  await raiseForgotten(tx, now);
}

/** Of the tenant that the line names, not of a later tenant with the same kid. */
async function endAgain(tx: Knex.Transaction, cut: Cut): Promise<boolean> {
  const { tenant: kid } = cut;
  const at = Date.parse(cut.at);
  if (!(await tx('tenants').where({ kid }).where('created_at', '<=', at).first('kid'))) return false;
  if (cut.event === 'apikey.revoked') {
    const row = tx('api_keys').where({ kid, id: cut.id }).whereNull('revoked_at');
    return (await row.update({ revoked_at: at })) > 0;
  }
  const row = tx('seal_keys').where({ kid, generation: cut.generation }).whereNot({ state: 'destroyed' });
  return (await row.update({ state: 'destroyed', wrapped_private: null, destroyed_at: at })) > 0;
}

export async function applyCuts(tx: Knex.Transaction, cuts: readonly Cut[]) {
  const again: Cut[] = [];
  for (const cut of cuts) if (await endAgain(tx, cut)) again.push(cut);
  for (const kid of new Set(again.map(({ tenant }) => tenant))) await bumpTenant(tx, kid);
  return {
    apiKeysRevoked: again.flatMap((cut) => (cut.event === 'apikey.revoked' ? [cut.id] : [])),
    /** KID/GENERATION. */
    sealKeysDestroyed: again.flatMap((cut) =>
      cut.event === 'seal-key.destroyed' ? [`${cut.tenant}/${cut.generation}`] : [],
    ),
  };
}

/** More holds than a tenant places and releases while its audit log remembers them. */
const MAX_HOLDS = 10_000;

async function holdLines(database: Database, kid: string, now: number): Promise<HoldLine[]> {
  const lines: HoldLine[] = [];
  for (const event of ['hold.placed', 'hold.released'] as const) {
    const filter = { action: event, from: now - AUDIT_DAYS_MS };
    for (const { at, object, detail } of await listAudit(database, kid, filter, MAX_HOLDS)) {
      const said = detail as { readonly scope?: Scope; readonly scopes?: readonly Scope[] };
      const scopes = said.scopes ?? (said.scope === undefined ? [] : [said.scope]);
      // A restore that found no such device changed no hold.
      if (object === null || scopes.length === 0) continue;
      lines.push({ v: 1, at: isoTime(at), event, tenant: kid, device: object, scopes: [...scopes] });
    }
  }
  return lines;
}

/** What a restore must not undo, as lines for erasures.log: destroyed seal keys, revoked API keys, and legal holds. */
export async function endedLines(database: Database, kid: string, now: number) {
  const { read } = database;
  const keys = await read('seal_keys')
    .where({ kid, state: 'destroyed' })
    .select<{ generation: number; at: number }[]>('generation', { at: 'destroyed_at' });
  const revoked = await read('api_keys')
    .where({ kid })
    .whereNotNull('revoked_at')
    .select<{ id: string; at: number }[]>('id', { at: 'revoked_at' });
  const lineAt = (at: number) => ({ v: 1, at: isoTime(Number(at)), tenant: kid }) as const;
  const lines: (Cut | HoldLine)[] = [
    ...keys.map(({ generation, at }): Cut => ({ ...lineAt(at), event: 'seal-key.destroyed', generation })),
    ...revoked.map(({ id, at }): Cut => ({ ...lineAt(at), event: 'apikey.revoked', id })),
    ...(await holdLines(database, kid, now)),
  ];
  return lines.toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at));
}
