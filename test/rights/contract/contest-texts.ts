import { randomBytes } from 'node:crypto';
import type { Database } from '../../../src/db/engine.ts';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { DAY, HOUR } from '../../../src/lib/clock.ts';
import { type Contest, contestTextsOf, fileContest } from '../../../src/rights/contests/contest.ts';
import { createContestService } from '../../../src/rights/contests/service.ts';
import { insertContest } from '../../../src/rights/contests/store.ts';
import { tenantSettingsSchema } from '../../../src/tenants/settings.ts';
import type { Tenant } from '../../../src/tenants/tenant.ts';
import { addTenant } from '../../db/contract/database.ts';
import { createEntry, NOW } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';

const wrapper = createMasterKey(Buffer.alloc(32, 7), randomBytes);
/** One key encrypts the contest texts of every tenant here. */
export const WORDS = contestTextsOf(() => ({ wrapper }));

/** A contest of anna's. */
export function contestOf(
  filing: Pick<Contest, 'kid' | 'requestId' | 'durable'> & Partial<Contest>,
): Contest {
  const contestId = `con_${filing.kid}_${filing.requestId}`;
  const filed = { contestId, class: 'unknown', filedBy: 'anna', statement: null, ...filing };
  return { ...fileContest(filed, NOW), ...filing };
}

export const insert = (database: Database, contest: Contest) =>
  database.transaction((tx) => insertContest(tx, WORDS, contest));

/** A tenant and the service of its contests, early on a day. */
export async function openHouse(database: Database, kid: string, webhooks: readonly string[] = []) {
  await addTenant(database, kid);
  let now = Math.floor(NOW / DAY) * DAY + HOUR;
  const settings = tenantSettingsSchema.parse({});
  const rightsKey = Buffer.alloc(32, 4);
  const tenant = { kid, rightsKey, settings, wrapper, webhooksFor: () => webhooks } as unknown as Tenant;
  const deps = {
    database,
    tenantOf: (id: string) => (id === kid ? tenant : undefined),
    clock: () => now,
    random: randomBytes,
    contestTexts: WORDS,
  };
  return {
    deps,
    contests: createContestService(deps),
    rita: { kid, role: 'reviewer', ref: 'rita' } as const,
    now: () => now,
    setClock: (time: number) => {
      now = time;
    },
    /** @returns the id of a decision about a device of its own */
    decide: async (id: string, verdict: object = {}): Promise<string> => {
      await createRecorder(database).record(
        createEntry({ kid, id: `${kid}-${id}`, durable: `d-${id}`, verdict }),
      );
      return `req_${kid}-${id}`;
    },
  };
}
