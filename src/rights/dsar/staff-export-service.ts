import type { Writable } from 'node:stream';
import { recordAudit } from '../../audit/audit-store.ts';
import { policyOf } from '../../ingest/verdict/classify.ts';
import type { Actor } from '../../lib/act.ts';
import type { EraseTargetBody } from '../../schema/rights.ts';
import type { Installation } from '../../tenants/directory.ts';
import { VERSION } from '../../version.ts';
import type { ErasureTarget } from '../erase/erasure-service.ts';
import type { RightsApi } from '../service.ts';
import { type ArchiveDeps, type ArchiveOptions, writeArchive } from './archive-files.ts';
import type { Dsar } from './service.ts';

/** The audited path of staff to somebody's data (contract 6.5), for the command line and the console. */

export interface ExportsNeeds extends Pick<Installation, 'database' | 'tenantOf' | 'clock'> {
  readonly api: RightsApi;
  /** The signer of the installation, created for the first export. */
  readonly signer: ArchiveDeps['signer'];
}

/**
 * Creates the archives that staff hand over. It is separate from the other services, because few processes
 * ever write one.
 */
export function createExports({ database, tenantOf, api, signer, clock }: ExportsNeeds) {
  const policyOfTenant = (kid: string) => policyOf(tenantOf(kid)?.policy ?? null);

  /** Gathers the data of a target that was found before. */
  function gather(kid: string, body: EraseTargetBody, target: ErasureTarget): Promise<Dsar | null> {
    const { durables, requests, principal } = target;
    return api.gather({
      kid,
      durable: durables[0] ?? null,
      visitorId: body.visitorId ?? null,
      linked: new Set(requests),
      principal: principal?.ref ?? null,
      principalId: principal?.id ?? null,
    });
  }

  return {
    /**
     * Finds the stored data of the named person: everything of the device behind a visitorId or a requestId,
     * but only that request where the id needs attestation; the linked requests and the consent of a
     * principal. Null when nothing is stored.
     * @throws {Refusal} `cross-tenant-denied`
     */
    async find(kid: string, body: EraseTargetBody): Promise<Dsar | null> {
      return gather(kid, body, await api.findTarget(kid, body));
    },
    gather,

    /** The audit row is written before the first byte: an interrupted export counts too. */
    async write(dsar: Dsar, actor: Actor, output: Writable, options: ArchiveOptions = {}) {
      const { reference, tenant } = dsar.head.subject;
      const detail = { decisions: dsar.total, encrypted: options.recipient !== undefined };
      const event = { kid: tenant, at: clock(), actor, object: reference, detail };
      await recordAudit(database, { ...event, action: 'dsar.staff-exported' });
      return writeArchive({ policyOf: policyOfTenant, signer, version: VERSION }, dsar, output, options);
    },
  };
}
