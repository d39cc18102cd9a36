import { expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { DAY, isoTime } from '../../../src/lib/clock.ts';
import { KEEP_NOTHING } from '../../../src/rights/erase/erase-service.ts';
import type { ScopeResult } from '../../../src/rights/erase/erasure-service.ts';
import { insertErasure } from '../../../src/rights/erase/receipts-store.ts';
import { type RegisteredRequest, readRegister, wholeRegister } from '../../../src/rights/register-service.ts';
import type { RegisterCursor, RegisterRow } from '../../../src/rights/register-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { noteStatements } from '../../support/database.ts';
import { NOW } from '../../support/make.ts';
import { started } from '../../support/started.ts';

const positionOf = ({ receivedAt, number }: RegisteredRequest): RegisterCursor => ({
  at: Date.parse(receivedAt),
  number,
});

/** All requests, read by pages of two. */
async function* twoByTwo(database: Database, tenant: Parameters<typeof readRegister>[1]) {
  for (let cursor: RegisterCursor | null = null; ; ) {
    const page = await readRegister(database, tenant, { cursor, limit: 2 });
    yield* page;
    const last = page[1];
    if (!last) return;
    cursor = positionOf(last);
  }
}

/** The register of requests, by both databases. */
export function registerContract(make: MakeDatabase): void {
  const db = started(make);

  it('a page has one row per person and day that they viewed their data; the whole register has each view', async () => {
    const { database } = db;
    const tenant = { kid: 'folded', settings: { 'rights.profile': 'gdpr' } } as const;
    await addTenant(database, tenant.kid);
    const day = Math.floor(NOW / DAY) * DAY;
    const row = { kid: tenant.kid, role: 'subject', actor: 'a', detail: '{}', salt: 's', commitment: 'c' };
    const views = [
      [day, 'anna'],
      [day + 5, 'anna'],
      [day + 5, 'anna'],
      [day + DAY, 'anna'],
      [day + 6, 'ben'],
    ] as const;
    await database.transaction(async (tx) => {
      for (const [at, object] of views)
        await tx('audit_log').insert({ ...row, at, object, action: 'dsar.exported' });
      for (const at of [day + 1, day + 2])
        await tx('audit_log').insert({
          ...row,
          at,
          object: 'anna',
          role: 'dpo',
          action: 'dsar.staff-exported',
        });
    });
    const pages = [];
    for await (const { receivedAt, askedBy, times } of twoByTwo(database, tenant))
      pages.push([Date.parse(receivedAt) - day, askedBy, times]);
    expect(pages).toEqual([
      [DAY, 'subject', 1],
      [6, 'subject', 1],
      [5, 'subject', 3],
      [2, 'dpo', 1],
      [1, 'dpo', 1],
    ]);
    const whole = [];
    for await (const page of wholeRegister(database, tenant)) whole.push(...page);
    expect(whole).toHaveLength(7);
  });

  it('the register has each request once with its due date, by pages of any size, and nobody else\u2019s', async () => {
    const { database } = db;
    const tenant = { kid: 'register', settings: { 'rights.profile': 'ccpa' } } as const;
    const { kid } = tenant;
    for (const name of [kid, 'elsewhere']) await addTenant(database, name);
    const filed = { request_id: 'r', filed_by: 'a', filed_at: NOW };
    const contest = { ...filed, status: 'open', version: 1, class: 'unknown' };
    const stored = { subject: 's', kid, requestedBy: 'dpo', keep: KEEP_NOTHING, state: 'done' } as const;
    const erasure = { subject: 's', erased_at: NOW, scopes: '[]', refs: '{}' };
    const heldScopes = [
      { scope: 'decisions', action: 'retained', count: 2, basis: 'Proceedings 12/26.' },
    ] as const;
    const export_ = { role: 'subject', actor: 'a', detail: '{}', salt: 's', commitment: 'c' };
    await database.transaction(async (tx) => {
      for (const of of [kid, 'elsewhere']) {
        const dates = { due_at: NOW + 50 * DAY, extended_from: NOW + 45 * DAY, case_hash: `h-${of}` };
        await tx('contests').insert({ ...contest, ...dates, kid: of, contest_id: `con_${of}` });
        for (const [state, by, cleanAt] of [
          ['done', 'dpo', NOW],
          ['open', 'subject', null],
        ] as const)
          await tx('erasures').insert({
            ...erasure,
            kid: of,
            state,
            files_clean_at: cleanAt,
            requested_by: by,
            receipt_id: `era_${of}_${state}`,
          });
        for (const action of ['dsar.exported', 'dsar.staff-exported', 'subject.searched'])
          await tx('audit_log').insert({ ...export_, kid: of, at: NOW + DAY, action });
      }
    });
    const all = [];
    for await (const page of wholeRegister(database, tenant)) all.push(...page);
    expect(all.map(({ kind, state, askedBy }) => [kind, state, askedBy])).toEqual([
      ['export', 'done', 'subject'],
      ['export', 'done', 'subject'],
      ['erasure', 'open', 'subject'],
      ['erasure', 'done', 'dpo'],
      ['contest', 'open', 'case-key'],
    ]);
    const dates = { dueAt: isoTime(NOW + 45 * DAY), extendedTo: isoTime(NOW + 50 * DAY), doneAt: null };
    const open = { kind: 'contest', number: 'con_register', receivedAt: isoTime(NOW), state: 'open' };
    const never = { pausedFrom: null, pausedTo: null, acknowledgedAt: null };
    expect(all[4]).toEqual({ ...open, ...dates, ...never, askedBy: 'case-key' });
    expect(all[2]).toMatchObject({ dueAt: isoTime(NOW + 45 * DAY), doneAt: null });
    const paged = [];
    for await (const one of twoByTwo(database, tenant)) paged.push(one);
    expect(paged).toEqual(all.map((one) => ({ ...one, times: 1 })));
    const back = { cursor: positionOf(paged[4]!), isBackward: true, limit: 3 };
    expect(await readRegister(database, tenant, back)).toEqual(paged.slice(1, 4));
    const numbers = async (kind?: RegisterRow['kind'], isOpen?: boolean) => {
      const found = await readRegister(database, tenant, { cursor: null, limit: 9, kind, isOpen });
      return found.map(({ number }) => number.replace(/\d+$/, 'n'));
    };
    expect(await numbers(undefined, true)).toEqual(['era_register_open', 'con_register']);
    expect(await numbers(undefined, false)).toEqual(['audit n', 'audit n', 'era_register_done']);
    expect(await numbers('contest')).toEqual(['con_register']);
    expect(await numbers('export', true)).toEqual([]);
    // An entry stays open until a later receipt of the same device retains nothing.
    const add = (receiptId: string, erasedAt: number, scopes: readonly ScopeResult[], ref = 'D') => {
      const refs = [{ kind: 'durable', ref }] as const;
      const heldRefs = scopes.length > 0 ? { held: [ref] } : {};
      const receipt = { ...stored, receiptId, erasedAt, filesCleanAt: erasedAt, refs, scopes, ...heldRefs };
      return database.transaction((tx) => insertErasure(tx, receipt));
    };
    // Guards against: one scan of all receipts for each held one, on the connections of checks.
    const statements: string[] = [];
    const stateOf = async (id: string) => {
      statements.length = 0;
      const ends = [database.read, database.longRead].map((reads) =>
        noteStatements(reads, ({ sql }) => statements.push(sql)),
      );
      const requests = await readRegister(database, tenant, { cursor: null, limit: 50 });
      for (const end of ends) end();
      expect(statements).toHaveLength(1);
      const { state, doneAt } = requests.find(({ number }) => number === id) ?? {};
      return { state, doneAt };
    };
    await add('era_held', NOW + 1, heldScopes);
    expect(await stateOf('era_held')).toEqual({ state: 'partly', doneAt: null });
    await add('era_still', NOW + 2, heldScopes);
    await add('era_other', NOW + 3, [], 'E');
    expect(await stateOf('era_held')).toEqual({ state: 'partly', doneAt: null });
    const waiting = ['era_still', 'era_held', 'era_register_open'];
    expect(await numbers('erasure', true)).toEqual(waiting);
    expect(await numbers('erasure', false)).toEqual(['era_other', 'era_register_done']);
    await add('era_rest', NOW + 4, []);
    expect(await numbers('erasure', true)).toEqual(['era_register_open']);
    for (const id of ['era_held', 'era_still'])
      expect(await stateOf(id)).toEqual({ state: 'done', doneAt: isoTime(NOW + 4) });
  });
}
