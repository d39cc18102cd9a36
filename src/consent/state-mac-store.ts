import type { Knex } from 'knex';
import type { Database } from '../db/db.ts';
import { bumpTenant } from '../db/revision.ts';
import { type Bindings, insertMany, pageBehind, pagesOf } from '../db/sql.ts';
import { takeHead } from '../log/append-store.ts';
import { type PrincipalColumns, toPrincipalRow } from './principals-store.ts';
import { macFits, type StateMac } from './state-mac.ts';
import { type StateColumns, toStateRow } from './state-store.ts';
import { macTerms, type TermsOf } from './terms-store.ts';

/** The rows that carry MACs, page by page: given theirs at the first start of this version (ADR 0042), and looked through by doctor. */

const PAGE = 2000;

/** Of either table. */
type Row = Readonly<Record<string, string | number | null>> &
  Readonly<Record<'principal' | 'purpose', string>> &
  PrincipalColumns &
  StateColumns;

interface MacTable {
  readonly table: 'consent_principals' | 'consent_state';
  readonly key: readonly string[];
  /** Separated by commas. */
  readonly columns: string;
  readonly macOf: (mac: StateMac, row: Row) => string;
}

const MAC_TABLES: readonly MacTable[] = [
  {
    table: 'consent_principals',
    key: ['principal'],
    columns: 'kid, principal, wrapped_key, gpc, gpc_except, erased_at',
    macOf: (mac, row) => mac.ofPrincipal(row.principal, toPrincipalRow(row)),
  },
  {
    table: 'consent_state',
    key: ['principal', 'purpose'],
    columns:
      'kid, principal, purpose, choice, policy_version, expires_at, at, seq, hash, over_gpc, given, doubt_seq',
    macOf: (mac, row) => mac.ofState(row.principal, row.purpose, toStateRow(row)),
  },
];

const rowsOf = (read: Knex, kid: string, { table, columns }: MacTable): Knex.QueryBuilder =>
  read(table)
    .where({ kid })
    .select([...columns.split(', '), 'mac']);

/** @returns the last row that was read; undefined at the end, and where the log is lost */
async function addPageMacs(database: Database, { kid, stateMac }: TermsOf, of: MacTable, after?: Row) {
  const { table, key, columns, macOf } = of;
  return database.transaction(async (tx) => {
    if ((await takeHead(tx, kid)) instanceof Error) return undefined;
    const rows = await pageBehind(rowsOf(tx, kid, of), key, PAGE, after);
    const open = rows
      .filter(({ mac }) => mac === null)
      .map(
        (row): Bindings => [...columns.split(', ').map((name) => row[name] ?? null), macOf(stateMac, row)],
      );
    const head = `INSERT INTO ${table} (${columns}, mac)`;
    await insertMany(tx, head, open, `ON CONFLICT (kid, ${key.join(', ')}) DO UPDATE SET mac = excluded.mac`);
    return rows.at(-1);
  });
}

/** In steps; an interrupted start continues at the next one. @param wrappedRoot says that all rows of the tenant have their MAC */
export async function addTenantMacs(database: Database, tenant: TermsOf, wrappedRoot: string): Promise<void> {
  for (const table of MAC_TABLES) {
    let last: Row | undefined;
    do last = await addPageMacs(database, tenant, table, last);
    while (last);
  }
  const { kid } = tenant;
  await database.transaction(async (tx) => {
    if (!(await bumpTenant(tx, kid)) || (await takeHead(tx, kid)) instanceof Error) return;
    await macTerms(tx, tenant);
    await tx('tenant_secrets').where({ kid, purpose: 'root' }).update({ wrapped: wrappedRoot });
  });
}

/** How many rows of a tenant do not carry their MAC. */
export async function countInvalid(database: Database, { kid, stateMac }: TermsOf): Promise<number> {
  let invalid = 0;
  for (const table of MAC_TABLES) {
    const query = rowsOf(database.read, kid, table);
    for await (const rows of pagesOf<Row>(query, table.key, PAGE))
      invalid += rows.filter((row) => !macFits(row['mac'], table.macOf(stateMac, row))).length;
  }
  return invalid;
}
