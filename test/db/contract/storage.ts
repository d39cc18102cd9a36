import { agentContract } from '../../agents/contract/agents.ts';
import { credentialContract } from '../../attest/contract/credentials.ts';
import { actContract } from '../../audit/contract/acts.ts';
import { apiKeyContract } from '../../auth/contract/api-keys.ts';
import { bannerContract } from '../../consent/contract/banners.ts';
import { tamperedLogContract, tamperedLogRules } from '../../consent/contract/tampered-log.ts';
import { termsContract } from '../../consent/contract/terms.ts';
import { verifyBesideContract } from '../../consent/contract/verify-beside.ts';
import { consoleContract } from '../../console/contract/console.ts';
import { decisionsContract } from '../../console/contract/decisions.ts';
import { staffContract } from '../../console/contract/staff.ts';
import { decisionContract } from '../../ingest/contract/decisions.ts';
import { deviceContract } from '../../ingest/contract/devices.ts';
import { epochContract } from '../../ingest/contract/epochs.ts';
import { networkContract } from '../../ingest/contract/networks.ts';
import { policyContract } from '../../ingest/contract/policies.ts';
import { recorderContract } from '../../ingest/contract/recorder.ts';
import { visitorIdContract } from '../../ingest/contract/visitor-ids.ts';
import { sealKeyContract } from '../../keys/contract/seal-keys.ts';
import { anchorsContract } from '../../log/contract/anchors.ts';
import { ledgerContract } from '../../log/contract/ledger.ts';
import { webhookContract } from '../../notify/contract/webhooks.ts';
import { daySaltContract } from '../../ops/contract/day-salts.ts';
import { housekeepingContract, housekeepingRules } from '../../ops/contract/housekeeping.ts';
import { rateCounterContract } from '../../ops/contract/rate-counter.ts';
import { casesContract } from '../../rights/contract/cases.ts';
import { erasureContract } from '../../rights/contract/erasure.ts';
import { outcomesContract } from '../../rights/contract/outcomes.ts';
import { receiptContract } from '../../rights/contract/receipts.ts';
import { registerContract } from '../../rights/contract/register.ts';
import { retentionStepsContract } from '../../rights/contract/retention-steps.ts';
import { rightsContract } from '../../rights/contract/rights.ts';
import { subjectDataContract } from '../../rights/contract/subject-data.ts';
import { crossingContract } from '../../tenants/contract/crossing.ts';
import { snapshotContract } from '../../tenants/contract/snapshot.ts';
import { tenantGoingContract } from '../../tenants/contract/tenant-going.ts';
import { tenantContract } from '../../tenants/contract/tenants.ts';
import { clockContract, clockRules } from './clock.ts';
import type { MakeDatabase } from './database.ts';
import { migrateContract } from './migrate.ts';

/**
 * Every database must pass these suites, in three parts; here those of each port, in the order in which a
 * server needs them.
 */
export function storageContract(make: MakeDatabase): void {
  migrateContract(make);
  subjectDataContract(make);
  tenantContract(make);
  sealKeyContract(make);
  apiKeyContract(make);
  snapshotContract(make);
  recorderContract(make);
  crossingContract(make);
  deviceContract(make);
  decisionContract(make);
  policyContract(make);
  agentContract(make);
  termsContract(make);
  bannerContract(make);
  networkContract(make);
  credentialContract(make);
  epochContract(make);
  webhookContract(make);
  daySaltContract(make);
  rateCounterContract(make);
  consoleContract(make);
  decisionsContract(make);
  staffContract(make);
  housekeepingContract(make);
  clockContract(make);
}

/** These suites test erasure, cases, notices and rulings. */
export function storedRightsContract(make: MakeDatabase): void {
  erasureContract(make);
  casesContract(make);
  registerContract(make);
  outcomesContract(make);
  rightsContract(make);
  retentionStepsContract(make);
  receiptContract(make);
  visitorIdContract(make);
  tenantGoingContract(make);
}

/** These rules follow from rows and files, whatever the database: they run on one. */
export function storageRules(make: MakeDatabase): void {
  housekeepingRules(make);
  clockRules(make);
  tamperedLogRules(make);
}

/** These suites test what the log stores and whether it still verifies. */
export function storedLogContract(make: MakeDatabase): void {
  ledgerContract(make);
  anchorsContract(make);
  tamperedLogContract(make);
  verifyBesideContract(make);
  actContract(make);
}
