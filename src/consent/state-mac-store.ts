import type { Knex } from 'knex';
import type { Database } from '../db/engine.ts';
import { pagesOf } from '../db/sql.ts';
import { deriveTenantKeys, ROOT_SECRET, tenantSecretContext } from '../keys/master-key.ts';
import { tryOr } from '../lib/errors.ts';
import type { Store } from '../tenants/installation-files.ts';
import { readTenantSecrets } from '../tenants/secrets-store.ts';
import { createStateMac, isMacValid, type StateMac } from '../tenants/state-mac.ts';
import { type PrincipalColumns, type StateColumns, toPrincipalRow, toStateRow } from './state-store.ts';
import type { TermsOf } from './terms-store.ts';

/** Reads the rows that have MACs (ADR 0042) page by page, for `gpd doctor`. */

const PAGE = 2000;

/** Columns of a row of either table. */
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
    columns: 'kid, principal, wrapped_key, gpc, gpc_except, erased_at, account, withheld',
    macOf: (mac, row) => mac.ofPrincipal(row.principal, toPrincipalRow(row)),
  },
  {
    table: 'consent_state',
    key: ['principal', 'purpose'],
    columns:
      'kid, principal, purpose, choice, policy_version, expires_at, at, seq, hash, over_gpc, given, doubt_seq, definition',
    macOf: (mac, row) => mac.ofState(row.principal, row.purpose, toStateRow(row)),
  },
];

const rowsOf = (read: Knex, kid: string, { table, columns }: MacTable): Knex.QueryBuilder =>
  read(table)
    .where({ kid })
    .select([...columns.split(', '), 'mac']);

/** Counts rows of a tenant that lack their MAC. */
export async function countInvalid(database: Database, { kid, stateMac }: TermsOf): Promise<number> {
  let invalid = 0;
  for (const table of MAC_TABLES) {
    const query = rowsOf(database.read, kid, table);
    for await (const rows of pagesOf<Row>(query, table.key, PAGE))
      invalid += rows.filter((row) => !isMacValid(row['mac'], table.macOf(stateMac, row))).length;
  }
  return invalid;
}

/**
 * The keys of the MACs of each tenant, from its wrapped root. A tenant whose root does not open is left out:
 * `gpd doctor` names it.
 */
export async function stateMacs({
  database,
  masterKey,
}: Pick<Store, 'database' | 'masterKey'>): Promise<ReadonlyMap<string, TermsOf>> {
  const wrapped = await readTenantSecrets(database, ROOT_SECRET);
  return new Map(
    [...wrapped].flatMap(([kid, text]): [string, TermsOf][] => {
      const root = tryOr(() => masterKey.unwrap(text, tenantSecretContext(kid, ROOT_SECRET)), null);
      return root ? [[kid, { kid, stateMac: createStateMac(kid, deriveTenantKeys(root).state) }]] : [];
    }),
  );
}
