import { actorRef } from '../audit/reference.ts';
import { recordAudit } from '../audit/store.ts';
import { principalRef } from '../consent/principal.ts';
import type { ConsentTenant } from '../consent/tenant.ts';
import type { Database } from '../db/db.ts';
import { findDecision, tenantOfDecision } from '../ingest/decision-store.ts';
import type { IngestTenant } from '../ingest/ports.ts';
import type { Clock } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import type { EraseTargetBody } from '../schema/rights.ts';
import type { Claimant } from './caller.ts';
import { contestResponse, makeContestService, type Reviewer } from './contests/service.ts';
import { isContested } from './contests/store.ts';
import { type Dsar, dsarJson, makeDsarService } from './dsar/service.ts';
import { type ErasureTarget, NOTHING, type Requester } from './erase/erasure.ts';
import { type EraseService, KEEP_NOTHING } from './erase/service.ts';
import { durableOfVisitor, linkedRequests } from './link-store.ts';
import { identifySubject, type Reach } from './subject.ts';

/** The privacy-rights API behind authentication: who may do what to whose data (contract section 6). */

export interface RightsApiDeps {
  readonly database: Database;
  readonly tenantOf: (kid: string) => ConsentTenant | undefined;
  readonly ingestTenantOf: (kid: string) => IngestTenant | undefined;
  readonly eraser: EraseService;
  readonly clock: Clock;
}

/** Who erases somebody else's data, and as what. */
export interface Eraser {
  readonly kid: string;
  readonly role: Exclude<Requester, 'subject'>;
  readonly ref: string;
}

export type RightsApi = ReturnType<typeof makeRightsApi>;

export function makeRightsApi(deps: RightsApiDeps) {
  const { database, tenantOf, eraser, clock } = deps;
  const contests = makeContestService(deps);
  const dsars = makeDsarService(deps);

  /** A token may name a tenant that is not there: staff of it find nothing, and nothing is theirs. */
  function refOf(kid: string, claimant: Claimant): string {
    const tenant = tenantOf(kid);
    return tenant ? actorRef(tenant.rightsKey, claimant.issuer, claimant.sub) : 'nobody';
  }

  function principalOf(kid: string, principalId: string): string | null {
    const tenant = tenantOf(kid);
    return tenant ? principalRef(tenant.principalKey, principalId) : null;
  }

  function tenantFor(kid: string): ConsentTenant {
    const tenant = tenantOf(kid);
    if (!tenant) throw new Refusal('cross-tenant-denied');
    return tenant;
  }

  function ownTarget(reach: Reach): ErasureTarget {
    return {
      durables: reach.durable === null ? [] : [reach.durable],
      requests: [...reach.linked],
      principal: null,
      linksOf: reach.principal,
    };
  }

  async function targetOfRequest(kid: string, requestId: string): Promise<ErasureTarget> {
    const found = await findDecision(database, kid, requestId);
    if (!found) {
      const owner = await tenantOfDecision(database, requestId);
      if (owner !== null && owner !== kid) throw new Refusal('cross-tenant-denied');
      // A contest outlives its decision in the retention.
      return (await isContested(database, kid, requestId)) ? { ...NOTHING, requests: [requestId] } : NOTHING;
    }
    const { durable, needsAttestation } = found.verdict;
    // One request does not open what may be other people's too; who means the device names its visitorId.
    const alone = durable === null || needsAttestation;
    return { ...NOTHING, requests: [requestId], durables: alone ? [] : [durable] };
  }

  /** Whose rows a dpo or an operator means. An unknown target is nobody. @throws {Refusal} `cross-tenant-denied` */
  async function findTarget(kid: string, body: EraseTargetBody): Promise<ErasureTarget> {
    const { visitorId, requestId, durableId, principalId } = body;
    if (durableId !== undefined) {
      const prefix = `${kid}|`;
      if (!durableId.startsWith(prefix)) throw new Refusal('cross-tenant-denied');
      return { ...NOTHING, durables: [durableId.slice(prefix.length)] };
    }
    if (requestId !== undefined) return targetOfRequest(kid, requestId);
    if (visitorId !== undefined) {
      const durable = await durableOfVisitor(database, kid, visitorId);
      return durable === null ? NOTHING : { ...NOTHING, durables: [durable] };
    }
    const principal = principalId === undefined ? null : principalOf(kid, principalId);
    if (principalId === undefined || principal === null) return NOTHING;
    const requests = await linkedRequests(database, kid, principal);
    return { durables: [], requests, principal: { ref: principal, id: principalId }, linksOf: principal };
  }

  return {
    contests,
    dsars,
    findTarget,
    refOf,
    ingestTenantOf: deps.ingestTenantOf,

    identify: (claimant: Claimant): Promise<Reach> =>
      identifySubject(
        {
          durableOf: (kid, visitorId) => durableOfVisitor(database, kid, visitorId),
          linkedRequests: (kid, principal) => linkedRequests(database, kid, principal),
          principalRef: principalOf,
        },
        claimant,
      ),

    async fileContest(
      claimant: Claimant,
      reach: Reach,
      body: { readonly requestId: string; readonly statement?: string | undefined },
    ) {
      const { requestId, statement = null } = body;
      if (!tenantOf(reach.kid)) throw new Refusal('no-such-decision');
      const filedBy = refOf(reach.kid, claimant);
      return contestResponse(await contests.file(reach, { requestId, statement }, filedBy));
    },

    async resolveContest(
      claimant: Claimant,
      kid: string,
      role: Reviewer['role'],
      ruling: Parameters<typeof contests.resolve>[1],
    ) {
      const reviewer = { kid, role, ref: refOf(kid, claimant) };
      return contestResponse(await contests.resolve(reviewer, ruling));
    },

    /** @throws {Refusal} `not-your-data` when they name a visitorId that is not theirs */
    async eraseOwn(claimant: Claimant, reach: Reach, visitorId: string | undefined) {
      if (visitorId !== undefined && visitorId !== reach.visitorId) {
        const durable = await durableOfVisitor(database, reach.kid, visitorId);
        if (durable === null || durable !== reach.durable) throw new Refusal('not-your-data');
      }
      const tenant = tenantOf(reach.kid);
      if (!tenant) throw new Refusal('subject-not-identified');
      return eraser.erase({
        tenant,
        target: ownTarget(reach),
        requestedBy: 'subject',
        actor: { role: 'subject', ref: refOf(reach.kid, claimant) },
        keep: KEEP_NOTHING,
      });
    },

    async eraseFor(by: Eraser, body: EraseTargetBody) {
      const tenant = tenantFor(by.kid);
      const target = await findTarget(by.kid, body);
      const { role, ref } = by;
      return eraser.erase({ tenant, target, requestedBy: role, actor: { role, ref }, keep: KEEP_NOTHING });
    },

    /** @throws {Refusal} `no-data` */
    async exportOwn(claimant: Claimant, reach: Reach): Promise<AsyncIterable<string>> {
      const dsar: Dsar | null = await dsars.gather(reach);
      const tenant = tenantOf(reach.kid);
      if (!dsar || !tenant) throw new Refusal('no-data');
      const ref = refOf(reach.kid, claimant);
      const object = dsar.head.subject.reference;
      const event = { kid: reach.kid, at: clock(), actor: { role: 'subject' as const, ref }, object };
      await recordAudit(database, { ...event, action: 'dsar.exported', detail: { decisions: dsar.total } });
      return dsarJson(dsar);
    },
  };
}
