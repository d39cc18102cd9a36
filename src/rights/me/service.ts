import type { Presented } from '../../attest/ceremony.ts';
import { displayHandle, recordAudit, rightsRef, writeAudit } from '../../audit/audit-store.ts';
import type { PrincipalSession } from '../../auth/credentials.ts';
import { decisionKey, findDecision, type StoredDecision, withLater } from '../../ingest/decisions-store.ts';
import { holdsOn } from '../../ingest/devices-store.ts';
import { findSummary } from '../../ingest/summary-store.ts';
import type { Actor } from '../../lib/act.ts';
import { isoTime } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import type { PeopleLanguage } from '../../lib/languages.ts';
import { ENGLISH, type Speaker } from '../../lib/people/say.ts';
import { withHead } from '../../log/head-queue-store.ts';
import type {
  CaseFiled,
  CaseFiling,
  ComplaintFiled,
  Forgotten,
  TransparencyView,
} from '../../schema/rights.ts';
import type { Installation } from '../../tenants/directory.ts';
import type { CaseByKeyService } from '../contests/case-by-key-service.ts';
import { PERIODS } from '../contests/period.ts';
import { type Dsar, exportDsar, readNotice, readPageNotice, requireDsar } from '../dsar/service.ts';
import type { EraseService } from '../erase/erase-service.ts';
import { NOTHING } from '../erase/erasure-service.ts';
import { linkRequest } from '../link-store.ts';
import { type Reach, type RightsParts, reachOfRequests } from '../subject.ts';
import { MAX_LIFE_MS, openPresented, transparencyView } from './transparency.ts';

/** Acts that a browser may ask for with its transparency token (contract 3.5 and 6.1). */

/**
 * All that a browser may ask for. Each act answers a token that does not hold with the refusal
 * `unauthenticated`, whatever is wrong with it.
 */
export interface MeService {
  /** The token alone, for what decides about the rest of the body after it. */
  check(presented: Presented): {
    readonly kid: string;
    readonly requestId: string;
    /** True if the law of the tenant gives people a complaint form (rights.profile uk). */
    readonly takesComplaints: boolean;
  };
  /** Names the controller, its purposes and the site, and when an objection filed now would be due. */
  notice(presented: Presented, speaker: Speaker): Promise<PersonNotice>;
  /**
   * True if a legal hold keeps everything about the device of the visit, so that nothing can be erased now.
   */
  isHeld(presented: Presented): Promise<boolean>;
  /**
   * Erases the durable id behind the token; where the id may be other people's too, that request with what
   * superseded it alone. Open contests and an override stay. Again within the token's life: the same answer.
   */
  forget(presented: Presented): Promise<Forgotten>;
  /** Exports what is held, with an audit row. @throws {Refusal} `no-data` */
  export(presented: Presented): Promise<Dsar>;
  /** Reads what an export has, without the audit row of one. @throws {Refusal} `no-data` */
  look(presented: Presented): Promise<Dsar>;
  /** Shows the summary of the signals, where the tenant keeps it. @throws {Refusal} `no-retained-data` */
  view(presented: Presented): Promise<TransparencyView>;
  /**
   * Files a contest of the visit. A refusal is in English unless `speaker` says another language.
   * @throws {Refusal} `no-such-decision`, `too-many-cases`
   */
  contest(presented: Presented, from: Filer, filing: CaseFiling, speaker?: Speaker): Promise<CaseFiled>;
  /** Files a complaint about how data are handled. @throws {Refusal} as `contest` */
  complain(presented: Presented, from: Filer, filing: CaseFiling): Promise<ComplaintFiled>;
  /** Links the visit with the session's principal. @throws {Refusal} `claimed-by-another` */
  link(session: PrincipalSession, presented: Presented): Promise<LinkAnswer>;
}

type PersonNotice = Awaited<ReturnType<typeof readPageNotice>> & { readonly dueBy: string };

/** The network and the language of the browser that files. */
interface Filer {
  readonly network: string;
  readonly language: PeopleLanguage;
}

interface Parts extends Omit<RightsParts, 'random'>, Pick<Installation, 'serverSecret'> {
  readonly eraser: EraseService;
  readonly cases: CaseByKeyService;
  readonly kAnonymityFloor: number;
}

type LinkAnswer = Readonly<Record<'principalId' | 'requestId' | 'linkedAt', string>>;

type Opened = ReturnType<typeof openPresentedToken>;

/** Every cause alike: malformed, expired, of another session, origin or tenant. @throws {Refusal} 401 */
function openPresentedToken(deps: Parts, presented: Presented) {
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

async function forgetDevice({ database, eraser, clock }: Parts, opened: Opened): Promise<Forgotten> {
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

async function isHeld({ database }: Parts, { tenant, requestId }: Opened): Promise<boolean> {
  const durable = (await findDecision(database, tenant.kid, requestId))?.verdict.durable ?? null;
  return durable !== null && (await holdsOn(database.read, tenant.kid, [durable])).size > 0;
}

/**
 * Its request with what superseded it, and its device where the id is not shared: somebody else's review of
 * such an id is not told, nor its date.
 */
async function findReach({ database }: Parts, { tenant, requestId }: Opened): Promise<Reach> {
  const { kid } = tenant;
  const decision = await findDecision(database, kid, requestId);
  const requests = reachOfRequests(kid, await withLater(database, kid, requestId));
  const durable = isShared(decision) ? null : (decision?.verdict.durable ?? null);
  return { ...requests, durable };
}

async function exportAll(deps: Parts, opened: Opened): Promise<Dsar> {
  return exportDsar(deps, await findReach(deps, opened), actorOf(opened));
}

async function viewSignals(deps: Parts, opened: Opened): Promise<TransparencyView> {
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

async function linkToPrincipal(
  { database, clock }: Parts,
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
const wayByMail = ({ say }: Speaker, contact: string, number: string): string =>
  contact === say('notice.noContact')
    ? say('refused.ask', { number })
    : say('refused.write', { contact, number });

async function readPersonNotice({ database, clock }: Parts, { tenant }: Opened, speaker: Speaker) {
  const dueBy = isoTime(PERIODS[tenant.settings['rights.profile']].dueAt(clock()));
  return { ...(await readPageNotice(database, tenant, speaker)), dueBy };
}

/** Files for the visit; where the limit stops the person, the refusal says how to write to the site. */
async function orByMail<Filed>(
  { database }: Parts,
  { tenant, requestId }: Opened,
  speaker: Speaker,
  file: (visit: { readonly kid: string; readonly requestId: string }) => Promise<Filed>,
): Promise<Filed> {
  try {
    return await file({ kid: tenant.kid, requestId });
  } catch (error) {
    if (!(error instanceof Refusal) || error.code !== 'too-many-cases') throw error;
    const { contact } = await readNotice(database, tenant, speaker);
    const details = [wayByMail(speaker, contact, requestId)];
    throw new Refusal(error.code, { headers: error.headers, details });
  }
}

export function createMeService(deps: Parts): MeService {
  const open = (presented: Presented): Opened => openPresentedToken(deps, presented);
  return {
    check(presented) {
      const { tenant, requestId } = open(presented);
      const takesComplaints = tenant.settings['rights.profile'] === 'uk';
      return { kid: tenant.kid, requestId, takesComplaints };
    },
    notice: async (presented, speaker) => readPersonNotice(deps, open(presented), speaker),
    isHeld: async (presented) => isHeld(deps, open(presented)),
    forget: async (presented) => forgetDevice(deps, open(presented)),
    export: async (presented) => exportAll(deps, open(presented)),
    look: async (presented) => requireDsar(deps, await findReach(deps, open(presented))),
    view: async (presented) => viewSignals(deps, open(presented)),
    contest: async (presented, from, filing, speaker = ENGLISH) =>
      orByMail(deps, open(presented), speaker, (visit) => deps.cases.file({ ...visit, ...from }, filing)),
    complain: async (presented, from, filing) =>
      orByMail(deps, open(presented), ENGLISH, (visit) => deps.cases.complain({ ...visit, ...from }, filing)),
    link: async (session, presented) => linkToPrincipal(deps, open(presented), session),
  };
}
