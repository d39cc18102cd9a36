import { describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { findDecision } from '../../../src/ingest/decisions-store.ts';
import type { DeviceQuery, Recorded } from '../../../src/ingest/ports.ts';
import { createRecorder as createWholeRecorder } from '../../../src/ingest/store.ts';
import type { KnownDevice } from '../../../src/ingest/verdict/identity.ts';
import { commitVerdict } from '../../../src/ledger/entries.ts';
import type { MakeDatabase } from '../../db/contract/database.ts';
import { createConsentState, createEntry, DAY, NOW } from '../../support/make.ts';
import { createRecorder, ensureTenant } from '../../support/recorder.ts';
import { twoNodes } from '../../support/started.ts';

const TABLES = ['nonces', 'sightings', 'visitor_index', 'decisions'] as const;

async function counts(database: Database, kid: string): Promise<number[]> {
  return Promise.all(TABLES.map(async (table) => (await database.read(table).where({ kid })).length));
}

async function sighting(database: Database, kid: string, durable = 'durable-1'): Promise<unknown> {
  const columns = ['first_at', 'last_at', 'seen'];
  return database.read('sightings').where({ kid, durable }).first(columns);
}

/** A visit as ingest hands it over: decided on what the recorder knows of its device. */
interface Visit {
  readonly kid: string;
  readonly id: string;
  readonly device?: Partial<DeviceQuery> | null;
  readonly decide?: (known: KnownDevice | null) => Partial<Parameters<typeof createEntry>[0]>;
}

const wholeRecorder = (database: Database) => createWholeRecorder(database, () => performance.now());

function sight(recorder: ReturnType<typeof wholeRecorder>, { kid, id, device, decide }: Visit) {
  const query = device === null ? null : { kid, durable: 'd', network: 'n', day: DAY, ...device };
  return recorder.record({
    claim: createEntry({ kid, id }).claim,
    device: query,
    decide: (known) =>
      createEntry({
        kid,
        id,
        day: DAY,
        durable: query?.durable ?? null,
        network: query?.network ?? 'n',
        marked: known?.marked === true,
        ...decide?.(known),
      }),
  });
}

export function recorderContract(make: MakeDatabase): void {
  describe('Recorder', () => {
    const { db, other } = twoNodes(make);

    it('counts the values of a device once, however many of its first visits are recorded at once', async () => {
      const recorder = wholeRecorder(db.database);
      const kid = 'counted-once';
      await ensureTenant(db.database, kid);
      const signals = [{ name: 'gpu', value: 'keyed' }];
      const decide = () => ({ summary: { signals, joint: 'j', expiresAt: NOW + DAY } });
      await Promise.all(['o1', 'o2', 'o3', 'o4', 'o5'].map((id) => sight(recorder, { kid, id, decide })));
      const device = { network: 'another' };
      await Promise.all(['o6', 'o7'].map((id) => sight(recorder, { kid, id, device, decide })));
      const rows = await other
        .read('population')
        .where({ kid })
        .orderBy('signal')
        .select('signal', 'devices');
      expect(rows).toEqual([
        { signal: '*counted', devices: 2 },
        { signal: '*devices', devices: 1 },
        { signal: '*joint', devices: 2 },
        { signal: 'gpu', devices: 2 },
      ]);
    });

    it('records a sighting with what is known of its device, and two simultaneous ones with the same', async () => {
      const recorder = wholeRecorder(db.database);
      const kid = 'settled';
      await ensureTenant(db.database, kid);
      const known: (KnownDevice | null)[] = [];
      const decide = (device: KnownDevice | null) => {
        known.push(device);
        return {};
      };
      await Promise.all(['s1', 's2'].map((id) => sight(recorder, { kid, id, decide })));
      const recorded = await sight(recorder, { kid, id: 's3', decide });
      await sight(recorder, { kid, id: 's4', decide, device: null });
      expect(known.map((entry) => entry && [entry.seen, entry.marked])).toEqual([
        [false, false],
        [false, false],
        [true, true],
        null,
      ]);
      expect(recorded).toMatchObject({ kid, verdict: { requestId: 'req_s3' } });
      // A visit of nobody leaves a decision and no sighting.
      expect(await counts(other, kid)).toEqual([4, 1, 1, 4]);
    });

    it('tells each sighting of a batch what is known of its own device', async () => {
      const recorder = wholeRecorder(db.database);
      const known = new Map<string, string>();
      const tell = (id: string, kid: string, durable: string | null): Promise<Recorded> =>
        sight(recorder, {
          kid,
          id,
          device: durable === null ? null : { durable },
          decide: (device) => {
            const { pairsOfWeek, tenantPairsOfWeek } = device?.spread ?? {};
            known.set(id, device ? `${device.seen} ${pairsOfWeek} ${tenantPairsOfWeek}` : 'nobody');
            return {};
          },
        });
      await ensureTenant(db.database, 'own-c');
      const networks = [['own-a', 'd', 1] as const, ['own-b', 'd', 2] as const, ['own-b', 'e', 3] as const];
      for (const [kid, durable, count] of networks)
        for (let i = 0; i < count; i += 1) {
          const entry = createEntry({ kid, id: `${durable}${i}`, durable, network: `network-${i}` });
          await createRecorder(db.database).record(entry);
        }
      await Promise.all([
        tell('m1', 'own-a', null),
        tell('m2', 'own-b', 'd'),
        tell('m3', 'own-a', 'd'),
        tell('m4', 'own-b', null),
        tell('m5', 'own-b', 'e'),
        tell('m6', 'own-c', 'd'),
      ]);
      expect(Object.fromEntries(known)).toEqual({
        m1: 'nobody',
        m2: 'true 3 5',
        m3: 'true 2 1',
        m4: 'nobody',
        m5: 'true 4 5',
        m6: 'false 1 0',
      });
    });

    it('decides again, and answers what was written, when the database rolled a transaction back', async () => {
      let rounds = 0;
      const twice: Database = {
        ...db.database,
        async transaction(work) {
          const rolledBack = db.database.transaction(async (tx) => {
            await work(tx);
            throw new Error('rolled back');
          });
          await expect(rolledBack).rejects.toThrow('rolled back');
          return db.database.transaction(work);
        },
      };
      await ensureTenant(db.database, 'anew');
      const decide = () => {
        rounds += 1;
        return { id: `r${rounds}` };
      };
      const recorded = await sight(wholeRecorder(twice), { kid: 'anew', id: 'r', decide });
      expect(recorded).toMatchObject({ verdict: { requestId: 'req_r2' } });
      expect(await findDecision(other, 'anew', 'req_r1')).toBeNull();
      expect((await findDecision(other, 'anew', 'req_r2'))?.verdict).toMatchObject({ requestId: 'req_r2' });
    });

    it('leaves what cannot be settled to its caller alone', async () => {
      const recorder = wholeRecorder(db.database);
      const kid = 'unsettled';
      await ensureTenant(db.database, kid);
      const fails = () => {
        throw new RangeError('of u2 alone');
      };
      const visits = ['u1', 'u2', 'u3'].map((id) =>
        sight(recorder, { kid, id, ...(id === 'u2' && { decide: fails }) }),
      );
      expect(await Promise.allSettled(visits)).toMatchObject([
        { status: 'fulfilled', value: { verdict: { requestId: 'req_u1' } } },
        { status: 'rejected', reason: new RangeError('of u2 alone') },
        { status: 'fulfilled', value: { verdict: { requestId: 'req_u3' } } },
      ]);
      expect(await counts(other, kid)).toEqual([2, 1, 1, 2]);
      expect(await createRecorder(db.database).record(createEntry({ kid, id: 'u2' }))).toBe('recorded');
    });

    it('commits to exactly the bytes that it stores', async () => {
      const entry = createEntry({ kid: 'committed', id: 'c1' });
      await createRecorder(db.database).record(entry);
      const row = await other.read('decisions').where({ kid: 'committed' }).first();
      expect(row.verdict).toBe(JSON.stringify(entry.verdict));
      const salt = Buffer.from(entry.salt, 'base64url');
      expect(row.commitment).toBe(commitVerdict(salt, 'committed', 'req_c1', row.verdict));
    });

    it('tells what is new from what is not within one batch', async () => {
      const recorder = createRecorder(db.database);
      await recorder.record(createEntry({ kid: 'mixed', id: 'x0', nonce: 'old' }));
      const nonces = ['old', 'new', 'new', 'old', 'other'];
      const batch = nonces.map((nonce, i) => createEntry({ kid: 'mixed', id: `x${i + 1}`, nonce }));
      expect(await Promise.all(batch.map((entry) => recorder.record(entry)))).toEqual([
        'replay',
        'recorded',
        'replay',
        'replay',
        'recorded',
      ]);
      const ids = other.read('decisions').where({ kid: 'mixed' }).orderBy('request_id').pluck('request_id');
      expect(await ids).toEqual(['req_x0', 'req_x2', 'req_x5']);
      expect(await sighting(other, 'mixed')).toMatchObject({ seen: 3 });
    });

    it('records one of 100 duplicates that reach two nodes at once', async () => {
      const recorders = [createRecorder(db.database), createRecorder(other)];
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          recorders[i % 2]!.record(createEntry({ kid: 'duplicates', id: `dup-${i}`, nonce: 'one' })),
        ),
      );
      expect(answers.filter((answer) => answer === 'recorded')).toHaveLength(1);
      expect(answers.filter((answer) => answer === 'replay')).toHaveLength(99);
      expect(await counts(other, 'duplicates')).toEqual([1, 1, 1, 1]);
      expect(await sighting(other, 'duplicates')).toMatchObject({ seen: 1 });
    });

    it('writes nothing of what fails, all that is beside it once, and serves the next batch', async () => {
      const recorder = createRecorder(db.database);
      await recorder.record(createEntry({ kid: 'batch', id: 'same' }));
      const batch = ['a', 'b', 'same', 'c'].map((id) =>
        createEntry({ kid: 'batch', id, nonce: `batch-${id}` }),
      );
      const failed = await Promise.allSettled(batch.map((entry) => recorder.record(entry)));
      expect(failed.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
      expect(await counts(other, 'batch')).toEqual([4, 1, 1, 4]);
      expect(await sighting(other, 'batch')).toMatchObject({ seen: 4 });
      const next = ['d', 'retried'].map((id) =>
        createEntry({ kid: 'batch', id, nonce: id === 'd' ? id : 'batch-same' }),
      );
      expect(await Promise.all(next.map((entry) => recorder.record(entry)))).toEqual(
        Array(2).fill('recorded'),
      );
    });

    it('adds up the sightings of a batch, of later ones and of other nodes, whatever their order', async () => {
      const recorder = createRecorder(db.database);
      const sight = (decidedAt: number, by = recorder) =>
        by.record(createEntry({ kid: 'often', id: `o${decidedAt}`, decidedAt }));
      await Promise.all([5, 1, 9, 3].map((ms) => sight(NOW + ms)));
      expect(await sighting(other, 'often')).toEqual({ first_at: NOW + 1, last_at: NOW + 9, seen: 4 });
      await sight(NOW + 100, createRecorder(other));
      await sight(NOW + 50);
      expect(await sighting(other, 'often')).toEqual({ first_at: NOW + 1, last_at: NOW + 100, seen: 6 });
      expect(await counts(other, 'often')).toEqual([6, 1, 1, 6]);
    });

    it('indexes the visitorId of a new epoch beside the old one', async () => {
      const recorder = createRecorder(db.database);
      await recorder.record(createEntry({ kid: 'epochs', id: 'e1', epoch: 680 }));
      await recorder.record(createEntry({ kid: 'epochs', id: 'e2', epoch: 680 }));
      await recorder.record(createEntry({ kid: 'epochs', id: 'e3', epoch: 681 }));
      const rows = await other.read('visitor_index').where({ kid: 'epochs' }).orderBy('epoch');
      expect(rows.map((row) => [row.durable, row.epoch])).toEqual([
        ['durable-1', 680],
        ['durable-1', 681],
      ]);
      expect(new Set(rows.map((row) => row.visitor_id)).size).toBe(2);
    });

    it('takes any text in a verdict: NUL, lone surrogates, other scripts', async () => {
      const purposes = ['a\u0000b', '\ud800', 'Ünïcödé', '🐢', "'; DROP TABLE decisions; --", '?'];
      const verdict = { consentState: createConsentState({ purposes }) };
      await createRecorder(db.database).record(createEntry({ kid: 'unicode', id: 'u1', verdict }));
      const stored = await findDecision(other, 'unicode', 'req_u1');
      expect(stored?.verdict.consentState.purposes).toEqual(purposes);
    });

    it('records a thousand at once, each whole', async () => {
      const recorder = createRecorder(db.database);
      const entries = Array.from({ length: 1000 }, (_, i) =>
        createEntry({ kid: 'many', id: `m${i}`, durable: `device-${i % 10}`, decidedAt: NOW + i }),
      );
      const answers = await Promise.all(entries.map((entry) => recorder.record(entry)));
      expect(new Set(answers)).toEqual(new Set(['recorded']));
      expect(await counts(other, 'many')).toEqual([1000, 10, 10, 1000]);
      const seenCounts = await other.read('sightings').where({ kid: 'many' }).pluck('seen');
      expect(seenCounts).toEqual(Array(10).fill(100));
    });

    it('is idle when all that was handed over is written', async () => {
      await ensureTenant(db.database, 'idle');
      const recorder = wholeRecorder(db.database);
      const pending = Array.from({ length: 50 }, (_, i) =>
        sight(recorder, { kid: 'idle', id: `idle-${i}`, device: { durable: `d${i}` } }),
      );
      await recorder.idle();
      expect(await counts(other, 'idle')).toEqual([50, 50, 50, 50]);
      await Promise.all(pending);
    });
  });
}
