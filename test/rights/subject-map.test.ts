import { expect, it } from 'vitest';
import { DELETES } from '../../src/rights/erase/rows-store.ts';
import { SHREDS } from '../../src/rights/erase/shred-store.ts';
import type { TableName } from '../../src/rights/person-map.ts';
import { rowOf, TABLES, TENANT_DATA_TABLES, tablesWhere } from '../../src/rights/person-map.ts';
import { ERASURE_SCOPES } from '../../src/schema/rights.ts';

/** The rows of the map of a person must agree with one another and with the decisions of the design. */

const erased = new Set<TableName>([...DELETES.map(({ table }) => table), ...SHREDS, 'consent_principals']);
const named = tablesWhere(({ names }) => names.length > 0);

it('an erasure deletes what names a person, but for what erasures need, and each scope has a table', () => {
  const survivors = named.filter(
    (table) => !erased.has(table) && !erased.has((rowOf(table).with ?? '') as TableName),
  );
  expect(survivors).toEqual(['legal_holds', 'erasing']);
  for (const { table, column, scope } of DELETES) {
    expect(rowOf(table).names, table).toContain(column);
    expect(rowOf(table).scope, table).toBe(scope);
  }
  const scopes = TABLES.map((table) => rowOf(table).scope);
  // Files.
  expect(ERASURE_SCOPES.filter((scope) => !scopes.includes(scope))).toEqual(['backups', 'storage']);
  expect(tablesWhere(({ scope }) => scope !== null).filter((table) => !erased.has(table))).toEqual([]);
});

it('a restore compares all that names a person and was not emptied by its own clock', () => {
  const reapplied = tablesWhere((row) => row.reapplied);
  expect(reapplied.filter((table) => !named.includes(table))).toEqual([]);
  const ofDecision = ['decision_updates', 'decision_outcomes'];
  expect(named.filter((table) => !reapplied.includes(table))).toEqual([
    ...ofDecision,
    'network_marks',
    'erasing',
  ]);
});

it('a tenant is handed all its rows but secrets, settings and what counts for minutes', () => {
  const exported = tablesWhere((row) => row.exported.includes('tenant'));
  expect(exported.filter((table) => rowOf(table).tenant === 'stays')).toEqual([]);
  expect(TENANT_DATA_TABLES.filter((table) => !exported.includes(table))).toEqual([
    'webhook_outbox',
    'network_marks',
    'principal_sessions',
    'idempotency_keys',
    'erasing',
    'nonces',
  ]);
  const cascading = exported.filter((table) => rowOf(table).tenant === 'cascades');
  expect(cascading).toEqual(['decision_updates', 'decision_outcomes']);
});

it('no table of a person is without a time, but what ends with its tenant or by somebody’s hand', () => {
  const aging = tablesWhere(({ expires }) => expires.includes('retention') || expires.includes('audit'));
  expect(tablesWhere(({ ages }) => ages !== undefined)).toEqual(aging);
  expect(named.filter((table) => rowOf(table).expires.every((by) => by === 'act'))).toEqual([
    'overrides',
    'consent_principals',
    'consent_openings',
    'consent_state',
    'legal_holds',
    'erasing',
  ]);
});
