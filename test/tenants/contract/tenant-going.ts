import { describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import { insertSession } from '../../../src/consent/sessions-store.ts';
import { saveDraft } from '../../../src/console/session-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { bumpTenant } from '../../../src/db/meta-store.ts';
import type { Recorded } from '../../../src/ingest/ports.ts';
import { createRecorder } from '../../../src/ingest/store.ts';
import { HOUR } from '../../../src/lib/clock.ts';
import { TenantGone } from '../../../src/lib/errors.ts';
import { runJobs } from '../../../src/lib/jobs.ts';
import { anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { createTenantRows } from '../../../src/ops/new-tenant-store.ts';
import { TENANT_DATA_TABLES } from '../../../src/rights/person-map.ts';
import { tally } from '../../../src/rights/tally-store.ts';
import { countOrphanRows, removeTenant, sweepOrphans } from '../../../src/rights/tenant-rows-store.ts';
import { addKeyTraffic } from '../../../src/tenants/key-use-store.ts';
import { createFirstPurpose } from '../../../src/tenants/purposes.ts';
import { macOf } from '../../consent/contract/consent-support.ts';
import {
  addTenant,
  holdHot,
  holdTransaction,
  type MakeDatabase,
  someoneWaits,
} from '../../db/contract/database.ts';
import { addDecision, countOf, createHouse } from '../../ops/contract/house.ts';
import { createEntry, createNewTenant, DAY, NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

/**
 * A tenant is removed while other servers have not noticed:
 * no row may remain, and none may belong to a later tenant.
 */
export function tenantGoingContract(make: MakeDatabase): void {
  describe('a tenant that goes', () => {
    const { db, other } = twoNodes(make);

    const recorderOf = (database: Database) => createRecorder(database, () => performance.now());
    let visits = 0;
    /** Records a bundle like a server that still knew the tenant when it arrived. */
    const visit = (recorder: ReturnType<typeof recorderOf>, kid: string, since = NOW): Promise<Recorded> => {
      visits += 1;
      const id = `v${visits}`;
      const durable = `device-${visits % 7}`;
      const { claim } = createEntry({ kid, id });
      const effects = { summary: { signals: [], joint: 'j', expiresAt: NOW }, webhooks: ['w1'] };
      return recorder.record({
        claim: { ...claim, since },
        device: { kid, durable, network: 'n', day: DAY },
        decide: () => createEntry({ kid, id, durable, ...effects }),
      });
    };
    const endOf = (recorded: Recorded): string => (typeof recorded === 'string' ? recorded : 'recorded');

    async function rowsOf(kid: string): Promise<Record<string, number>> {
      const found: Record<string, number> = {};
      for (const table of TENANT_DATA_TABLES) {
        const rows = await other.read(table).where({ kid }).select('kid');
        if (rows.length > 0) found[table] = rows.length;
      }
      return found;
    }
    function createAnew(kid: string, now: number): Promise<boolean> {
      const tenant = createNewTenant(kid, { tenant: { ...createNewTenant(kid).tenant, createdAt: now } });
      const checkpoint = { text: 'note', size: 1, signedAt: now };
      const origin = `gpd.example/ledger/${kid}`;
      const log = { origin, vkey: 'vkey', genesis: Buffer.from('genesis'), checkpoint };
      const purpose = createFirstPurpose();
      return createTenantRows(other, { ...tenant, log, purpose, stateMac: macOf(kid) }, now);
    }

    it('records nothing of a tenant that is gone, and all that is of the others in the batch', async () => {
      const [acme, beta] = [await addTenant(db.database, 'acme'), await addTenant(db.database, 'beta')];
      const recorder = recorderOf(db.database);
      await visit(recorder, beta);
      await removeTenant(other, beta);
      const ends = await Promise.all([acme, beta, acme, beta, acme].map((kid) => visit(recorder, kid)));
      expect(ends.map(endOf)).toEqual(['recorded', 'gone', 'recorded', 'gone', 'recorded']);
      expect(await rowsOf(beta)).toEqual({});
      expect(await rowsOf(acme)).toMatchObject({ decisions: 3, nonces: 3, webhook_outbox: 3 });
    });

    it('leaves no row behind, however many nodes record while it is removed', async () => {
      const kid = await addTenant(db.database, 'busy');
      let removed = false;
      const ends: string[] = [];
      const server = async (database: Database): Promise<void> => {
        const recorder = recorderOf(database);
        for (let after = 0; after < 3; after += removed ? 1 : 0)
          for (const end of await Promise.all(Array.from({ length: 4 }, () => visit(recorder, kid))))
            ends.push(endOf(end));
      };
      const servers = [db.database, await db.connect()].map(server);
      while (ends.length < 16) await new Promise(setImmediate);
      const counts = await removeTenant(other, kid).finally(() => {
        removed = true;
      });
      await Promise.all(servers);
      expect(new Set(ends)).toEqual(new Set(['recorded', 'gone']));
      expect(counts?.['decisions']).toBe(ends.filter((end) => end === 'recorded').length);
      expect(await rowsOf(kid)).toEqual({});
    });

    it('keeps the nonce of a bundle, though its repetition in the batch is of an earlier tenant', async () => {
      const kid = await addTenant(db.database, 'repeated');
      const recorder = recorderOf(db.database);
      const entry = createEntry({ kid, id: 'repeated' });
      const sight = (since: number) =>
        recorder.record({ claim: { ...entry.claim, since }, device: null, decide: () => entry });
      expect(await Promise.all([sight(NOW), sight(NOW - DAY)])).toEqual([entry, 'gone']);
      expect(await sight(NOW - DAY)).toBe('gone');
      expect(await sight(NOW)).toBe('replay');
      expect(await rowsOf(kid)).toMatchObject({ nonces: 1 });
    });

    it('is not removed under a batch that found it there', async () => {
      const kid = await addTenant(db.database, 'under-a-batch');
      const batch = await holdHot(db.database, (database) => visit(recorderOf(database), kid));
      const removal = removeTenant(other, kid);
      // A removal that does not wait would finish before the batch.
      await Promise.race([removal, someoneWaits(other)]);
      expect(endOf(await batch.commit())).toBe('recorded');
      expect(await removal).toMatchObject({ decisions: 1, sightings: 1, visitor_index: 1 });
      expect(await rowsOf(kid)).toEqual({});
    });

    it('lets a batch record while its settings are being changed', async () => {
      const kid = await addTenant(db.database, 'changed');
      const change = await holdTransaction(other, (tx) => bumpTenant(tx, kid));
      // SQLite has one writer.
      if (other.kind === 'sqlite') await change.commit();
      expect(endOf(await visit(recorderOf(db.database), kid))).toBe('recorded');
      await change.commit();
    });

    it('is another one when it is made anew: nothing of the old one’s is written into it', async () => {
      const kid = await addTenant(db.database, 'anew');
      const recorder = recorderOf(db.database);
      await visit(recorder, kid);
      await removeTenant(other, kid);
      expect(await createAnew(kid, NOW + 1)).toBe(true);
      const ends = await Promise.all([visit(recorder, kid), visit(recorder, kid, NOW + 1)]);
      expect(ends.map(endOf)).toEqual(['gone', 'recorded']);
      const session = { kid, principal: 'p', wrappedPrincipalId: 'w', expiresAt: NOW + 1, keyId: 'key' };
      await expect(insertSession(db.database, { ...session, hash: 'old' }, NOW)).rejects.toThrow(TenantGone);
      await insertSession(db.database, { ...session, hash: 'new' }, NOW + 1);
      const use = { of: 'key', kid, generation: 1, count: 3, lastAt: NOW } as const;
      await addKeyTraffic(db.database, [
        { ...use, since: NOW },
        { ...use, since: NOW + 1, count: 1 },
      ]);
      expect(await other.read('key_traffic').where({ kid }).pluck('bundles')).toEqual([1]);
      expect(await rowsOf(kid)).toMatchObject({ nonces: 1, decisions: 1, principal_sessions: 1 });
    });

    it('has nothing written of it by anybody else either', async () => {
      const kid = await addTenant(db.database, 'everybody');
      await visit(recorderOf(db.database), kid);
      // These are the values of a server that read before the removal and writes after it.
      const decisions = await other.read('decisions').where({ kid });
      await removeTenant(other, kid);
      await db.database.transaction((tx) => tx('decisions').insert(decisions));
      const audit = { kid, at: NOW, actor: { role: 'system', ref: 't' }, object: 'o', detail: {} } as const;
      const draft = {
        kid,
        actor: 'a',
        contestId: 'c',
        kind: 'ask',
        outcome: null,
        text: '',
        at: NOW,
      } as const;
      const auditing = recordAudit(db.database, { ...audit, action: 'dsar.exported' });
      await expect(auditing).rejects.toThrow(TenantGone);
      await expect(tally(db.database, kid, NOW + 86_400_000)).rejects.toThrow(TenantGone);
      expect(await saveDraft(db.database, draft)).toBe(false);
      expect(await rowsOf(kid)).toEqual({ decisions: 1 });
    });

    describe('rows without a tenant', () => {
      /** Creates rows without a tenant in every table that contains a row of this one. */
      async function orphan(kid: string): Promise<Record<string, number>> {
        await addTenant(db.database, kid);
        const recorder = recorderOf(db.database);
        for (let i = 0; i < 3; i += 1) await visit(recorder, kid);
        await db.database.transaction((tx) => tx('tenants').where({ kid }).delete());
        return rowsOf(kid);
      }

      it('are counted and swept, and those of tenants and of the installation are not', async () => {
        const acme = await addTenant(db.database, 'not-swept');
        await visit(recorderOf(db.database), acme);
        const installation = { kid: '', job: 'j', since: 1, reason: 'r' };
        await db.database.transaction((tx) => tx('job_failures').insert(installation));
        await sweepOrphans(other);
        expect(await countOrphanRows(other)).toEqual([]);
        const acmeRows = await rowsOf(acme);
        const orphanRows = await orphan('swept');
        const rows = Object.values(orphanRows).reduce((sum, n) => sum + n, 0);
        expect(orphanRows).toMatchObject({ decisions: 3, sightings: 3, visitor_index: 3, network_days: 3 });
        expect(await countOrphanRows(other)).toEqual([{ kid: 'swept', rows }]);
        expect(await sweepOrphans(db.database)).toBe(rows);
        expect(await rowsOf('swept')).toEqual({});
        expect(await rowsOf(acme)).toEqual(acmeRows);
        expect(await other.read('job_failures').where({ kid: '' })).toHaveLength(1);
      });

      it('are no failure of a job that had the kid already, and go with the next round', async () => {
        const separateDb = await make();
        const kid = await addTenant(separateDb.database, 'listed');
        await addDecision(separateDb.database, kid, 'a', NOW);
        await separateDb.database.transaction((tx) => tx('tenants').where({ kid }).delete());
        const later = NOW + 3 * HOUR;
        const jobs = [
          { name: 'seal', every: 1, each: (one: string) => anchorVerdicts(separateDb.database, one, later) },
          { name: 'tally', every: 1, each: (one: string) => tally(separateDb.database, one, later) },
        ];
        const moment = { now: NOW, until: NOW };
        expect(await runJobs(jobs, moment, { kids: () => Promise.resolve([kid]) })).toEqual([]);
        expect(await countOf(separateDb.database, 'decisions', kid)).toBe(1);
        const house = createHouse(separateDb.database);
        expect(await house.round(HOUR)).toEqual([]);
        expect(await countOf(separateDb.database, 'decisions', kid)).toBe(0);
        await house.stop();
        await separateDb.close();
      });

      it('are gone before a tenant is made anew under their kid', async () => {
        await orphan('inherited');
        await createAnew('inherited', NOW + 1);
        expect(await rowsOf('inherited')).toEqual({ ledger_entries: 2, checkpoints: 1 });
        expect(await createAnew('inherited', NOW + 2)).toBe(false);
        expect(await rowsOf('inherited')).toEqual({ ledger_entries: 2, checkpoints: 1 });
      });

      it('go by the removal that is asked for once more', async () => {
        await orphan('asked-again');
        const progress: (readonly [done: number, total: number])[] = [];
        const onProgress = (...step: [number, number]) => void progress.push(step);
        const counts = await removeTenant(other, 'asked-again', { onProgress });
        expect(counts).toMatchObject({ decisions: 3 });
        const sum = Object.values(counts ?? {}).reduce((all, count) => all + count, 0);
        expect([progress.at(-1), sum > 3]).toEqual([[sum, sum], true]);
        expect(await rowsOf('asked-again')).toEqual({});
        expect(await removeTenant(other, 'asked-again')).toBeNull();
      });
    });
  });
}
