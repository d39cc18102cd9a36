import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startAgents } from '../../src/agents/service.ts';
import { createSqlite } from './support/sqlite.ts';

it('gpd reports an unavailable database once, not at every look', async () => {
  const file = await createSqlite();
  const faults: unknown[] = [];
  const agents = await startAgents(file.database, {
    openDiscovery: false,
    clock: Date.now,
    onFault: (error) => faults.push(error),
    interval: 5,
  });
  await file.database.close();
  await sleep(100);
  await agents.stop();
  await file.close();
  expect(faults).toHaveLength(1);
});
