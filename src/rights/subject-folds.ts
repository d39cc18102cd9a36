import { ERASURE_SCOPES } from '../schema/rights.ts';
import { SUBJECT_DATA, type TableName } from './subject-data.ts';
import type { SubjectTable, Way } from './subject-table.ts';

/** The lists that features need, read off the map of a person. */

export const TABLES = Object.keys(SUBJECT_DATA) as TableName[];
export const rowOf = (table: TableName): SubjectTable => SUBJECT_DATA[table];

/** The tables for which this holds, in the order of the map. */
export const tablesWhere = (is: (row: SubjectTable) => boolean): readonly TableName[] =>
  TABLES.filter((table) => is(rowOf(table)));

const scopesWhere = (is: (row: SubjectTable) => boolean) =>
  ERASURE_SCOPES.filter((scope) => tablesWhere((row) => row.scope === scope && is(row)).length > 0);

/** Of a tenant, and removed in steps: rows with a foreign key are deleted with the tenant's row. */
export const TENANT_DATA_TABLES = tablesWhere(({ tenant }) => tenant === 'emptied' || tenant === 'scanned');

/** What a legal hold can name. */
export const HOLDABLE = scopesWhere(({ held }) => held);

/** What a visitorId leads to: keeping the rows without it would make them unreachable for their owner. */
export const LED_TO = scopesWhere(({ byVisitor }) => byVisitor === true);

/** Scopes whose rows a large erasure deletes in steps. */
export const STEPPED_SCOPES = scopesWhere(({ stepped }) => stepped === true);

/** Consent evidence is shredded with its key, and not row by row. */
export type RowWay = Exclude<Way, 'principal' | 'key'>;
const isRowWay = (way: Way): way is RowWay => way !== 'principal' && way !== 'key';

/** Rows of a table that an erasure deletes in one way. */
export interface Part {
  readonly table: TableName;
  readonly way: RowWay;
}

/** All that an erasure deletes except the consent evidence, in its order. */
export const PARTS: readonly Part[] = TABLES.flatMap((table) =>
  rowOf(table)
    .found.filter(isRowWay)
    .map((way) => ({ table, way })),
);

/** A large erasure deletes these in steps, the others with its mark. */
export const isStepped = ({ table, way }: Part): boolean =>
  rowOf(table).stepped === true && way === 'request';

/** Deleted with the key of a principal. */
export const SHREDDED = tablesWhere(({ found }) => found.includes('principal'));

/** Rows that an erasure deletes, and what hangs on them. */
export const ERASED_TABLES = tablesWhere(
  ({ names, found, with: owner }) => names.length + found.length > 0 || owner !== undefined,
);

/** Rows that say which device a request is of. */
export const DEVICES_OF_REQUESTS = tablesWhere(
  ({ names, reapplied }) => reapplied && names.includes('durable') && names.includes('request_id'),
);

/** Rows that name a request and that a hold may keep. */
export const HELD_BY_REQUEST = tablesWhere(({ held, names }) => held && names.includes('request_id'));

/** What retention deletes row by row. */
export type AgingTable = {
  [T in TableName]: (typeof SUBJECT_DATA)[T] extends { readonly ages: object } ? T : never;
}[TableName];
