import { expect, it } from 'vitest';
import { contestTextsOf } from '../../../src/rights/contests/contest.ts';
import { gatherDsar } from '../../../src/rights/dsar/service.ts';
import { tablesWhere } from '../../../src/rights/person-map.ts';
import { reachOfRequests } from '../../../src/rights/subject.ts';
import { runGpd } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { noteStatements } from '../../support/database.ts';
import { NOW } from '../../support/make.ts';
import { initGpd } from '../../support/server.ts';
import { open, record } from '../support/eraser.ts';

it('an export reads every table that the map of a person says it contains, and no other of a person', async () => {
  const { dataDir } = await initGpd();
  const env = { GPD_DATA_DIR: dataDir };
  await runGpd(['consent', 'grant', KID, 'paul', 'device-identification'], { env });
  const { database, tenantOf } = await open(dataDir);
  await record(database, 'a');
  const read = new Set<string>();
  let ofOthers = 0;
  noteStatements(database.read, () => {
    ofOthers += 1;
  });
  noteStatements(database.longRead, ({ sql }) => {
    for (const [, table = ''] of sql.matchAll(/\b(?:from|join) [`"]?(\w+)/gi)) read.add(table);
  });
  const contestTexts = contestTextsOf(tenantOf);
  const reach = {
    ...reachOfRequests(KID, ['req_b']),
    ...{ durable: 'mine', visitorId: 'v', principal: tenantOf(KID)!.refOf('paul'), principalId: 'paul' },
  };
  const dsar = await gatherDsar({ database, tenantOf, clock: () => NOW, contestTexts }, reach);
  for await (const page of dsar?.decisions() ?? []) expect(page).toHaveLength(1);
  const personal = tablesWhere(({ names, with: owner }) => names.length > 0 && owner === undefined).filter(
    (table) => read.has(table),
  );
  // The export contains every table that hangs on a decision.
  expect(personal).toEqual(tablesWhere(({ exported }) => exported.includes('person')));
  // Checks and visits need those connections.
  expect(ofOthers).toBe(0);
  await database.close();
});
