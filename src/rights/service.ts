import { actorRef, rightsRef } from '../audit/audit-store.ts';
import type { Claimant } from '../auth/tokens.ts';
import { findDecision, tenantOfDecision } from '../ingest/decisions-store.ts';
import type { Actor } from '../lib/act.ts';
import { Refusal } from '../lib/errors.ts';
import type {
  ContestAnswer,
  ContestFiling,
  ContestResponse,
  EraseTargetBody,
  ErasureReceipt,
  Ruling,
} from '../schema/rights.ts';
import { principalRef } from '../tenants/tenant.ts';
import { contestResponse, ownContest } from './contests/record.ts';
import { type ContestService, createContestService, type Reviewer } from './contests/service.ts';
import { isContested } from './contests/store.ts';
import { type Dsar, exportDsar, gatherDsar } from './dsar/service.ts';
import { type EraseService, KEEP_NOTHING } from './erase/erase-service.ts';
import { type ErasureTarget, leftRef, NOTHING, type Requester } from './erase/erasure-service.ts';
import { storedIds } from './erase/find-store.ts';
import { leftRefsOf } from './erase/receipts-store.ts';
import { durableOfVisitor, linkedRequests } from './link-store.ts';
import type { Reach, RightsParts } from './subject.ts';

/** The privacy-rights API after authentication; it decides who may act on whose data (contract section 6). */

export interface RightsApi {
  readonly contests: ContestService;
  /**
   * A keyed reference of the caller; `nobody` for a token that names an unknown tenant, so that nothing
   * belongs to its bearer.
   */
  refOf(kid: string, claimant: Claimant): string;
  /**
   * Says what the caller's token reaches.
   * @throws {Refusal} `subject-not-identified` when it names no visitorId and its principal has no link
   */
  identify(claimant: Claimant): Promise<Reach>;
  /**
   * Finds the person whom a dpo or an operator names. An unknown target matches no rows.
   * @throws {Refusal} `cross-tenant-denied`
   */
  findTarget(kid: string, body: EraseTargetBody): Promise<ErasureTarget>;
  /** Gathers what is held; null when nothing at all is. */
  gather(reach: Reach): Promise<Dsar | null>;
  /** Gathers for the person, and writes the audit row. @throws {Refusal} `no-data` */
  exportOwn(claimant: Claimant, reach: Reach): Promise<Dsar>;
  /**
   * Erases for the person.
   * @throws {Refusal} `not-your-data` when they name a visitorId that is not theirs, `subject-not-identified`
   */
  eraseOwn(claimant: Claimant, reach: Reach, visitorId: string | undefined): Promise<ErasureReceipt>;
  /** Erases for a dpo or an operator. @throws {Refusal} `cross-tenant-denied` */
  eraseFor(eraser: Eraser, body: EraseTargetBody): Promise<ErasureReceipt>;
  /** Files a contest of a decision. @throws {Refusal} `no-such-decision`, `not-your-decision` */
  fileContest(claimant: Claimant, reach: Reach, filing: ContestFiling): Promise<ContestResponse>;
  /**
   * Answers a reviewer's question.
   * @throws {Refusal} `no-such-contest`, `not-your-decision`, `case-closed`
   */
  answerContest(claimant: Claimant, kid: string, answer: ContestAnswer): Promise<OwnContest>;
  /** Rules on a contest. @throws {Refusal} as {@link ContestService.resolve} */
  resolveContest(
    claimant: Claimant,
    kid: string,
    role: Reviewer['role'],
    ruling: Ruling,
  ): Promise<ContestResponse>;
}

interface Parts extends RightsParts {
  readonly eraser: EraseService;
}

type OwnContest = ReturnType<typeof ownContest>;

/** A dpo or an operator who erases somebody else's data. */
export interface Eraser extends Actor {
  readonly kid: string;
  readonly role: Exclude<Requester, 'subject'>;
}

function refOf({ tenantOf }: Parts, kid: string, claimant: Claimant): string {
  const tenant = tenantOf(kid);
  return tenant ? actorRef(tenant.rightsKey, claimant.issuer, claimant.sub) : 'nobody';
}

function principalOf({ tenantOf }: Parts, kid: string, principalId: string): string | null {
  const tenant = tenantOf(kid);
  return tenant ? principalRef(tenant.principalKey, principalId) : null;
}

/**
 * Finds the device that an erasure of the principal left: only receipts that left one make it look through
 * the devices.
 */
async function findLeftDevice({ database, tenantOf }: Parts, kid: string, requestId: string) {
  const rightsKey = tenantOf(kid)?.rightsKey;
  if (rightsKey === undefined) return null;
  const refs = await leftRefsOf(database, kid, rightsRef(rightsKey, 'request', requestId));
  if (refs.size === 0) return null;
  for await (const durable of storedIds(database, kid, 'durable'))
    if (refs.has(leftRef(rightsKey, { requestId, durable }))) return durable;
  return null;
}

async function targetOfRequest(deps: Parts, kid: string, requestId: string): Promise<ErasureTarget> {
  const { database } = deps;
  const decision = await findDecision(database, kid, requestId);
  if (!decision) {
    const owner = await tenantOfDecision(database, requestId);
    if (owner !== null && owner !== kid) throw new Refusal('cross-tenant-denied');
    // Retention keeps a contest longer than its decision.
    if (await isContested(database, kid, requestId)) return { ...NOTHING, requests: [requestId] };
    const leftDevice = await findLeftDevice(deps, kid, requestId);
    return leftDevice === null ? NOTHING : { ...NOTHING, durables: [leftDevice] };
  }
  const { durable, needsAttestation } = decision.verdict;
  // Others may share the id, so the request reaches only itself. A caller who means the device names its
  // visitorId.
  const isRequestOnly = durable === null || needsAttestation;
  return { ...NOTHING, requests: [requestId], durables: isRequestOnly ? [] : [durable] };
}

async function findTarget(deps: Parts, kid: string, body: EraseTargetBody): Promise<ErasureTarget> {
  const { database } = deps;
  const { visitorId, requestId, durableId, principalId } = body;
  if (durableId !== undefined) {
    const prefix = `${kid}|`;
    if (!durableId.startsWith(prefix)) throw new Refusal('cross-tenant-denied');
    return { ...NOTHING, durables: [durableId.slice(prefix.length)] };
  }
  if (requestId !== undefined) return targetOfRequest(deps, kid, requestId);
  if (visitorId !== undefined) {
    const durable = await durableOfVisitor(database, kid, visitorId);
    return durable === null ? NOTHING : { ...NOTHING, durables: [durable] };
  }
  const principal = principalId === undefined ? null : principalOf(deps, kid, principalId);
  if (principalId === undefined || principal === null) return NOTHING;
  const requests = await linkedRequests(database, kid, principal);
  return { durables: [], requests, principal: { ref: principal, id: principalId }, linksOf: principal };
}

async function identify(deps: Parts, claimant: Claimant): Promise<Reach> {
  const { database } = deps;
  const { tenant: kid, visitor: visitorId, principal: principalId } = claimant;
  if (kid === null) throw new Refusal('subject-not-identified');
  const principal = principalId === null ? null : principalOf(deps, kid, principalId);
  const linked = principal === null ? [] : await linkedRequests(database, kid, principal);
  if (visitorId === null && linked.length === 0) throw new Refusal('subject-not-identified');
  const durable = visitorId === null ? null : await durableOfVisitor(database, kid, visitorId);
  return { kid, durable, visitorId, linked: new Set(linked), principal, principalId };
}

async function eraseOwn(
  deps: Parts,
  claimant: Claimant,
  reach: Reach,
  visitorId: string | undefined,
): Promise<ErasureReceipt> {
  const { kid, durable, linked, principal } = reach;
  if (visitorId !== undefined && visitorId !== reach.visitorId) {
    const namedDurable = await durableOfVisitor(deps.database, kid, visitorId);
    if (namedDurable === null || namedDurable !== durable) throw new Refusal('not-your-data');
  }
  const tenant = deps.tenantOf(kid);
  if (!tenant) throw new Refusal('subject-not-identified');
  return deps.eraser.erase({
    tenant,
    target: {
      ...NOTHING,
      durables: durable === null ? [] : [durable],
      requests: [...linked],
      linksOf: principal,
    },
    requestedBy: 'subject',
    actor: { role: 'subject', ref: refOf(deps, kid, claimant) },
    keep: KEEP_NOTHING,
  });
}

async function eraseFor(deps: Parts, { kid, role, ref }: Eraser, body: EraseTargetBody) {
  const tenant = deps.tenantOf(kid);
  if (!tenant) throw new Refusal('cross-tenant-denied');
  const target = await findTarget(deps, kid, body);
  return deps.eraser.erase({
    tenant,
    target,
    requestedBy: role,
    actor: { role, ref },
    keep: KEEP_NOTHING,
  });
}

export function createRightsApi(deps: Parts): RightsApi {
  const contests = createContestService(deps);
  return {
    contests,
    refOf: (kid, claimant) => refOf(deps, kid, claimant),
    identify: (claimant) => identify(deps, claimant),
    findTarget: (kid, body) => findTarget(deps, kid, body),
    gather: (reach) => gatherDsar(deps, reach),
    exportOwn: (claimant, reach) =>
      exportDsar(deps, reach, { role: 'subject', ref: refOf(deps, reach.kid, claimant) }),
    eraseOwn: (claimant, reach, visitorId) => eraseOwn(deps, claimant, reach, visitorId),
    eraseFor: (eraser, body) => eraseFor(deps, eraser, body),
    async fileContest(claimant, reach, { requestId, statement = null }) {
      if (!deps.tenantOf(reach.kid)) throw new Refusal('no-such-decision');
      const filedBy = refOf(deps, reach.kid, claimant);
      return contestResponse(await contests.file(reach, { requestId, statement }, filedBy));
    },
    async answerContest(claimant, kid, { contestId, answer }) {
      const replier = { kid, ref: refOf(deps, kid, claimant), refusalIfMissing: 'no-such-contest' } as const;
      return ownContest(await contests.answer(replier, contestId, answer));
    },
    async resolveContest(claimant, kid, role, ruling) {
      const reviewer = { kid, role, ref: refOf(deps, kid, claimant) };
      return contestResponse(await contests.resolve(reviewer, ruling));
    },
  };
}
