import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config.ts';
import { createEmbed } from '../../../src/consent/banner-store.ts';
import { createEvidenceService } from '../../../src/rights/evidence/evidence-service.ts';
import { createServices, loadTenants } from '../../../src/services.ts';
import { KID } from '../../support/constants.ts';
import { ALICE, day, startWithPeople } from './support.ts';

it('reports progress in each pass over the log, up to the number of its entries', async () => {
  const { api } = await startWithPeople();
  const config = loadConfig({ environment: { GPD_DATA_DIR: api.gpd.dataDir }, flags: {} });
  const services = await createServices(config);
  try {
    await loadTenants(services);
    const service = createEvidenceService({ ...services, embed: createEmbed() });
    const passesOf = async (principal: string | null) => {
      const passes: number[] = [];
      const request = { from: Date.parse(day(-1)), to: Date.parse(day(2)), principal, request: null };
      const actor = { role: 'operator', ref: 'test' } as const;
      const onProgress = (done: number, total: number): number => passes.push(Math.round((5 * done) / total));
      await service.make(KID, request, actor, new PassThrough().resume(), { onProgress });
      return passes;
    };
    // The scan, entries, openings, tombstones, receipts.
    expect(await passesOf(null)).toEqual([1, 2, 3, 4, 5]);
    // The tombstone of a person needs no pass.
    expect(await passesOf(ALICE)).toEqual([1, 2, 3, 5]);
  } finally {
    await services.database.close();
    await api.stop();
  }
});
