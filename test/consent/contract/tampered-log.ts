import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Knex } from 'knex';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import type { Config } from '../../../src/config.ts';
import { macTerms, publishPolicy, savePurposes } from '../../../src/consent/terms-store.ts';
import { verifyLog } from '../../../src/consent/verify-service.ts';
import type { Database } from '../../../src/db/engine.ts';
import { createMasterKey, LEDGER_SECRET, tenantSecretContext } from '../../../src/keys/master-key.ts';
import { addCommitments, anchorBody, impersonalEntry, personalEntry } from '../../../src/ledger/entries.ts';
import { appendLeaves, EMPTY_FRONTIER, encodeFrontier, leafHash } from '../../../src/ledger/merkle.ts';
import { createNoteSigner, signCheckpoint } from '../../../src/ledger/note.ts';
import { DAY, HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { checkpointFile, createCheckpointBook } from '../../../src/log/checkpoint-files.ts';
import { currentCheckpoint, keepCheckpoints, NotSigned } from '../../../src/log/checkpoint-service.ts';
import { newestCheckpoint, thinCheckpoints } from '../../../src/log/checkpoint-store.ts';
import { readEntries, readHead } from '../../../src/log/entries-store.ts';
import { addTenant } from '../../../src/ops/new-tenant-service.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import { createFirstPurpose } from '../../../src/tenants/purposes.ts';
import { readTenantSecret } from '../../../src/tenants/secrets-store.ts';
import type { MakeDatabase, TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { tempDir } from '../../support/command.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { append, createAppend, createAppender, macOf, WRAP_KEY } from '../app/store/fixture.ts';

const SECRET = Buffer.alloc(32, 3);
const masterKey = createMasterKey(Buffer.alloc(32, 5), randomBytes);
const BEGIN = Math.floor(NOW / HOUR) * HOUR;
const STATE = 'state-changed';
const OPENING = 'opening-changed';
const POLICY = 'policy-changed';
const ENTRY = 'entry-changed';
const NOT_EXTENDED = 'checkpoint-not-extended';

/** An attacker here writes the database and has no key. */
export function tamperedLogContract(make: MakeDatabase): void {
  describe('a log that somebody rewrote without its keys', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    /** A node with a data directory of its own. */
    function createNode(kid: string, database: Database, dataDir = tempDir('node')) {
      let now = NOW;
      const book = createCheckpointBook(dataDir, SECRET);
      const keysOf = async () => {
        const wrapped = (await readTenantSecret(other, kid, LEDGER_SECRET)) ?? '';
        const seed = masterKey.unwrap(wrapped, tenantSecretContext(kid, LEDGER_SECRET));
        const signer = createNoteSigner(`gpd.example/ledger/${kid}`, seed);
        return { signer, principalWrap: WRAP_KEY, stateMac: macOf(kid) };
      };
      const deps = async () => {
        const keys = await keysOf();
        return { database, book, tenantOf: () => keys, clock: () => now };
      };
      return {
        file: checkpointFile(dataDir),
        book,
        wait: (ms: number) => {
          now += ms;
        },
        /** Over all entries. */
        async sign() {
          now += MINUTE;
          const head = await readHead(database, kid);
          return currentCheckpoint(await deps(), kid, head?.size ?? 0);
        },
        keep: async () => keepCheckpoints(await deps(), kid),
        /** A verifier of another process has read nothing yet. */
        async codes() {
          const trusted = { book: createCheckpointBook(dataDir, SECRET), keys: await keysOf() };
          const problems = (await verifyLog(database, kid, { trusted, now: Infinity }))?.problems ?? [];
          return [...new Set(problems.map(({ code }) => code))].sort();
        },
      };
    }
    type Node = ReturnType<typeof createNode>;

    /** anna grants and withdraws, bert grants; a policy is published; all of it is signed. */
    async function createLog(kid: string): Promise<Node> {
      const node = createNode(kid, db.database);
      const config = { data_dir: dirname(node.file), base_url: 'https://gpd.example' } as Config;
      const store = { database: db.database, masterKey, serverSecret: SECRET };
      await addTenant(store, config, { kid, origins: [], now: NOW });
      await db.database.transaction((tx) => macTerms(tx, { kid, stateMac: macOf(kid) }));
      await macEntries(kid);
      await publishPolicy(
        db.database,
        { kid, stateMac: macOf(kid) },
        { text: 'We ask.', material: true },
        operatorAt(NOW),
      );
      const appender = createAppender(db.database);
      for (const choice of ['granted', 'withdrawn'] as const)
        await append(appender, createAppend(kid, { choice }));
      await append(appender, createAppend(kid, { principalId: 'bert' }));
      await node.sign();
      expect(await node.codes()).toEqual([]);
      return node;
    }
    /** The entries of a new tenant carry MACs of a key that this test does not know. */
    async function macEntries(kid: string): Promise<void> {
      for (const { seq, hash } of await readEntries(other, kid, 0, 10))
        await write((tx) =>
          tx('ledger_entries')
            .where({ kid, seq })
            .update({ mac: macOf(kid).ofEntry(seq, hash) }),
        );
    }
    const write = (work: (tx: Knex.Transaction) => PromiseLike<unknown>): Promise<unknown> =>
      db.database.transaction(async (tx) => work(tx));

    const definePurpose = (kid: string, database = db.database) =>
      savePurposes(database, { kid, stateMac: macOf(kid) }, [createFirstPurpose()], operatorAt(NOW));

    /** The head as it was at a size, with no word of a checkpoint. */
    async function rollBack(kid: string, size: number): Promise<void> {
      const entries = await readEntries(other, kid, 0, size);
      const leaves = entries.map(({ hash }) => Buffer.from(hash, 'hex'));
      const { frontier } = appendLeaves(EMPTY_FRONTIER, leaves);
      const head = { size, frontier: encodeFrontier(frontier), head_hash: entries.at(-1)?.hash };
      await write(async (tx) => {
        await tx('ledger_entries').where({ kid }).where('seq', '>=', size).delete();
        await tx('consent_openings').where({ kid }).where('seq', '>=', size).delete();
        await tx('consent_state').where({ kid }).where('seq', '>=', size).delete();
        await tx('checkpoints').where({ kid }).delete();
        await tx('ledger_heads').where({ kid }).update(head);
      });
    }

    it('with entries taken off its end is signed no more, and verify says so', async () => {
      const kid = 'rolled-back';
      const node = await createLog(kid);
      await rollBack(kid, 5);
      await expect(node.sign()).rejects.toMatchObject({ problem: 'checkpoint-not-extended', status: 503 });
      expect(await node.codes()).toContain('checkpoint-not-extended');
      // Nor when as many other entries were put in their place.
      await definePurpose(kid);
      await definePurpose(kid);
      await expect(node.sign()).rejects.toThrow(NotSigned);
      expect(await node.codes()).toContain('checkpoint-not-extended');
      expect(await newestCheckpoint(other, kid)).toBeNull();
    });

    it('is signed once an hour where nobody asks, and at once where somebody does', async () => {
      const kid = 'hourly';
      const node = await createLog(kid);
      const last = async () => (await node.book.all((await readHead(other, kid))?.vkey ?? '')).at(-1)?.size;
      await definePurpose(kid);
      await node.keep();
      expect(await last()).toBe(6);
      node.wait(HOUR);
      await node.keep();
      expect(await last()).toBe(7);
      const lines = readFileSync(node.file, 'utf8');
      node.wait(HOUR);
      await node.keep();
      // Nothing new, and no line for it.
      expect(readFileSync(node.file, 'utf8')).toBe(lines);
      expect(await other.read('checkpoints').where({ kid }).orderBy('size').pluck('size')).toHaveLength(3);
    });

    it('keeps of each log one checkpoint a day, those of the last day, and the last one', async () => {
      const kid = 'thinned';
      await createLog(kid);
      const signer = createNoteSigner(`gpd.example/ledger/${kid}`, Buffer.alloc(32, 8));
      const book = createCheckpointBook(tempDir('thin'), SECRET, 1);
      const day = Math.floor(NOW / DAY) * DAY;
      const times = [day - 9 * DAY, day - 9 * DAY + 1, day - 9 * DAY + 2, day - 5 * DAY, day, day + 1];
      let last = null;
      for (const [i, at] of times.entries()) {
        const text = signCheckpoint(i + 1, Buffer.alloc(32, i), signer);
        expect(await book.keep({ kid, vkey: signer.vkey, text, signedAt: at }, last)).toBe(true);
        last = await book.last(signer.vkey);
        await write((tx) => tx('checkpoints').insert({ kid, size: 100 + i, at, note: text }));
      }
      expect(await book.keep({ kid, vkey: signer.vkey, text: 'late', signedAt: NOW }, null)).toBe(false);
      await book.thin(day + 2);
      expect((await book.all(signer.vkey)).map(({ size }) => size)).toEqual([1, 4, 5, 6]);
      await thinCheckpoints(db.database, day + 2);
      const rows = await other
        .read('checkpoints')
        .where({ kid })
        .where('size', '>=', 100)
        .orderBy('size')
        .pluck('size');
      expect(rows.map(Number)).toEqual([102, 103, 104, 105]);
    });

    it.each<[string, (file: string) => void]>([
      ['is missing', (file) => rmSync(file)],
      ['is empty', (file) => writeFileSync(file, '')],
      [
        'has a changed line',
        (file) => writeFileSync(file, readFileSync(file, 'utf8').replace('"at":"2', '"at":"1')),
      ],
      ['has a line of somebody else', (file) => appendFileSync(file, '{"v":1}\n')],
      [
        'is without its lock too',
        (file) => {
          for (const path of [file, `${file}.lock`]) rmSync(path);
        },
      ],
    ])('is not signed where checkpoints.log %s', async (damageTitle, damage) => {
      const kid = `file-${damageTitle.replaceAll(' ', '-')}`;
      const node = await createLog(kid);
      const whole = readFileSync(node.file);
      damage(node.file);
      // A node on PostgreSQL that was never there before begins with what the others signed.
      const begins = damageTitle.includes('lock') && db.database.kind === 'postgres';
      expect(await node.codes()).toEqual(begins ? [] : ['checkpoint-missing']);
      const after = createNode(kid, db.database, node.file.slice(0, -'/checkpoints.log'.length));
      if (begins) expect(await after.sign()).toMatchObject({ size: 6 });
      else await expect(after.sign()).rejects.toMatchObject({ problem: 'checkpoint-missing' });
      writeFileSync(node.file, whole);
      expect(
        await createNode(kid, db.database, node.file.slice(0, -'/checkpoints.log'.length)).codes(),
      ).toEqual([]);
    });

    it('is reported by every node by itself, and each keeps what the others signed', async () => {
      const kid = 'nodes';
      const first = await createLog(kid);
      if (db.database.kind !== 'postgres') return;
      const second = createNode(kid, other);
      await second.keep();
      expect(await second.codes()).toEqual([]);
      await definePurpose(kid, other);
      await second.sign();
      await first.keep();
      const { vkey } = (await readHead(other, kid)) ?? { vkey: '' };
      for (const { book } of [first, second]) expect((await book.last(vkey))?.size).toBe(7);
      await rollBack(kid, 5);
      for (const node of [first, second]) await expect(node.sign()).rejects.toThrow(NotSigned);
    });

    type Tamper = (tx: Knex.Transaction, kid: string) => PromiseLike<unknown>;
    const update =
      (table: string, key: object, row: object): Tamper =>
      (tx, kid) =>
        tx(table)
          .where({ kid, ...key })
          .update(row);
    const insert =
      (table: string, row: object): Tamper =>
      (tx, kid) =>
        tx(table).insert({ kid, ...row });
    const remove =
      (table: string, key: object = {}): Tamper =>
      (tx, kid) =>
        tx(table)
          .where({ kid, ...key })
          .delete();
    const BERT = { principal: 'ref-bert' };
    const OTHER_DETAIL = '{"policyVersion":1,"gpc":false,"source":"backend","expiresAt":null}';
    const NOBODY = { principal: 'x', purpose: 'ads', choice: 'granted', policy_version: 1, expires_at: null };
    const OTHER_TREE = encodeFrontier({ size: 6, hashes: [Buffer.alloc(32), Buffer.alloc(32)] });
    const OTHER_VKEY = createNoteSigner('gpd.example/ledger/x', Buffer.alloc(32, 1)).vkey;
    const earlierState: Tamper = async (tx, kid) => {
      const [hash] = (await tx('ledger_entries').where({ kid, seq: 3 }).pluck('hash')) as string[];
      const granted = { choice: 'granted', expires_at: NOW + 1000, seq: 3, hash };
      await tx('consent_state').where({ kid, seq: 4 }).update(granted);
    };
    const noTrace: Tamper = async (tx, kid) => {
      for (const table of ['consent_openings', 'consent_state']) await remove(table, { seq: 5 })(tx, kid);
      await remove('consent_principals', BERT)(tx, kid);
    };
    const people: readonly [title: string, tamper: Tamper, ...codes: string[]][] = [
      [
        'a withdrawal that reads as a grant',
        update('consent_state', { seq: 4 }, { choice: 'granted' }),
        STATE,
      ],
      ['a state of an earlier entry', earlierState, STATE],
      ['a longer grant', update('consent_state', { seq: 5 }, { expires_at: NOW + DAY }), STATE],
      ['a state that is gone', remove('consent_state', { seq: 4 }), STATE],
      [
        'a state that nobody said',
        insert('consent_state', { ...NOBODY, at: NOW, seq: 5, hash: '00' }),
        STATE,
      ],
      ['an erasure that never was', update('consent_principals', BERT, { erased_at: NOW }), STATE],
      ['a key that is gone', update('consent_principals', BERT, { wrapped_key: null }), OPENING, STATE],
      ['a changed opening', update('consent_openings', { seq: 4 }, { detail: OTHER_DETAIL }), OPENING, STATE],
      [
        'an opening of another choice',
        update('consent_openings', { seq: 4 }, { choice: 'granted' }),
        OPENING,
        STATE,
      ],
      ['an opening of another person', update('consent_openings', { seq: 4 }, BERT), OPENING, STATE],
      ['an opening that is gone, with its state', noTrace, OPENING],
      ['an opening of no entry', update('consent_openings', { seq: 5 }, { seq: 99 }), OPENING, STATE],
      ['another text of a policy', update('consent_policies', {}, { text: 'We take.' }), POLICY],
      ['a policy that asks nobody again', update('consent_policies', {}, { material: false }), POLICY],
      ['a policy that is gone', remove('consent_policies'), POLICY],
      [
        'a policy that was never published',
        insert('consent_policies', { version: 2, text: 'x', sha256: 'y', material: true, published_at: NOW }),
        POLICY,
      ],
      ['another purpose', update('purposes', {}, { gpc: 'ignore' }), 'purpose-changed'],
      ['a purpose that is gone', remove('purposes'), 'purpose-changed'],
      ['another key', update('ledger_heads', {}, { vkey: OTHER_VKEY }), 'vkey-changed'],
      ['a changed entry', update('ledger_entries', { seq: 4 }, { entry: '{}' }), ENTRY],
      [
        'a frontier of another tree',
        update('ledger_heads', {}, { frontier: OTHER_TREE }),
        NOT_EXTENDED,
        ENTRY,
      ],
      ['a size of its own', update('ledger_heads', {}, { size: 5 }), ENTRY],
      ['no checkpoint beside it', remove('checkpoints'), 'checkpoint-missing'],
      ['a checkpoint of nobody', insert('checkpoints', { size: 4, at: NOW, note: 'forged' }), NOT_EXTENDED],
    ];

    // Both databases report the same problems of the same rows, so SQLite alone runs where no SQL differs.
    const isAsked = (): boolean => db.database.kind === 'sqlite';

    it.each(people)('shows %s', async (title, tamper, ...codes) => {
      if (!isAsked()) return;
      const kid = `tampered-${title.replaceAll(' ', '-').replace(',', '')}`;
      const node = await createLog(kid);
      await write((tx) => tamper(tx, kid));
      expect(await node.codes()).toEqual(codes);
    });

    /** Verdicts and audit rows of two hours, with one between that had none. */
    async function createSealed(kid: string): Promise<Node> {
      const node = await createLog(kid);
      const actor = { role: 'dpo', ref: 'dora' } as const;
      for (const at of [BEGIN, BEGIN + 2 * HOUR]) {
        for (const n of [1, 2])
          await createRecorder(db.database).record(
            createEntry({ kid, id: `${kid}-${n}-${at}`, decidedAt: at }),
          );
        await recordAudit(db.database, { kid, at, actor, action: 'dsar.exported', object: null, detail: {} });
      }
      for (const seal of [anchorVerdicts, anchorAudit])
        await seal(db.database, kid, BEGIN + 4 * HOUR, macOf(kid));
      expect(await node.codes()).toEqual([]);
      return node;
    }
    const tables = [
      ['decisions', 'verdict_seals', 'decided_at'],
      ['audit_log', 'audit_seals', 'at'],
    ] as const;
    const hourOf = (tx: Knex, kid: string, [table, , at]: readonly [string, string, string]) =>
      tx(table)
        .where({ kid })
        .where(at, '>=', BEGIN + 2 * HOUR)
        .where(at, '<', BEGIN + 3 * HOUR);

    it.each(tables)('shows an hour of %s that is gone, with its seal or without', async (...table) => {
      const kid = `hour-${table[0]}`;
      const node = await createSealed(kid);
      await write((tx) => hourOf(tx, kid, table).delete());
      expect(await node.codes()).toEqual(['rows-missing']);
      await write((tx) => tx(table[1]).where({ kid }).delete());
      expect(await node.codes()).toEqual(['rows-missing', 'seal-missing']);
    });

    it.each(tables)(
      'shows %s that were added to a sealed hour, or to one without any',
      async (table, _seals, at) => {
        if (!isAsked()) return;
        for (const [hour, name] of [
          [BEGIN, 'sealed'],
          [BEGIN + HOUR, 'empty'],
        ] as const) {
          const kid = `added-${table}-${name}`;
          const node = await createSealed(kid);
          await write(async (tx) => {
            const { seq: _seq, ...row } = (await tx(table).where({ kid }).first()) as Record<string, unknown>;
            const id = table === 'decisions' ? { request_id: `req_${kid}_forged` } : {};
            await tx(table).insert({ ...row, ...id, [at]: hour + 1 });
          });
          expect(await node.codes()).toContain('rows-added');
        }
      },
    );

    it.each(tables)('shows a seal of %s that is not the one in the log', async (_table, seals) => {
      if (!isAsked()) return;
      const kid = `seal-${seals}`;
      const node = await createSealed(kid);
      await write((tx) =>
        tx(seals)
          .where({ kid, hour: BEGIN })
          .update({ root: '00'.repeat(32) }),
      );
      expect(await node.codes()).toEqual(['seal-changed']);
    });

    it('distinguishes expired rows from missing rows', async () => {
      const kid = 'expired';
      const node = await createSealed(kid);
      const now = BEGIN + 10 * DAY;
      const retained = await deleteExpired(db.database, {
        kid,
        days: 9,
        now: now - DAY + 2 * HOUR,
        macs: macOf(kid),
      });
      expect(retained.decisions).toBe(2);
      expect(await node.codes()).toEqual([]);
      const entry = JSON.parse((await readEntries(other, kid, 0, 100)).at(-1)?.entry ?? '') as object;
      const before = new Date(BEGIN + 2 * HOUR).toISOString().replace('.000Z', 'Z');
      expect(entry).toMatchObject({
        type: 'retention.applied',
        purpose: null,
        body: { before, decisions: 2, audit: 0 },
      });
      expect(Object.keys((entry as { body: object }).body).sort()).toEqual(['audit', 'before', 'decisions']);
      // Nothing more is due, and no entry says so.
      const size = (await readHead(other, kid))?.size;
      await deleteExpired(db.database, { kid, days: 9, now: now - DAY + 2 * HOUR, macs: macOf(kid) });
      expect((await readHead(other, kid))?.size).toBe(size);
      await write((tx) => tx('decisions').where({ kid }).delete());
      expect(await node.codes()).toEqual(['rows-missing']);
    });

    /** An entry and the head after it, by SHA-256 alone. @param mac of another place, or of none */
    async function forge(kid: string, entry: Buffer, mac: string | null = null): Promise<void> {
      const head = await readHead(other, kid);
      if (!head) throw new Error('no log');
      const leaf = leafHash(entry);
      const { frontier } = appendLeaves(head.frontier, [leaf]);
      const hash = leaf.toString('hex');
      await write(async (tx) => {
        await tx('ledger_entries').insert({ kid, seq: head.size, hash, entry: entry.toString(), mac });
        const next = { size: frontier.size, frontier: encodeFrontier(frontier), head_hash: hash };
        await tx('ledger_heads').where({ kid }).update(next);
      });
    }
    const expectUnsigned = async (node: Node, problem: string) => {
      await expect(node.sign()).rejects.toMatchObject({ problem, status: 503 });
    };

    // Guards against: one forged entry excused the deletion of every verdict and audit row, and the server signed it.
    it('signs no forged retention, which explains rows that somebody took', async () => {
      const kid = 'forged-retention';
      const node = await createSealed(kid);
      await node.sign();
      const before = new Date(BEGIN + 30 * DAY).toISOString().replace('.000Z', 'Z');
      const at = BEGIN + 731 * DAY;
      const body = { before, decisions: 4, audit: 2 };
      await forge(kid, impersonalEntry({ type: 'retention.applied', at, purpose: null }, body));
      await write(async (tx) => {
        for (const table of ['decisions', 'audit_log', 'verdict_seals', 'audit_seals'])
          await tx(table).where({ kid }).delete();
      });
      expect(await node.codes()).toEqual(['entry-unauthenticated']);
      await expectUnsigned(node, 'entry-unauthenticated');
      // The next entry of gpd shows how far ahead the time of the forged one was.
      await definePurpose(kid);
      expect(await node.codes()).toEqual(['entry-unauthenticated', 'time-out-of-order']);
      await expectUnsigned(node, 'entry-unauthenticated');
    });

    it.each([
      ['verdicts.sealed', 'decisions'],
      ['audit.sealed', 'audit_log'],
    ] as const)('signs no second %s of an hour, which explains changed rows', async (type, table) => {
      const kid = `resealed-${table}`;
      const node = await createSealed(kid);
      await node.sign();
      const commitments = (await other.read(table).where({ kid }).limit(1).pluck('commitment')) as string[];
      const body = anchorBody(BEGIN, BEGIN + HOUR, addCommitments(EMPTY_FRONTIER, commitments));
      const entry = impersonalEntry({ type, at: NOW + 4 * HOUR, purpose: null }, { ...body });
      // Its MAC is one that gpd made for another entry.
      const [{ mac }] = (await other.read('ledger_entries').where({ kid, seq: 0 })) as [{ mac: string }];
      await forge(kid, entry, mac);
      expect(await node.codes()).toEqual(expect.arrayContaining(['entry-unauthenticated', 'hour-repeated']));
      await expectUnsigned(node, 'entry-unauthenticated');
    });

    it('signs no forged erasure, which explains missing openings', async () => {
      const kid = 'forged-erasure';
      const node = await createLog(kid);
      await write(async (tx) => {
        for (const table of ['consent_state', 'consent_openings', 'consent_principals'])
          await tx(table).where({ kid }).delete();
      });
      const opening = { key: randomBytes(32), salt: randomBytes(16), principalId: 'x' };
      const detail = { policyVersion: null, gpc: false, source: 'erasure', expiresAt: null } as const;
      await forge(
        kid,
        personalEntry({ type: 'subject.erased', at: NOW, purpose: null }, { ...opening, detail }),
      );
      expect(await node.codes()).toEqual(['entry-unauthenticated']);
      await expectUnsigned(node, 'entry-unauthenticated');
    });

    it('finds a retention that goes further than the shortest one, and an entry of tomorrow, whoever wrote them', async () => {
      const kid = 'implausible';
      const node = await createLog(kid);
      const before = new Date(BEGIN).toISOString().replace('.000Z', 'Z');
      const body = { before, decisions: 1, audit: 0 };
      const entry = impersonalEntry({ type: 'retention.applied', at: NOW, purpose: null }, body);
      const size = (await readHead(other, kid))?.size ?? 0;
      await forge(kid, entry, macOf(kid).ofEntry(size, leafHash(entry).toString('hex')));
      expect(await node.codes()).toEqual(['retention-implausible']);
      await expectUnsigned(node, 'retention-implausible');
      const ahead = await verifyLog(other, kid, { trusted: undefined, now: NOW - 2 * DAY });
      expect(ahead?.problems.map(({ code }) => code)).toContain('time-out-of-order');
    });

    // Guards against: the log was read from its beginning for every checkpoint.
    it('reads for a checkpoint only what came since the last one', async () => {
      const kid = 'since';
      const node = await createLog(kid);
      await write((tx) => tx('ledger_entries').where({ kid, seq: 1 }).update({ mac: null }));
      await definePurpose(kid);
      expect((await node.sign())?.size).toBe((await readHead(other, kid))?.size);
      expect(await node.codes()).toEqual(['entry-unauthenticated']);
    });
  });
}
