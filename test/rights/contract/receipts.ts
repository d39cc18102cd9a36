import { inspect } from 'node:util';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { HOUR, MINUTE } from '../../../src/lib/clock.ts';
import { readJobFailures } from '../../../src/ops/job-store.ts';
import { KEEP_NOTHING } from '../../../src/rights/erase/erase-service.ts';
import { emptyTally, scopeResults } from '../../../src/rights/erase/erasure-service.ts';
import {
  insertErasure,
  receiptOfRequest,
  type StoredErasure,
} from '../../../src/rights/erase/receipts-store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { createHouse } from '../../ops/contract/house.ts';
import { tempDir } from '../../support/command.ts';
import { NOW } from '../../support/make.ts';
import { eraserOn, tombstonesOf } from '../support/eraser.ts';

const HELD_BACK = 'ref-of-anna';
/** A page fault, a partial restore or JSON of another shape leaves rows like these. */
const DAMAGE = {
  era_b1: { scopes: `[{"scope":"sightings","basis":"${HELD_BACK}` },
  era_c1: { refs: `${HELD_BACK}"}]` },
  era_c2: { refs: `{"refs":"${HELD_BACK}","keep":{}}` },
  era_c3: { scopes: `[null,"${HELD_BACK}"]` },
} as const;

/** One stored erasure that cannot be read holds up no other. */
export function receiptContract(make: MakeDatabase): void {
  describe('stored erasures', () => {
    let db: TestDatabase;
    let dataDir: string;
    const update = (receiptId: string, row: object): Promise<unknown> =>
      db.database.transaction((tx) => tx('erasures').where({ receipt_id: receiptId }).update(row));
    const add = (receiptId: string, state: StoredErasure['state'], erasedAt = NOW): Promise<void> => {
      const kid = { a: 'aaa', b: 'bbb', c: 'ccc' }[receiptId[4] as 'a' | 'b' | 'c'];
      const erasure = { receiptId, kid, subject: 's', requestedBy: 'dpo', erasedAt, state } as const;
      return insertReceipt(erasure);
    };
    const insertReceipt = (
      fields: Omit<StoredErasure, 'scopes' | 'refs' | 'keep' | 'filesCleanAt'> & Partial<StoredErasure>,
    ) => {
      const plain = { scopes: scopeResults(emptyTally()), refs: [], keep: KEEP_NOTHING, filesCleanAt: null };
      return db.database.transaction((tx) => insertErasure(tx, { ...plain, ...fields }));
    };
    const inState = (state: string): Promise<string[]> =>
      db.database.read('erasures').where({ state }).orderBy('receipt_id').pluck('receipt_id');
    const eraser = () => eraserOn(db.database, dataDir, () => NOW + HOUR, { tenantOf: () => undefined });

    beforeEach(async () => {
      db = await make();
      onTestFinished(() => db.close());
      dataDir = tempDir('receipts');
      for (const kid of ['aaa', 'bbb', 'ccc']) await addTenant(db.database, kid);
      await add('era_b1', 'open');
      await add('era_c1', 'logged');
      await add('era_c2', 'logged', NOW + 1);
      await add('era_c3', 'open', NOW + 2);
      await add('era_a1', 'open', NOW + 3);
      await add('era_b2', 'open', NOW + 4);
      await add('era_c4', 'logged', NOW + 5);
      for (const [id, row] of Object.entries(DAMAGE)) await update(id, row);
    });

    it('the receipt of a request is the latest of its subject, or one since then that names the request', async () => {
      const insert = (receiptId: string, over: Partial<StoredErasure> = {}) => {
        const plain = { kid: 'aaa', subject: 'req-1', requestedBy: 'subject', erasedAt: NOW } as const;
        return insertReceipt({ ...plain, state: 'logged', receiptId, ...over });
      };
      const find = async (over: object = {}) => {
        const request = { kid: 'aaa', subject: 'req-1', ref: 'ref_of-1', since: NOW, ...over };
        return (await receiptOfRequest(db.database.read, request))?.receiptId ?? null;
      };
      expect(await find()).toBeNull();
      // The receipt of a device is found by its reference alone, and only within the time limit.
      const refs = ['ref-of-2', 'ref_of-1'].map((ref) => ({ kind: 'request' as const, ref }));
      await insert('era_a2', { subject: 'device', refs });
      expect(await find()).toBe('era_a2');
      expect(await find({ since: NOW + 1 })).toBeNull();
      expect(await find({ ref: 'ref_of' })).toBeNull();
      expect(await find({ kid: 'bbb' })).toBeNull();
      await insert('era_a3', { erasedAt: NOW + 1 });
      await insert('era_a4', { erasedAt: NOW + 1 });
      await insert('era_a5', { kid: 'bbb', erasedAt: NOW + 9 });
      expect(await find()).toBe('era_a4');
      expect(await find({ since: NOW + 9 })).toBe('era_a4');
    });

    it('every other one is finished; of each tenant one complaint, until it is mended', async () => {
      const house = createHouse(db.database, NOW, {
        resumeErasures: async () => (await eraser().resumeStale()).failures,
      });
      expect(await house.round()).toEqual(['resume-erasures bbb', 'resume-erasures ccc']);
      expect(await inState('done')).toEqual(['era_a1', 'era_b2', 'era_c4']);
      const buried = await tombstonesOf(db.database, dataDir);
      expect(buried.map(({ receiptId }) => receiptId)).toEqual(['era_a1', 'era_b2']);
      expect(await inState('open')).toEqual(['era_b1', 'era_c3']);
      const failing = { job: 'resume-erasures', reason: 'UnreadableErasure', since: NOW + MINUTE };
      expect(await readJobFailures(db.database)).toMatchObject([
        { ...failing, kid: 'bbb' },
        { ...failing, kid: 'ccc' },
      ]);
      expect(house.swept().completeAt).toBeNull();

      expect(await house.round()).toEqual([]);
      await update('era_b1', { scopes: '[]' });
      expect(await house.round()).toEqual([]);
      expect(await inState('done')).toContain('era_b1');
      expect((await readJobFailures(db.database)).map(({ kid }) => kid)).toEqual(['ccc']);
      await update('era_b1', { ...DAMAGE.era_b1, state: 'open', files_clean_at: null });
      expect(await house.round()).toEqual(['resume-erasures bbb']);
    });

    it('no error quotes the row', async () => {
      const { receipts, failures } = await eraser().resume();
      expect(receipts.map(({ receiptId }) => receiptId)).toEqual(['era_a1', 'era_b2', 'era_c4']);
      expect(failures.map(({ kid, error }) => `${kid}: ${(error as Error).message}`)).toEqual(
        ['bbb b1', 'ccc c1', 'ccc c2', 'ccc c3'].map(
          (row) => `${row.replace(' ', ': the stored receipt era_')} cannot be read; restore a backup`,
        ),
      );
      const status = eraser().status('era_c1');
      await expect(status).rejects.toThrow('era_c1');
      const errors = [...failures, await status.catch((error: unknown) => error)];
      expect(inspect(errors, { depth: 9, showHidden: true })).not.toContain(HELD_BACK);
      // A tenant's list has the others, and names it.
      const listed = await eraser().list('ccc', { limit: 3 });
      expect(listed.receipts.map(({ receiptId }) => receiptId)).toEqual(['era_c4']);
      expect(listed.unreadable).toEqual(['era_c3', 'era_c2']);
    });
  });
}
