import type { Response } from 'express';
import type { Claimant } from '../auth/tokens.ts';
import { type PeopleLocals, speakTo } from '../http/people.ts';
import { builtOnce, jsonReply, renderText, sendBuilt } from '../http/reply.ts';
import { json, page, reply, type ServedRoute } from '../http/routes.ts';
import { RULES } from '../ingest/verdict/classify.ts';
import { ruleText } from '../ingest/verdict/verdict-words.ts';
import { Refusal } from '../lib/errors.ts';
import { type EraseTargetBody, eraseOwnRequestSchema } from '../schema/rights.ts';
import { ROUTES } from '../schema/routes.ts';
import type { CaseByKeyService } from './contests/case-by-key-service.ts';
import type { SendExport } from './export-routes.ts';
import { languageOfPerson } from './me/routes.ts';
import type { OutcomeReporter } from './outcomes-store.ts';
import type { RightsApi } from './service.ts';
import type { Reach } from './subject.ts';

/**
 * Routes of the privacy-rights API (contract section 6): rate 429 → 401 → role 403 → body 400 → 404 →
 * ownership 403 → state 409.
 */

/** Identifies a subject. @throws {Refusal} `refusal` without the role, then `subject-not-identified` */
function identified(api: RightsApi, claimant: Claimant, refusal: 'subject-only' | 'staff-export-elsewhere') {
  if (!claimant.roles.has('subject')) throw new Refusal(refusal);
  return api.identify(claimant);
}

/** Erases for a dpo if the body has a target and the caller has that role, otherwise for the subject. */
async function eraseAs(api: RightsApi, claimant: Claimant, ownReach: Reach | null, body: EraseTargetBody) {
  const { roles } = claimant;
  if (roles.has('dpo') && Object.keys(body).length > 0) {
    const kid = requireTenant(claimant);
    return api.eraseFor({ kid, role: 'dpo', ref: api.refOf(kid, claimant) }, body);
  }
  if (!roles.has('subject')) throw new Refusal('not-your-data');
  return api.eraseOwn(claimant, ownReach ?? (await api.identify(claimant)), body.visitorId);
}

/** Routes of contract-2 section 18. */
export const outcomeRoutes = (report: OutcomeReporter): readonly ServedRoute[] => [
  json(ROUTES.reportOutcome, async ({ caller, params, readBody }, head) => {
    const { created, ...answer } = await report(caller.kid, params.requestId, await readBody());
    if (created) head.status = 201;
    return answer;
  }),
];

/** Each route refuses before it reads a body. A dpo may do what a reviewer may. */
export const privacyRoutes = (api: RightsApi, sendExport: SendExport): readonly ServedRoute[] => [
  json(ROUTES.fileContest, async ({ caller, readBody }) => {
    const reach = await identified(api, caller, 'subject-only');
    return api.fileContest(caller, reach, await readBody());
  }),
  json(ROUTES.answerContest, async ({ caller, readBody }) => {
    const { kid } = await identified(api, caller, 'subject-only');
    return api.answerContest(caller, kid, await readBody());
  }),
  json(ROUTES.resolveContest, async ({ caller, readBody }) => {
    const role = (['dpo', 'reviewer'] as const).find((name) => caller.roles.has(name));
    if (role === undefined) throw new Refusal('reviewer-only');
    const kid = requireTenant(caller);
    const { version = null, ...ruling } = await readBody();
    return api.resolveContest(caller, kid, role, { ...ruling, version });
  }),
  reply(ROUTES.exportOwnData, async ({ caller, limitKey, readBody }) => {
    const reach = await identified(api, caller, 'staff-export-elsewhere');
    await readBody();
    return sendExport({ kid: reach.kid, client: limitKey }, () => api.exportOwn(caller, reach));
  }),
  json(ROUTES.eraseData, async ({ caller, readBody }) => {
    const { roles } = caller;
    if (!roles.has('subject') && !roles.has('dpo')) throw new Refusal('not-your-data');
    if (!roles.has('subject')) requireTenant(caller);
    const ownReach = roles.has('dpo') ? null : await api.identify(caller);
    const body = ownReach ? await readBody(eraseOwnRequestSchema) : await readBody();
    return eraseAs(api, caller, ownReach, body);
  }),
];

const renderCasePage = builtOnce((_language, response: Response, people: PeopleLocals) =>
  renderText(response, 'case', {
    ruleTexts: RULES.map(({ id }) => ({ id, text: ruleText(id, people.lang) })),
    ...people,
  }),
);

async function sendCasePage(response: Response): Promise<void> {
  const people = speakTo(response, {});
  const file = await renderCasePage(people.lang, response, people);
  sendBuilt(response, file, { type: 'text/html', cache: 'no-store' });
}

/**
 * Routes of a contest by its case key. The page reads the key from the fragment of its address, which
 * browsers send to no server.
 */
export const caseRoutes = (cases: CaseByKeyService): readonly ServedRoute[] => [
  page(ROUTES.getCasePage, (_request, response) => sendCasePage(response)),
  json(ROUTES.getCase, async ({ readBody }) => cases.view((await readBody()).caseKey)),
  reply(ROUTES.complainAboutCase, async ({ headers, networkKey, readBody }) => {
    const { caseKey, ...filing } = await readBody();
    const from = { network: networkKey, language: languageOfPerson(headers) };
    return jsonReply(202, await cases.complainByKey(caseKey, from, filing));
  }),
  json(ROUTES.reviewAgent, async ({ networkKey, readBody }) => {
    const { case: requestId, ...filing } = await readBody();
    const { contestId, caseKey, dueAt } = await cases.fileForAgent(requestId, networkKey, filing);
    return caseKey === undefined ? { contestId, dueAt } : { contestId, caseKey, dueAt };
  }),
  json(ROUTES.answerCase, async ({ readBody }) => {
    const { caseKey, answer } = await readBody();
    return cases.answer(caseKey, answer);
  }),
];

/** Staff act within the tenant that their token names. @throws {Refusal} */
function requireTenant(claimant: Claimant): string {
  if (claimant.tenant === null) throw new Refusal('reviewer-tenant-unbound');
  return claimant.tenant;
}
