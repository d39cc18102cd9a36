import { randomBytes } from 'node:crypto';
import type { Knex } from 'knex';
import { expect, it } from 'vitest';
import { recordAudit } from '../../../src/audit/audit-store.ts';
import { verifyLog } from '../../../src/consent/verify-service.ts';
import { addCommitments, anchorBody, impersonalEntry, personalEntry } from '../../../src/ledger/entries.ts';
import { appendLeaves, EMPTY_FRONTIER, encodeFrontier, leafHash } from '../../../src/ledger/merkle.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { anchorAudit, anchorVerdicts } from '../../../src/log/anchors-store.ts';
import { readEntries, readHead } from '../../../src/log/entries-store.ts';
import { deleteExpired } from '../../../src/rights/retention/store.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';
import { macOf } from '../app/store/fixture.ts';
import type { LogNode, Logs } from './log-node.ts';

const BEGIN = Math.floor(NOW / HOUR) * HOUR;

/** Makes logs that hold verdicts and audit rows of two hours, with one between that had none. */
const sealedOn =
  ({ db, createLog }: Logs) =>
  async (kid: string): Promise<LogNode> => {
    const node = await createLog(kid);
    const actor = { role: 'dpo', ref: 'dora' } as const;
    const recorder = createRecorder(db.database);
    const entries = [BEGIN, BEGIN + 2 * HOUR].flatMap((at) =>
      [1, 2].map((n) => createEntry({ kid, id: `${kid}-${n}-${at}`, decidedAt: at })),
    );
    await Promise.all(entries.map((entry) => recorder.record(entry)));
    for (const at of [BEGIN, BEGIN + 2 * HOUR])
      await recordAudit(db.database, { kid, at, actor, action: 'dsar.exported', object: null, detail: {} });
    for (const seal of [anchorVerdicts, anchorAudit])
      await seal(db.database, kid, BEGIN + 4 * HOUR, macOf(kid));
    expect(await node.codes()).toEqual([]);
    return node;
  };

const TABLES = [
  ['decisions', 'verdict_seals', 'decided_at'],
  ['audit_log', 'audit_seals', 'at'],
] as const;

/** Rows of an anchored hour that were changed. */
export function forgedRows(logs: Logs): void {
  const { write } = logs;
  const createSealed = sealedOn(logs);

  it.each(TABLES)(
    'shows %s that were added to a sealed hour, or to one without any',
    async (table, _seals, at) => {
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

  it.each(TABLES)('shows a seal of %s that is not the one in the log', async (_table, seals) => {
    const kid = `seal-${seals}`;
    const node = await createSealed(kid);
    await write((tx) =>
      tx(seals)
        .where({ kid, hour: BEGIN })
        .update({ root: '00'.repeat(32) }),
    );
    expect(await node.codes()).toEqual(['seal-changed']);
  });
}

/** Rows of an anchored hour that are gone, and forged entries that would explain why. */
export function forgedEntries(logs: Logs): void {
  const { db, other, createLog, write, definePurpose } = logs;
  const createSealed = sealedOn(logs);
  const hourOf = (tx: Knex, kid: string, [table, , at]: readonly [string, string, string]) =>
    tx(table)
      .where({ kid })
      .where(at, '>=', BEGIN + 2 * HOUR)
      .where(at, '<', BEGIN + 3 * HOUR);

  it.each(TABLES)('shows an hour of %s that is gone, with its seal or without', async (...table) => {
    const kid = `hour-${table[0]}`;
    const node = await createSealed(kid);
    await write((tx) => hourOf(tx, kid, table).delete());
    expect(await node.codes()).toEqual(['rows-missing']);
    await write((tx) => tx(table[1]).where({ kid }).delete());
    expect(await node.codes()).toEqual(['rows-missing', 'seal-missing']);
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
  const expectUnsigned = async (node: LogNode, problem: string) => {
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
}
