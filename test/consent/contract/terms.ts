import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listPolicies, publishPolicy, savePurposes } from '../../../src/consent/terms-store.ts';
import type { Database } from '../../../src/db/db.ts';
import { isoTime } from '../../../src/lib/clock.ts';
import { sha256 } from '../../../src/lib/crypto.ts';
import { readEntries } from '../../../src/log/entries.ts';
import type { ConsentChoice } from '../../../src/schema/consent.ts';
import { firstPurpose } from '../../../src/tenants/purposes.ts';
import { readSnapshot } from '../../../src/tenants/snapshot-store.ts';
import { makeTenantStore } from '../../../src/tenants/tenant-store.ts';
import { addTenant, type MakeDatabase, type TestDatabase } from '../../db/contract/database.ts';
import { operatorAt } from '../../support/act.ts';
import { NOW } from '../../support/make.ts';
import { appender, makeRequest, termsOf } from './consent-support.ts';

const ads = { ...firstPurpose(), id: 'ads', title: 'Werbung für „Kunden“' };

export function termsContract(make: MakeDatabase): void {
  describe('purposes, policies and sessions', () => {
    let db: TestDatabase;
    let other: Database;
    beforeAll(async () => {
      db = await make();
      other = await db.connect();
    });
    afterAll(() => db.close());

    const types = async (kid: string): Promise<unknown[]> =>
      (await readEntries(other, kid, 0, 100)).map(
        ({ entry }) => (JSON.parse(entry) as { type: string }).type,
      );

    it('defines purposes in the open, and puts a new form in place of the old', async () => {
      const kid = await addTenant(db.database, 'purposes');
      expect(
        await savePurposes(db.database, termsOf(kid), [firstPurpose(), ads], operatorAt(NOW)),
      ).toMatchObject([{ seq: 0 }, { seq: 1 }]);
      await savePurposes(other, termsOf(kid), [{ ...ads, gpc: 'ignore', ttlDays: 1 }], operatorAt(NOW));
      expect(await makeTenantStore(other).purposes(kid)).toEqual([
        { ...ads, gpc: 'ignore', ttlDays: 1 },
        firstPurpose(),
      ]);
      expect(await types(kid)).toEqual(['purpose.defined', 'purpose.defined', 'purpose.defined']);
      expect(await savePurposes(db.database, termsOf('nobody'), [ads], operatorAt(NOW))).toBeNull();
    });

    it('compares an imported record with what is known, by the time that it names', async () => {
      const kid = await addTenant(db.database, 'imported');
      const importing = (at: number | null, choice: ConsentChoice) => {
        const request = makeRequest(kid, { choice });
        const [entry] = request.entries;
        const record = at === null ? {} : { recordedAt: isoTime(at) };
        const detail = { ...entry!.detail, source: 'import', ...record } as const;
        const imported = { recordedAt: at, evidence: undefined };
        return appender(other).append({ ...request, entries: [{ ...entry!, detail }], imported });
      };
      const written = { entries: [expect.objectContaining({ purpose: 'ads' })] as unknown };
      expect(await importing(null, 'granted')).toEqual(written);
      expect(await importing(NOW - 5, 'granted')).toEqual(written);
      expect(await importing(NOW - 5, 'granted')).toBe('outdated');
      expect(await importing(NOW - 5, 'withdrawn')).toEqual(written);
      await appender(db.database).append(makeRequest(kid, { now: NOW }));
      expect(await importing(NOW - 1, 'withdrawn')).toBe('outdated');
    });

    it('publishes policies as versions 1, 2, 3, with the hash of the exact text', async () => {
      const kid = await addTenant(db.database, 'policies');
      const text = 'We use „cookies“.\r\n';
      const first = await publishPolicy(db.database, termsOf(kid), { text, material: true }, operatorAt(NOW));
      expect(first).toMatchObject({
        version: 1,
        sha256: sha256(text).toString('hex'),
        material: true,
        seq: 0,
      });
      await publishPolicy(other, termsOf(kid), { text: `${text} `, material: false }, operatorAt(NOW + 1));
      expect(await listPolicies(other, kid)).toEqual([
        { version: 1, text, sha256: sha256(text).toString('hex'), material: true, publishedAt: NOW },
        {
          version: 2,
          text: `${text} `,
          sha256: sha256(`${text} `).toString('hex'),
          material: false,
          publishedAt: NOW + 1,
        },
      ]);
      expect(await types(kid)).toEqual(['policy.published', 'policy.published']);
      expect(
        await publishPolicy(db.database, termsOf('nobody'), { text, material: true }, operatorAt(NOW)),
      ).toBeNull();
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

    it('shows both to who polls', async () => {
      const kid = await addTenant(db.database, 'polled');
      const changes = [
        () => savePurposes(db.database, termsOf(kid), [ads], operatorAt(NOW)),
        () => publishPolicy(db.database, termsOf(kid), { text: 't', material: true }, operatorAt(NOW)),
      ];
      for (const change of changes) {
        const { revision } = await readSnapshot(other, -1);
        await change();
        const { changed } = await readSnapshot(other, revision);
        expect(changed.map(({ kid }) => kid)).toEqual([kid]);
      }
      const { changed } = await readSnapshot(other, -1);
      const own = changed.find((one) => one.kid === kid);
      expect(own?.purposes).toEqual([ads]);
      expect(own?.consentPolicies).toMatchObject([{ version: 1, material: true }]);
    });
  });
}
