import { tmpdir } from 'node:os';
import { Writable } from 'node:stream';
import { recordAudit } from '../../audit/audit-store.ts';
import type { Embed } from '../../consent/banner-store.ts';
import { joinedRefs } from '../../consent/join-store.ts';
import { listPolicies } from '../../consent/terms-store.ts';
import type { Reader } from '../../db/engine.ts';
import { createEvidenceKey } from '../../keys/evidence-key.ts';
import type { Actor } from '../../lib/act.ts';
import { isoTime } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import type { WitnessPolicy } from '../../log/checkpoint-service.ts';
import type { LogService } from '../../log/service.ts';
import type { Installation } from '../../tenants/directory.ts';
import type { Tenant } from '../../tenants/tenant.ts';
import { VERSION } from '../../version.ts';
import type { Rights } from '../create-rights-service.ts';
import { openSpool, type Spool } from '../dsar/spool-files.ts';
import { NOTHING, subjectRef } from '../erase/erasure-service.ts';
import { writeEvidence } from './evidence-files.ts';
import { findPerson } from './openings-store.ts';
import type { EvidenceSource, Progress } from './parts-service.ts';
import type { EvidenceRequest } from './period.ts';

/**
 * Writes the evidence of a tenant or of one person in a period, and audits it.
 * `make` and `spool` throw {@link Refusal} `not-found` for an unknown tenant, principal or request.
 */

interface Parts extends Pick<Installation, 'database' | 'tenantOf' | 'clock'> {
  readonly log: Pick<LogService, 'lastCheckpoint'>;
  readonly rights: Pick<Rights, 'api' | 'linkedTo'>;
  readonly embed: Embed;
  readonly witnesses?: WitnessPolicy | undefined;
}

export interface EvidenceOptions {
  readonly onProgress?: Progress;
  readonly signal?: AbortSignal;
}

interface Found {
  readonly person: EvidenceSource['person'];
  /** The keyed reference by which the audit log names the subject; null: all people. */
  readonly subject: string | null;
}

async function findPrincipal(
  reader: Reader,
  tenant: Tenant,
  ref: string,
  principalId: string | null,
): Promise<Found | null> {
  const known = await findPerson(reader, tenant.kid, ref);
  if (!known) return null;
  const joined = await joinedRefs(reader, tenant, ref);
  const refs = [ref, ...joined.filter((one) => one !== ref).sort()];
  const subject = subjectRef(tenant.rightsKey, { ...NOTHING, linksOf: ref });
  return { person: { refs, principalId, erasedAt: known.erasedAt }, subject };
}

/** The principal that a request is linked with, or its device, of which the log of consent has no entry. */
async function findByRequest(
  deps: Parts,
  reader: Reader,
  tenant: Tenant,
  requestId: string,
): Promise<Found | null> {
  const { kid, rightsKey } = tenant;
  const target = await deps.rights.api.findTarget(kid, { requestId }).catch((error: unknown) => {
    // Another tenant's request is as unknown as one that nobody has.
    if (error instanceof Refusal) return NOTHING;
    throw error;
  });
  const principal = await deps.rights.linkedTo(kid, requestId);
  const found = principal === null ? null : await findPrincipal(reader, tenant, principal, null);
  if (found) return found;
  if (target.durables.length === 0 && target.requests.length === 0) return null;
  return { person: { refs: [], principalId: null, erasedAt: null }, subject: subjectRef(rightsKey, target) };
}

async function findSubject(
  deps: Parts,
  reader: Reader,
  tenant: Tenant,
  { principal, request }: EvidenceRequest,
): Promise<Found> {
  if (principal === null && request === null) return { person: null, subject: null };
  const found =
    principal === null
      ? await findByRequest(deps, reader, tenant, request ?? '')
      : await findPrincipal(reader, tenant, tenant.refOf(principal), principal.normalize('NFC'));
  if (!found)
    throw new Refusal('not-found', { details: [`no such ${principal === null ? 'request' : 'principal'}`] });
  return found;
}

const writableOf = (spool: Spool): Writable =>
  new Writable({
    write(chunk: Buffer, _encoding, onDone) {
      spool.writeBytes(chunk).then(() => onDone(), onDone);
    },
  });

async function prepare(deps: Parts, kid: string, request: EvidenceRequest, onProgress: Progress) {
  const { database, tenantOf, clock, log, embed, witnesses } = deps;
  const reader: Reader = { read: database.longRead };
  const tenant = tenantOf(kid);
  if (!tenant) throw new Refusal('not-found');
  const { person, subject } = await findSubject(deps, reader, tenant, request);
  const newest = await log.lastCheckpoint(kid);
  if (!newest) throw new Refusal('not-found');
  const { size } = newest;
  const policies = await listPolicies(database, kid);
  const now = clock();
  return {
    now,
    subject,
    input: {
      source: { reader, tenant, request, person, size, onProgress },
      proofs: { database, kid, signer: tenant.signer, witnesses, period: request, size },
      newest,
      key: createEvidenceKey(tenant.evidenceSecret),
      embed,
      policyTexts: new Map(policies.map(({ version, text }) => [version, text])),
      facts: { version: VERSION, subject },
      madeAt: isoTime(now),
    },
  };
}

export function createEvidenceService(deps: Parts) {
  /** `kid` is the caller's own tenant. The row of the audit log has the hash of the whole file. */
  async function make(
    kid: string,
    request: EvidenceRequest,
    actor: Actor,
    output: Writable,
    { onProgress = () => {}, signal }: EvidenceOptions = {},
  ) {
    const { input, subject, now } = await prepare(deps, kid, request, onProgress);
    const archive = await writeEvidence(input, output, signal);
    const detail = { from: isoTime(request.from), to: isoTime(request.to), sha256: archive.sha256 };
    const event = { kid, at: now, actor, object: subject ?? kid, detail };
    await recordAudit(deps.database, { ...event, action: 'evidence.made' });
    return archive;
  }

  return {
    make,
    /**
     * Makes the file in a spool, so that an answer is a whole file or an error.
     * @returns its bytes, to be read once; `close` has to be called
     */
    async spool(kid: string, request: EvidenceRequest, actor: Actor) {
      const spool = await openSpool(tmpdir());
      try {
        const archive = await make(kid, request, actor, writableOf(spool));
        return { ...archive, bytes: spool.read(), close: spool.close };
      } catch (error) {
        await spool.close();
        throw error;
      }
    },
  };
}
