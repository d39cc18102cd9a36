import type { Knex } from 'knex';
import { describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import { loadConfig } from '../../../src/config.ts';
import { verifyLog } from '../../../src/consent/verify-service.ts';
import type { Database } from '../../../src/db/engine.ts';
import { impersonalEntry } from '../../../src/ledger/entries.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { appendOne, lockHead } from '../../../src/log/entries-store.ts';
import { createContext } from '../../../src/ops/doctor/context-service.ts';
import { CHECKS, examine } from '../../../src/ops/doctor/doctor-service.ts';
import { eraseRows } from '../../../src/rights/erase/rows-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import { removeTenant } from '../../../src/rights/tenant-rows-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';
import { sealProblems } from '../../support/verify.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;
const HOURS = 2;
const LOG_CHECKS = CHECKS.filter(({ id }) => id === 'log.entries');

/** `work` runs right before the nth query of a table, as another writer may beside a running server. */
function beside(database: Database, work: () => Promise<unknown>, table: string, nth = 1): Database {
  let remaining = nth;
  const gate = async (name: unknown): Promise<void> => {
    if (name !== table) return;
    remaining -= 1;
    if (remaining === 0) await work();
  };
  const watched = <K extends Knex>(knex: K): K =>
    new Proxy(knex, {
      apply(target, self, args: unknown[]) {
        const query = Reflect.apply(target, self, args) as Knex.QueryBuilder;
        const run = query.then.bind(query);
        const runAfterGate = async (): Promise<unknown> => {
          await gate(args[0]);
          return new Promise((done, failed) => void run(done, failed));
        };
        // A query runs when it is awaited.
        Reflect.set(query, 'then', (...answer: Parameters<Promise<unknown>['then']>) =>
          runAfterGate().then(...answer),
        );
        return query;
      },
    });
  return {
    ...database,
    read: watched(database.read),
    snapshot: (reads) => database.snapshot((tx) => reads(watched(tx))),
  };
}

export function verifyBesideContract(make: MakeDatabase): void {
  describe('checks beside a running server', () => {
    const { db, other } = twoNodes(make);

    /** A tenant with sealed hours of two verdicts and of one audit row each. */
    async function sealedTenant(kid: string): Promise<string> {
      await addTenant(db.database, kid);
      const actor = { role: 'dpo', ref: 'dora' } as const;
      const hours = Array.from({ length: HOURS }, (_, i) => BEGIN + i * HOUR);
      const recorder = createRecorder(db.database);
      const entries = hours.flatMap((at) =>
        ['one', 'two'].map((durable) =>
          createEntry({ kid, id: `${kid}-${durable}-${at}`, durable, decidedAt: at }),
        ),
      );
      await Promise.all(entries.map((entry) => recorder.record(entry)));
      for (const at of hours) {
        const event = { kid, at, actor, action: 'dsar.exported', object: null, detail: {} } as const;
        await recordAudit(db.database, event);
      }
      const later = BEGIN + (HOURS + 1) * HOUR;
      expect(await anchorVerdicts(db.database, kid, later)).toBe(HOURS);
      expect(await anchorAudit(db.database, kid, later)).toBe(HOURS);
      return kid;
    }
    const erase = (kid: string) =>
      db.database.transaction(async (tx) => {
        await lockHead(tx, kid);
        const keep = { openContests: false, override: false };
        const target = { kid, durables: ['one'], requests: [], linksOf: null, keep };
        return eraseRows(tx, { ...target, requestRef: String });
      });
    const retainAll = (kid: string) => deleteExpired(db.database, { kid, days: 1, now: BEGIN + 800 * DAY });

    it.each(['decisions', 'erased_verdicts'])(
      'an erasure before the read of %s is no tampering',
      async (table) => {
        for (let nth = 1; nth <= HOURS; nth += 1) {
          const kid = await sealedTenant(`erased-${table}-${nth}`);
          expect(
            await sealProblems(
              beside(other, () => erase(kid), table, nth),
              kid,
            ),
          ).toEqual([]);
          expect(await sealProblems(other, kid)).toEqual([]);
        }
      },
    );

    it.each(['verdict_seals', 'decisions', 'erased_verdicts', 'ledger_entries', 'audit_log'])(
      'a retention before the read of %s is no tampering',
      async (table) => {
        for (let nth = 1; nth <= HOURS; nth += 1) {
          const kid = await sealedTenant(`retained-${table}-${nth}`);
          const watched = beside(other, () => retainAll(kid), table, nth);
          expect(await sealProblems(watched, kid)).toEqual([]);
          expect(await sealProblems(watched, kid)).toEqual([]);
          expect(await other.read('decisions').where({ kid })).toEqual([]);
        }
      },
    );

    // Guards against: rows of an hour that was anchored after the walk looked as if somebody had added them.
    it.each(['ledger_entries', 'decisions'])(
      'an anchoring before the read of %s is no tampering',
      async (table) => {
        const kid = await sealedTenant(`anchored-${table}`);
        const at = BEGIN + HOURS * HOUR;
        await createRecorder(db.database).record(createEntry({ kid, id: `${kid}-late`, decidedAt: at }));
        const anchor = () => anchorVerdicts(db.database, kid, at + 2 * HOUR);
        expect(await sealProblems(beside(other, anchor, table), kid)).toEqual([]);
        expect(await anchor()).toBe(0);
        expect(await sealProblems(other, kid)).toEqual([]);
      },
    );

    it('notices what was tampered with in the same moment', async () => {
      const kid = await sealedTenant('tampered');
      const tamper = () =>
        db.database.transaction((tx) =>
          tx('decisions')
            .where({ kid, decided_at: BEGIN + HOUR })
            .delete(),
        );
      const problems = await sealProblems(beside(other, tamper, 'decisions'), kid);
      expect(problems).toEqual([expect.stringContaining('2 of 2 verdicts')]);
    });

    it.each([
      ['verdict_seals', 'decisions'],
      ['decisions', 'erased_verdicts'],
      ['ledger_entries', 'ledger_entries'],
    ])(
      'a tenant that goes before the read of %s, and with it its %s, was not tampered with',
      async (at, emptiedTable) => {
        const kid = await sealedTenant(`removed-${at}`);
        const remove = () =>
          db.database.transaction(async (tx) => {
            for (const table of ['tenants', emptiedTable, 'decisions'])
              await tx(table).where({ kid }).delete();
          });
        const found = await verifyLog(beside(other, remove, at), kid, { trusted: undefined, now: Infinity });
        expect(found?.problems ?? []).toEqual([]);
      },
    );

    it('the doctor reads head and entries of one moment, and no log of a tenant that was removed', async () => {
      const kid = await sealedTenant('looked-at');
      await sealedTenant('leaves');
      const append = () =>
        db.database.transaction((tx) =>
          appendOne(
            tx,
            kid,
            impersonalEntry({ type: 'verdicts.sealed', at: NOW, purpose: null }, { n: 1 }),
            undefined,
          ),
        );
      const look = (database: Database, only: string) => {
        const context = createContext(loadConfig({ environment: {} }), { version: '', now: NOW }, database);
        const tenants = async () => {
          const { readable } = await context.tenants();
          return { readable: readable.filter((tenant) => tenant.kid === only), damaged: [] };
        };
        return examine({ ...context, tenants, keys: async () => null }, LOG_CHECKS);
      };
      const passes = { counts: { pass: 1, fail: 0 } };
      // The end of each log is read by two queries.
      for (const nth of [1, 2])
        expect(await look(beside(other, append, 'ledger_entries', nth), kid)).toMatchObject(passes);
      const leave = () => removeTenant(db.database, 'leaves');
      expect(await look(beside(other, leave, 'ledger_heads'), 'leaves')).toMatchObject(passes);
    });

    it('a snapshot sees one moment, writes nothing and gives its connection back', async () => {
      const kid = await addTenant(db.database, 'moment');
      const count = (tx: Knex): Promise<unknown[]> => Promise.resolve(tx('sightings').where({ kid }));
      const found = await other.snapshot(async (tx) => {
        const before = await count(tx);
        await createRecorder(db.database).record(createEntry({ kid, id: 'moment' }));
        return [before, await count(tx)];
      });
      expect(found).toEqual([[], []]);
      expect(await count(other.read)).toHaveLength(1);
      const fail = () =>
        other.snapshot(() => {
          throw new Error('the reader failed');
        });
      for (let i = 0; i < 20; i += 1) await expect(fail()).rejects.toThrow('the reader failed');
    });
  });
}
