import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publishPolicy } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/db.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { NOW } from '../../support/make.ts';
import { termsOf } from './consent-support.ts';

export function termsContract(make: MakeDatabase): void {
  describe('purposes, policies and sessions', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

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
