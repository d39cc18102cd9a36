import { agentContract } from './agents.ts';
import { apiKeyContract } from './api-keys.ts';
import { bannerContract } from './banners.ts';
import { consoleContract } from './console.ts';
import { crossingContract } from './crossing.ts';
import type { MakeDatabase } from './database.ts';
import { decisionContract } from './decisions.ts';
import { deviceContract } from './devices.ts';
import { erasureContract } from './erasure.ts';
import { ledgerContract } from './ledger.ts';
import { metaContract } from './meta.ts';
import { migrateContract } from './migrate.ts';
import { policyContract } from './policies.ts';
import { rateCounterContract } from './rate-counter.ts';
import { readsContract } from './reads.ts';
import { recorderContract } from './recorder.ts';
import { rightsContract } from './rights.ts';
import { sealKeyContract } from './seal-keys.ts';
import { sizeContract } from './size.ts';
import { snapshotContract } from './snapshot.ts';
import { tenantContract } from './tenants.ts';
import { termsContract } from './terms.ts';
import { webhookContract } from './webhooks.ts';

/** What every database has to do; the suites of each port, in the order in which a server needs them. */
export function storageContract(make: MakeDatabase): void {
  migrateContract(make);
  metaContract(make);
  tenantContract(make);
  sealKeyContract(make);
  apiKeyContract(make);
  snapshotContract(make);
  readsContract(make);
  recorderContract(make);
  crossingContract(make);
  deviceContract(make);
  decisionContract(make);
  policyContract(make);
  agentContract(make);
  ledgerContract(make);
  termsContract(make);
  bannerContract(make);
  erasureContract(make);
  rightsContract(make);
  sizeContract(make);
  webhookContract(make);
  rateCounterContract(make);
  consoleContract(make);
}
