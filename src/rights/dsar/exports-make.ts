import { DEFAULT_POLICY } from '../../ingest/classify/policy.ts';
import type { Store } from '../../tenants/installation-files.ts';
import { VERSION } from '../../version.ts';
import type { RightsPlatform, RightsServices } from '../services-make.ts';
import { makeDsarArchive } from './archive-files.ts';
import type { openArchiveSigner } from './archive-signer-service.ts';
import { makeStaffExports } from './staff-export-service.ts';

export interface ExportsNeeds extends Pick<RightsPlatform, 'ingestTenantOf' | 'clock'> {
  readonly store: Pick<Store, 'database'>;
  readonly api: RightsServices['api'];
  /** The installation's own, made with the first export. */
  readonly signer: () => ReturnType<typeof openArchiveSigner>;
}

/** Archives that staff hand over; apart from the other services, because few processes ever write one. */
export function makeExports({ store: { database }, ingestTenantOf, api, signer, clock }: ExportsNeeds) {
  const policyOf = (kid: string) => ingestTenantOf(kid)?.policy ?? DEFAULT_POLICY;
  const archive = makeDsarArchive({ policyOf, signer, version: VERSION });
  return makeStaffExports({ database, api, archive, clock });
}
