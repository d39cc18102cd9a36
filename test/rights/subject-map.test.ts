import { describe, expect, it } from 'vitest';
import { DELETES } from '../../src/rights/erase/rows.ts';
import { SHREDS } from '../../src/rights/erase/shred.ts';
import type { TableName } from '../../src/rights/person-map.ts';
import { rowOf, TABLES, TENANT_DATA_TABLES, tablesWhere } from '../../src/rights/person-map.ts';
import { ERASURE_SCOPES } from '../../src/schema/rights.ts';

/** The rows of the subject map must agree with one another and with the decisions of the design. */
describe('the map of a person', () => {
  const erased = new Set<TableName>([...DELETES.map(({ table }) => table), ...SHREDS, 'consent_principals']);

  it('is deleted by an erasure wherever it names a person, but for what erasures themselves need', () => {
    const survivors = tablesWhere(
      ({ names, with: owner }) => names.length > 0 && !erased.has((owner ?? '') as TableName),
    ).filter((table) => !erased.has(table));
    expect(survivors).toEqual(['legal_holds', 'erasing']);
    for (const { table, column, scope } of DELETES) {
      expect(rowOf(table).names, table).toContain(column);
      expect(rowOf(table).scope, table).toBe(scope);
    }
  });

  it('has a table for every scope of a receipt', () => {
    const scopes = TABLES.map((table) => rowOf(table).scope);
    // Files.
    expect(ERASURE_SCOPES.filter((scope) => !scopes.includes(scope))).toEqual(['backups', 'storage']);
    expect(tablesWhere(({ scope }) => scope !== null).filter((table) => !erased.has(table))).toEqual([]);
  });

  it('compares with the tombstones all that names a person and was not emptied by its own clock', () => {
    const named = tablesWhere(({ names }) => names.length > 0);
    const reapplied = tablesWhere((row) => row.reapplied);
    expect(reapplied.filter((table) => !named.includes(table))).toEqual([]);
    expect(named.filter((table) => !reapplied.includes(table))).toEqual([
      // With its decision.
      'decision_updates',
      'decision_outcomes',
      'network_marks',
      'erasing',
    ]);
  });

  it('hands a tenant all its rows but secrets, settings and what counts for minutes', () => {
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

  it('ends these by the clock alone', () => {
    expect(tablesWhere(({ expires }) => expires.includes('time'))).toEqual([
      'signal_summaries',
      'webhook_outbox',
      'network_marks',
      'network_days',
      'principal_sessions',
      'idempotency_keys',
      'console_drafts',
      'console_sessions',
      'nonces',
      'network_totals',
      'tallies',
      'key_traffic',
      'agent_nonces',
      'rate_counters',
    ]);
  });

  it('says of every table how long it is kept', () => {
    expect(tablesWhere(({ expires }) => expires.length === 0)).toEqual([
      'erasures',
      'population',
      'shadow_counts',
      'tally_marks',
      'rule_reviews',
      'ledger_entries',
      'checkpoints',
      'ledger_blocks',
    ]);
    const aging = tablesWhere(({ expires }) => expires.includes('retention') || expires.includes('audit'));
    expect(tablesWhere(({ ages }) => ages !== undefined)).toEqual(aging);
    // With its tenant or by somebody's hand: nothing else may be without a time.
    const untimed = tablesWhere(({ expires }) => expires.every((by) => by === 'act'));
    const personal = untimed.filter((table) => rowOf(table).names.length > 0);
    expect(personal).toEqual([
      'overrides',
      'consent_principals',
      'consent_openings',
      'consent_state',
      'legal_holds',
      'erasing',
    ]);
  });
});
