import type { Config } from '../config.ts';
import { bound } from '../lib/functions.ts';
import type { Store } from '../tenants/installation-files.ts';
import { contestTextsOf } from './contests/contest.ts';
import { type EraseDeps, makeEraseService } from './erase/erase.ts';
import { erasureLogKey } from './erase/erasure-log.ts';
import { linkedTo } from './link-store.ts';
import { tellDue, tellUnfinished } from './notices.ts';
import { makeRightsApi, type RightsApiDeps } from './service.ts';

export interface RightsPlatform extends Omit<RightsApiDeps, 'database' | 'eraser' | 'contestTexts'> {
  readonly config: Pick<Config, 'data_dir' | 'rewrite_window'>;
  readonly store: Pick<Store, 'database' | 'serverSecret'>;
}

export type RightsServices = ReturnType<typeof makeRights>;

/** The services of people's rights, made once for the API, the console and the command line. */
export function makeRights(platform: RightsPlatform, erasing: Pick<EraseDeps, 'onFault' | 'patienceMs'>) {
  const { config, store, tenantOf, clock, random } = platform;
  const eraser = makeEraseService({
    ...erasing,
    database: store.database,
    dataDir: config.data_dir,
    logKey: erasureLogKey(store.serverSecret),
    rewriteWindow: config.rewrite_window,
    tenantOf,
    clock,
    random,
  });
  const contestTexts = contestTextsOf(tenantOf);
  const deps = { ...platform, database: store.database, eraser, contestTexts };
  return {
    eraser,
    api: makeRightsApi(deps),
    ...bound(deps, { tellDue, tellUnfinished }),
    ...bound(deps.database, { linkedTo }),
    /** What was written about contests. */
    contestTexts,
  };
}
