import { randomBytes } from 'node:crypto';
import { loadConfig } from '../../../src/config.ts';
import type { Database } from '../../../src/db/engine.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import {
  createEraseService,
  type EraseDeps,
  type EraseRequest,
  KEEP_NOTHING,
} from '../../../src/rights/erase/erase-service.ts';
import {
  type ErasureLine,
  type ErasureLogAccess,
  isTombstone,
  scanErasureLog,
  type Tombstone,
} from '../../../src/rights/erase/erasure-log-service.ts';
import { NOTHING } from '../../../src/rights/erase/erasure-service.ts';
import { createServices, loadTenants } from '../../../src/services.ts';
import type { Tenant } from '../../../src/tenants/tenant.ts';
import { KID } from '../../support/constants.ts';
import { createEntry, createTestTenant } from '../../support/make.ts';
import { createRecorder } from '../../support/recorder.ts';

/** The service of erasures on a database of its own, without a server around it. */

const LOG_KEY = Buffer.alloc(32, 3);

/** The lines of the log of erasures that count, and what is wrong with it. */
export async function readErasures(logAccess: ErasureLogAccess) {
  const lines: ErasureLine[] = [];
  const { problem } = await scanErasureLog(logAccess, (batch) => {
    lines.push(...batch.map(({ line }) => line));
    return Promise.resolve();
  });
  return { lines, tombstones: lines.filter(isTombstone), problem };
}

/** The lines of the log of erasures that tell of one. */
export const tombstonesOf = async (database: Database, dataDir: string): Promise<readonly Tombstone[]> =>
  (await readErasures({ database, dataDir, logKey: LOG_KEY })).tombstones;

/** A start asks for these besides the eraser; a broken log is a failure. */
export const REAPPLY = {
  logKey: LOG_KEY,
  clock: Date.now,
  onBroken(problem: string): never {
    throw new Error(problem);
  },
} as const;

export async function open(dataDir: string) {
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const services = await createServices(config);
  await loadTenants(services);
  const { database, tenants } = services;
  const tenantOf = tenants.find;
  const tenant = tenantOf(KID);
  if (!tenant) throw new Error('the tenant is not there');
  return { database, tenant, tenantOf };
}

export function requestOf(tenant: Tenant, over: Partial<EraseRequest> = {}): EraseRequest {
  return {
    tenant,
    target: { ...NOTHING, durables: ['mine'] },
    requestedBy: 'subject',
    actor: { role: 'subject', ref: 'r' },
    keep: KEEP_NOTHING,
    ...over,
  };
}

export function eraserOn(
  database: Database,
  dataDir: string,
  clock: Clock = Date.now,
  over: Partial<EraseDeps> = {},
) {
  const faults: unknown[] = [];
  const eraser = createEraseService({
    database,
    dataDir,
    logKey: LOG_KEY,
    clock,
    random: randomBytes,
    rewriteWindow: null,
    tenantOf: createTestTenant,
    onFault: (error) => faults.push(error),
    ...over,
  });
  return { ...eraser, faults };
}

export const record = (database: Database, id: string): Promise<unknown> =>
  createRecorder(database).record(createEntry({ kid: KID, id, durable: 'mine' }));
