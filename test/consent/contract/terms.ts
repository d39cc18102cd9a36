import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/db/engine.ts';
import { isoTime } from '../../../src/lib/clock.ts';
import type { ConsentChoice } from '../../../src/schema/consent.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { NOW } from '../../support/make.ts';
import { appender, createRequest } from './consent-support.ts';

export function termsContract(make: MakeDatabase): void {
  describe('an imported record', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('is compared with what is known, by the time that it names', async () => {
      const kid = await addTenant(db.database, 'imported');
      const importing = (at: number | null, choice: ConsentChoice) => {
        const request = createRequest(kid, { choice });
        const [entry] = request.entries;
        const record = at === null ? {} : { recordedAt: isoTime(at) };
        const detail = { ...entry!.detail, source: 'import', ...record } as const;
        const imported = { recordedAt: at, evidence: undefined };
        return appender(other).append({ ...request, entries: [{ ...entry!, detail }], imported });
      };
      const imported = { entries: [expect.objectContaining({ purpose: 'ads' })] as unknown };
      expect(await importing(null, 'granted')).toEqual(imported);
      expect(await importing(NOW - 5, 'granted')).toEqual(imported);
      expect(await importing(NOW - 5, 'granted')).toBe('outdated');
      expect(await importing(NOW - 5, 'withdrawn')).toEqual(imported);
      await appender(db.database).append(createRequest(kid, { now: NOW }));
      expect(await importing(NOW - 1, 'withdrawn')).toBe('outdated');
    });
  });
}
