import { describe, expect, it } from 'vitest';
import { isoTime } from '../../../src/lib/clock.ts';
import type { ConsentChoice } from '../../../src/schema/consent.ts';
import { addTenant, type MakeDatabase } from '../../db/contract/database.ts';
import { NOW } from '../../support/make.ts';
import { twoNodes } from '../../support/started.ts';
import { appender, createRequest } from './consent-support.ts';

export function termsContract(make: MakeDatabase): void {
  describe('an imported record', () => {
    const { db, other } = twoNodes(make);

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
