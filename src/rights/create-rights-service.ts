import type { Config } from '../config.ts';
import type { Database } from '../db/engine.ts';
import type { Clock } from '../lib/clock.ts';
import type { Random } from '../lib/crypto.ts';
import type { Tenant } from '../tenants/tenant.ts';
import { contestTextsOf } from './contests/contest.ts';
import { createEraseService } from './erase/erase-service.ts';
import { erasureLogKey } from './erase/erasure-log-service.ts';
import { linkedPrincipal } from './link-store.ts';
import { notifyDueContests, notifyUnfinishedErasures } from './notices-store.ts';
import { createRightsApi } from './service.ts';

/** Connects contests, erasures, exports and /me, for the server, the console and the commands. */

export interface RightsNeeds {
  readonly config: Config;
  readonly database: Database;
  readonly serverSecret: Uint8Array;
  readonly tenantOf: (kid: string) => Tenant | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Gets the error that delayed an erasure after its rows were deleted; the job finishes it. */
  readonly onErasureFault: (error: unknown) => void;
  /** Milliseconds that an answer waits for an erasure before it says `pending`; the server has a default. */
  readonly patienceMs?: number | undefined;
}

export type Rights = ReturnType<typeof createRights>;

/** The services of people's rights, made once for the API, the console and the command line. */
export function createRights(needs: RightsNeeds) {
  const { config, database, serverSecret, tenantOf, clock, random, onErasureFault, patienceMs } = needs;
  const eraser = createEraseService({
    database,
    dataDir: config.data_dir,
    logKey: erasureLogKey(serverSecret),
    rewriteWindow: config.rewrite_window,
    tenantOf,
    clock,
    random,
    onFault: onErasureFault,
    ...(patienceMs === undefined ? {} : { patienceMs }),
  });
  const contestTexts = contestTextsOf(tenantOf);
  const deps = { database, tenantOf, clock, random, contestTexts };
  return {
    eraser,
    api: createRightsApi({ database, tenantOf, clock, random, contestTexts, eraser }),
    /** Encrypts and decrypts the texts of contests. */
    contestTexts,
    linkedTo: (kid: string, requestId: string) => linkedPrincipal(database, kid, requestId),
    notifyDueContests: (kid: string, now: number) => notifyDueContests(deps, kid, now),
    notifyUnfinishedErasures: (kid: string, now: number) => notifyUnfinishedErasures(deps, kid, now),
  };
}
