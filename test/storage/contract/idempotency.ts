import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AppendRequest } from '../../../src/consent/ports.ts';
import type { Database } from '../../../src/storage/db.ts';
import { readEntries } from '../../../src/storage/ledger-read.ts';
import { NOW } from '../../support/make.ts';
import { appender, DAY_MS, makeRequest } from './consent-support.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from './database.ts';

export function idempotencyContract(make: MakeDatabase): void {
  describe('consent with an Idempotency-Key', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const size = async (kid: string): Promise<number> => (await readEntries(other, kid, 0, 1000)).length;
    const idempotency = (key: string, bodyHash = 'body', caller = 'key-1') => ({ caller, key, bodyHash });

    it('answers again what it answered, and appends nothing', async () => {
      const kid = await addTenant(db.database, 'again');
      const request = makeRequest(kid, { idempotency: idempotency('k') });
      const first = await appender(db.database).append(request);
      expect(await appender(other).append({ ...request, now: NOW + DAY_MS - 1 })).toEqual(first);
      expect(await size(kid)).toBe(1);
    });

    it('is a conflict with another body, and another caller’s key is another key', async () => {
      const kid = await addTenant(db.database, 'conflict');
      const write = (key: AppendRequest['idempotency']) =>
        appender(db.database).append(makeRequest(kid, { idempotency: key }));
      await write(idempotency('k'));
      expect(await write(idempotency('k', 'another body'))).toBe('conflict');
      expect(await write(idempotency('k', 'body', 'key-2'))).not.toBe('conflict');
      expect(await write(idempotency('k2', 'another body'))).not.toBe('conflict');
      expect(await size(kid)).toBe(3);
    });

    it('is forgotten after 24 hours', async () => {
      const kid = await addTenant(db.database, 'forgotten');
      const request = makeRequest(kid, { idempotency: idempotency('k') });
      await appender(db.database).append(request);
      await appender(other).append({ ...request, now: NOW + DAY_MS });
      expect(await size(kid)).toBe(2);
    });

    it('appends once however many nodes and batches carry it at once', async () => {
      const kid = await addTenant(db.database, 'once');
      const nodes = [appender(db.database), appender(other)];
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          nodes[i % 2]!.append(
            makeRequest(kid, { idempotency: idempotency('k', i < 18 ? 'body' : 'other') }),
          ),
        ),
      );
      expect(await size(kid)).toBe(1);
      const kinds = new Set(answers.map((answer) => JSON.stringify(answer)));
      expect(kinds.size).toBe(2);
      expect(kinds.has('"conflict"')).toBe(true);
    });
  });
}
