import { beforeAll, describe, expect, it } from 'vitest';
import { INGEST } from '../support/expect.ts';
import { missingPostgres } from '../support/postgres.ts';
import { createLaterProgram } from '../support/program.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import type { Gpd } from '../support/server.ts';
import { sized } from '../support/sized.ts';
import { describeWithTool } from '../support/tools.ts';
import { countBy, createCaller } from './support/call.ts';
import { bearer, type Cluster, startCluster } from './support/cluster.ts';

/** Nodes of an older release go on while a newer one migrates beside them, and do not come back afterwards. */

/** The longest that a statement may take elsewhere is nine seconds. */
const LONG_SECONDS = sized('CLUSTER', 0, 11);
const LATER = '29991231_01_later.js';
const LATER_TEXT = `
export async function up(knex) {
  await knex.raw('SELECT pg_sleep(${LONG_SECONDS})');
  await knex.schema.alterTable('decisions', (t) => {
    t.text('later');
    t.index(['kid', 'later']);
  });
}
`;

describeWithTool('an upgrade, node after node', await missingPostgres(), () => {
  const call = createCaller();

  /** Asks the nodes for all that the load is on, until it is told to stop. @returns the statuses that came */
  function keepAsking(cluster: Cluster, nodes: readonly Gpd[]) {
    const statuses: string[] = [];
    let asking = true;
    const loops = nodes.map(async ({ url }, n) => {
      for (let i = 0; asking; i += 1) {
        const body = createBundle(cluster.target);
        const ingested = await call(url, { path: INGEST, headers: browserHeaders(), body });
        const granted = await call(url, {
          path: '/v1/consent/grant',
          headers: bearer(cluster.keys.secret),
          body: { principalId: `asked-${n}-${i % 20}`, purposes: ['device-identification'] },
        });
        const checked = await call(url, {
          path: '/v1/consent/can-process',
          headers: bearer(cluster.keys.secret),
          body: { principalId: `asked-${n}-${i % 20}`, purpose: 'device-identification' },
        });
        statuses.push(`ingest ${ingested.status}`, `grant ${granted.status}`, `check ${checked.status}`);
      }
    });
    return async (): Promise<Record<string, number>> => {
      asking = false;
      await Promise.all(loops);
      return countBy(statuses, (status) => status);
    };
  }

  const GOOD = ['check 200', 'grant 201', 'ingest 200'];

  describe('from this release to a later one', () => {
    let cluster: Cluster;
    beforeAll(async () => {
      cluster = await startCluster({ nodes: 2 });
      return () => cluster.stop();
    });

    it('later nodes that start together apply a migration once, however long it takes', async () => {
      const program = createLaterProgram({ [LATER]: LATER_TEXT });
      const present = [...cluster.nodes];
      const stop = keepAsking(cluster, present);
      const later = await Promise.all([1, 2, 3].map(() => cluster.addNode({ program })));
      const aside = await stop();
      expect(Object.keys(aside).sort()).toEqual(GOOD);
      // From now on both versions serve the same tables.
      const both = await keepAsking(cluster, [...present, ...later])();
      expect(Object.keys(both).sort()).toEqual(GOOD);
      const applied = await cluster.sql('SELECT 1 FROM knex_migrations WHERE name = $1', [LATER]);
      expect(applied).toHaveLength(1);
      expect(cluster.faults()).toEqual([]);
      await expect(cluster.addNode()).rejects.toThrow(/written by a newer gpd \(29991231_01_later/);
    });
  });
});
