import { SUBJECT_DATA, type TableName } from './subject-data.ts';
import type { SubjectTable } from './subject-table.ts';

/** The lists that features need, read off the map of a person. */

export const TABLES = Object.keys(SUBJECT_DATA) as TableName[];
export const rowOf = (table: TableName): SubjectTable => SUBJECT_DATA[table];

/** The tables for which this holds, in the order of the map. */
export const tablesWhere = (is: (row: SubjectTable) => boolean): readonly TableName[] =>
  TABLES.filter((table) => is(rowOf(table)));

/** Of a tenant, and removed in steps: rows with a foreign key are deleted with the tenant's row. */
export const TENANT_DATA_TABLES = tablesWhere(({ tenant }) => tenant === 'emptied' || tenant === 'scanned');

/** Rows that name a person, or hang on one that does: PostgreSQL's files are rewritten for them. */
export const PERSONAL_TABLES = tablesWhere(
  ({ names, scope, with: owner }) => names.length > 0 || scope !== null || owner !== undefined,
);

/** What retention deletes row by row. */
export type AgingTable = {
  [T in TableName]: (typeof SUBJECT_DATA)[T] extends { readonly ages: object } ? T : never;
}[TableName];
