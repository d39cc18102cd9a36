import { describe, expect, it } from 'vitest';
import { listBanners, publishBanner, type ShownBanner } from '../../../src/consent/banner-store.ts';
import { readEntries } from '../../../src/log/entries-store.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';

const SCRIPT = 'a'.repeat(64);
const NEWER_SCRIPT = 'b'.repeat(64);

export function bannerContract(make: MakeDatabase): void {
  describe('what the banner showed', () => {
    const { db, other } = twoNodes(make);

    const shown = (kid: string, over: Partial<ShownBanner> = {}): ShownBanner => ({
      kid,
      revision: 1,
      texts: '{"title":"A"}',
      script: SCRIPT,
      policyVersion: 0,
      ...over,
    });
    const bodies = async (kid: string): Promise<unknown[]> =>
      (await readEntries(other, kid, 0, 100)).map(({ entry }) => JSON.parse(entry) as unknown);

    it('is said once, however many nodes show it at once and however often', async () => {
      const kid = await addTenant(db.database, 'shown-race');
      const nodes = [db.database, other, db.database, other];
      const first = await Promise.all(nodes.map((node) => publishBanner(node, shown(kid), NOW)));
      expect(first.filter((entry) => entry !== null)).toHaveLength(1);
      // Another key, another revision: nothing that is shown.
      expect(await publishBanner(other, shown(kid, { revision: 7 }), NOW)).toBeNull();
      expect(await bodies(kid)).toHaveLength(1);
    });

    it('is said again when it changes, and when it changes back', async () => {
      const kid = await addTenant(db.database, 'shown-change');
      const changes = [
        shown(kid),
        shown(kid, { revision: 2, texts: '{"title":"B"}' }),
        shown(kid, { revision: 3 }),
        shown(kid, { revision: 3, script: NEWER_SCRIPT }),
      ];
      for (const change of changes) expect(await publishBanner(db.database, change, NOW)).not.toBeNull();
      expect((await listBanners(other, kid)).map(({ seq }) => seq)).toEqual([3, 2, 1, 0]);
    });

    it('is not said again by a node that polls late, or runs the older script for a while', async () => {
      const kid = await addTenant(db.database, 'shown-late');
      await publishBanner(db.database, shown(kid), NOW);
      await publishBanner(db.database, shown(kid, { revision: 2, texts: '{"title":"B"}' }), NOW);
      expect(await publishBanner(other, shown(kid), NOW)).toBeNull();
      const newer = shown(kid, { revision: 2, texts: '{"title":"B"}', script: NEWER_SCRIPT });
      expect(await publishBanner(db.database, newer, NOW)).not.toBeNull();
      const older = shown(kid, { revision: 2, texts: '{"title":"B"}' });
      expect(await publishBanner(other, older, NOW)).toBeNull();
      expect(await publishBanner(db.database, newer, NOW)).toBeNull();
      expect(await bodies(kid)).toHaveLength(3);
    });
  });
}
