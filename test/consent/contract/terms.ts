import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publishPolicy } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/engine.ts';
import { isoTime } from '../../../src/lib/clock.ts';
import type { ConsentChoice } from '../../../src/schema/consent.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { NOW } from '../../support/make.ts';
import { appender, createRequest, termsOf } from './consent-support.ts';

export function termsContract(make: MakeDatabase): void {
  describe('purposes, policies and sessions', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    it('compares an imported record with what is known, by the time that it names', async () => {
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

    it('gives no version twice when two nodes publish at once', async () => {
      const kid = await addTenant(db.database, 'publish-race');
      const published = await Promise.all(
        [db.database, other, db.database, other].map((node) =>
          publishPolicy(node, termsOf(kid), { text: 't', material: false }, operatorAt(NOW)),
        ),
      );
      expect(new Set(published.map((policy) => policy?.version))).toEqual(new Set([1, 2, 3, 4]));
    });
  });
}
