import type { Presented } from '../../attest/ceremony.ts';
import { displayHandle, recordAudit, rightsRef, writeAudit } from '../../audit/audit-store.ts';
import type { PrincipalSession } from '../../auth/credentials.ts';
import { decisionKey, findDecision, type StoredDecision, withLater } from '../../ingest/decisions-store.ts';
import { holdsOn } from '../../ingest/devices-store.ts';
import { findSummary } from '../../ingest/summary-store.ts';
import type { Actor } from '../../lib/act.ts';
import { isoTime } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import { withHead } from '../../log/head-queue-store.ts';
import type { CaseFiling, Forgotten, TransparencyView } from '../../schema/rights.ts';
import type { CaseService } from '../contests/case-by-key-service.ts';
import { UNNAMED } from '../dsar/dsar.ts';
import { type Dsar, type DsarDeps, exportDsar, readNotice, requireDsar } from '../dsar/service.ts';
import type { EraseService } from '../erase/erase-service.ts';
import { NOTHING } from '../erase/erasure-service.ts';
import { linkRequest } from '../link-store.ts';
import { type Reach, reachOfRequests } from '../subject.ts';
import { MAX_LIFE_MS, openPresented, transparencyView } from './transparency.ts';

/** Acts that a browser may ask for with its transparency token (contract 3.5 and 6.1). */

export interface MeDeps extends DsarDeps {
  readonly serverSecret: Uint8Array;
  readonly eraser: EraseService;
  readonly cases: CaseService;
  readonly kAnonymityFloor: number;
}

export type MeService = ReturnType<typeof createMeService>;

type Opened = ReturnType<typeof openPresentedToken>;

/**
 * All causes get the same refusal: malformed, expired, or of another session, origin or tenant.
 * @throws {Refusal} 401
 */
function openPresentedToken(deps: MeDeps, presented: Presented) {
  const { serverSecret, tenantOf, clock } = deps;
  const subject = openPresented(serverSecret, clock(), presented);
  const tenant = subject === null ? undefined : tenantOf(subject.kid);
  if (subject === null || !tenant?.origins.has(presented.origin ?? '')) throw new Refusal('unauthenticated');
  return { tenant, requestId: subject.requestId };
}

function actorOf({ tenant, requestId }: Opened): Actor {
  return { role: 'subject', ref: rightsRef(tenant.rightsKey, 'request', requestId) };
}

const isShared = (decision: StoredDecision | null): boolean =>
  decision?.verdict.durable != null && decision.verdict.needsAttestation;

/**
 * Erases the device behind the token. If others may share its id, it erases only the request with the
 * decisions that superseded it. Open contests and an override stay. A repeated call within the token's
 * lifetime gets the same answer.
 */
async function forgetDevice({ database, eraser, clock }: MeDeps, opened: Opened): Promise<Forgotten> {
  const { tenant, requestId } = opened;
  const decision = await findDecision(database, tenant.kid, requestId);
  const durable = decision?.verdict.durable ?? null;
  const actor = actorOf(opened);
  const { receiptId, scopes, subject } = await eraser.erase({
    tenant,
    target: {
      ...NOTHING,
      durables: durable === null || isShared(decision) ? [] : [durable],
      requests: await withLater(database, tenant.kid, requestId),
    },
    requestedBy: 'subject',
    actor,
    keep: { openContests: true, override: true },
    once: clock() - MAX_LIFE_MS,
  });
  // When nothing was left to erase, the receipt of the first request says whether the id was shared.
  const wasShared = subject === actor.ref && scopes.some(({ action }) => action !== 'none');
  return { forgotten: true, shared: decision === null ? wasShared : isShared(decision), scopes, receiptId };
}

/** True if a legal hold keeps everything about the device of the visit, so that nothing can be erased now. */
async function isHeld({ database }: MeDeps, { tenant, requestId }: Opened): Promise<boolean> {
  const durable = (await findDecision(database, tenant.kid, requestId))?.verdict.durable ?? null;
  return durable !== null && (await holdsOn(database.read, tenant.kid, [durable])).size > 0;
}

/**
 * The request with the decisions that superseded it, and the device unless its id is shared: a review of
 * another person's decision, and its date, must not be shown.
 */
async function findReach({ database }: MeDeps, { tenant, requestId }: Opened): Promise<Reach> {
  const { kid } = tenant;
  const decision = await findDecision(database, kid, requestId);
  const requests = reachOfRequests(kid, await withLater(database, kid, requestId));
  const durable = isShared(decision) ? null : (decision?.verdict.durable ?? null);
  return { ...requests, durable };
}

async function exportAll(deps: MeDeps, opened: Opened): Promise<Dsar> {
  return exportDsar(deps, await findReach(deps, opened), actorOf(opened));
}

/** @throws {Refusal} `no-retained-data` */
async function viewSignals(deps: MeDeps, opened: Opened): Promise<TransparencyView> {
  const { database, clock, kAnonymityFloor } = deps;
  const { tenant, requestId } = opened;
  const { kid } = tenant;
  const retains = tenant.settings['transparency.retain'] === 'summary';
  const summary = retains ? await findSummary(database, kid, requestId, clock()) : null;
  const decision = summary && (await findDecision(database, kid, requestId));
  if (!summary || !decision || decision.verdict.durable === null) throw new Refusal('no-retained-data');
  const actor = actorOf(opened);
  await recordAudit(database, {
    kid,
    at: clock(),
    actor,
    action: 'transparency.viewed',
    object: actor.ref,
    detail: {},
  });
  const handle = displayHandle(tenant.rightsKey, decision.verdict.durable);
  const { purposes } = decision.verdict.consentState;
  return transparencyView(summary, { handle, purposes, kAnonymityFloor });
}

/**
 * Links the request behind the token with the session's principal.
 * @throws {Refusal} 401, `claimed-by-another`
 */
async function linkToPrincipal(
  { database, clock }: MeDeps,
  { tenant: { kid, rightsKey }, requestId }: Opened,
  session: PrincipalSession,
) {
  if (kid !== session.kid) throw new Refusal('unauthenticated');
  const { principal, principalId } = session;
  const now = clock();
  // An erasure takes this lock too, so that nobody links a decision while it is deleted.
  const storedLink = await withHead(database, kid, async (tx) => {
    if (!(await decisionKey(tx, kid, requestId))) throw new Refusal('unauthenticated');
    const linked = await linkRequest(tx, { kid, requestId, principal, linkedAt: now });
    if (linked.principal !== principal) throw new Refusal('claimed-by-another');
    if (linked.linkedAt === now) {
      const actor: Actor = { role: 'subject', ref: rightsRef(rightsKey, 'principal', principal) };
      const object = rightsRef(rightsKey, 'request', requestId);
      await writeAudit(tx, { kid, at: now, actor, action: 'principal.linked', object, detail: {} });
    }
    return linked;
  });
  return { principalId, requestId, linkedAt: isoTime(storedLink.linkedAt) };
}

/**
 * A library or a school is one network: a person whom the limit stops can still object by mail, with the
 * number of the decision.
 */
const wayByMail = (contact: string, requestId: string): string =>
  contact === UNNAMED.contact
    ? `This site has not named a contact. Write to the site, and give the number ${requestId}.`
    : `Write to ${contact}, and give the number ${requestId}.`;

/** Each throws 401 for an invalid token. */
export function createMeService(deps: MeDeps) {
  return {
    /** Checks only the token, for callers that then decide about the rest of the body. */
    check(presented: Presented) {
      const { tenant, requestId } = openPresentedToken(deps, presented);
      return { kid: tenant.kid, requestId };
    },
    notice: async (presented: Presented) =>
      readNotice(deps.database, openPresentedToken(deps, presented).tenant),
    isHeld: async (presented: Presented) => isHeld(deps, openPresentedToken(deps, presented)),
    forget: async (presented: Presented) => forgetDevice(deps, openPresentedToken(deps, presented)),
    export: async (presented: Presented) => exportAll(deps, openPresentedToken(deps, presented)),
    /** Reads the same data as an export, without its audit row. */
    look: async (presented: Presented) =>
      requireDsar(deps, await findReach(deps, openPresentedToken(deps, presented))),
    view: async (presented: Presented) => viewSignals(deps, openPresentedToken(deps, presented)),
    async contest(presented: Presented, network: string, filing: CaseFiling) {
      const { tenant, requestId } = openPresentedToken(deps, presented);
      return deps.cases
        .file({ kid: tenant.kid, requestId, network }, filing)
        .catch(async (error: unknown): Promise<never> => {
          if (!(error instanceof Refusal) || error.code !== 'too-many-cases') throw error;
          const { contact } = await readNotice(deps.database, tenant);
          throw new Refusal(error.code, {
            headers: error.headers,
            details: [wayByMail(contact, requestId)],
          });
        });
    },
    link: async (session: PrincipalSession, presented: Presented) =>
      linkToPrincipal(deps, openPresentedToken(deps, presented), session),
  };
}
