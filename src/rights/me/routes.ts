import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { type Request, type Response, urlencoded } from 'express';
import { present } from '../../attest/attest-routes.ts';
import type { Presented } from '../../attest/ceremony.ts';
import { type PeopleLocals, speakTo } from '../../http/people.ts';
import { jsonReply, noteRefusal } from '../../http/reply.ts';
import { parseShape } from '../../http/request.ts';
import { json, page, reply, type ServedRoute } from '../../http/routes.ts';
import { requestFacts, send } from '../../http/server.ts';
import { isoTime } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import { type PeopleLanguage, preferredLanguage } from '../../lib/languages.ts';
import type { Speaker } from '../../lib/people/say.ts';
import { type CaseFiling, caseFilingSchema } from '../../schema/rights.ts';
import { publishableKeySchema } from '../../schema/rights-routes.ts';
import { ROUTES } from '../../schema/routes.ts';
import type { readPageNotice } from '../dsar/service.ts';
import type { SendExport, TakePlace } from '../export-routes.ts';
import { forgottenText, pageWords } from './page-words.ts';
import type { MeService } from './service.ts';
import { TOKEN_TTL_MS } from './transparency.ts';

export const languageOfPerson = (headers: IncomingHttpHeaders): PeopleLanguage =>
  preferredLanguage(headers['accept-language'] ?? null);

/** POST /me and POST /v1/principals/link, which need a transparency token (contract 3.5 and 6.1). */

export const meRoutes = (service: MeService, sendExport: SendExport): readonly ServedRoute[] => [
  reply(ROUTES.useTransparencyToken, async ({ headers, limitKey, networkKey, readBody }) => {
    const { token, action, ...rest } = await readBody();
    const presented = present(headers, token);
    const { kid, takesComplaints } = service.check(presented);
    if (action === 'view') return jsonReply(200, await service.view(presented));
    if (action === 'forget') return jsonReply(200, await service.forget(presented));
    if (action === 'export') return sendExport({ kid, client: limitKey }, () => service.export(presented));
    const isComplaint = takesComplaints && action === 'complain';
    if (action !== 'contest' && !isComplaint) {
      const actions = takesComplaints ? 'contest or complain' : 'or contest';
      throw new Refusal('invalid-request', {
        details: [`action: view, forget, export${takesComplaints ? ',' : ''} ${actions}`],
      });
    }
    const filing = parseShape(rest, caseFilingSchema);
    const from = { network: networkKey, language: languageOfPerson(headers) };
    return jsonReply(202, await service[isComplaint ? 'complain' : 'contest'](presented, from, filing));
  }),
  json(ROUTES.linkPrincipal, async ({ caller, headers, readBody }) => {
    const { token } = await readBody();
    return service.link(caller.session, present(headers, token));
  }),
];

/**
 * GET /my-data: a page that a site can link to where gpd answers under the site's own origin. POST shows what
 * a transparency token reaches, as a form of a browser without JavaScript sends it.
 */

export interface Sites {
  /** Reads the notice with the controller, its contact and the site; null: the tenant does not exist. */
  notice(kid: string, speaker: Speaker): ReturnType<typeof readPageNotice> | Promise<null>;
  /** Tenants whose pages are at this host, or the only tenant of the installation. Others are never shown. */
  at(host: string | undefined): readonly string[];
}

/** 4,000 characters of four bytes each, percent-encoded, and the rest of the form. */
const MAX_FORM = '64kb';
const SHOWN_DECISIONS = 100;

interface Shown extends Readonly<Record<string, unknown>> {
  readonly kid?: string;
  readonly publishableKey?: string | null;
}

/** Speaks the language of the request, in a page that shows `values`. */
const speakOf = (response: Response, { kid, publishableKey }: Shown): PeopleLocals =>
  speakTo(response, { kid, key: publishableKey });

function showPage(response: Response, people: PeopleLocals, values: Shown, status = 200): void {
  // Under no-referrer browsers send `Origin: null` with a form, and every token would be refused.
  response.set({ 'cache-control': 'no-store', 'referrer-policy': 'same-origin' });
  response
    .status(status)
    .render('my-data', { saved: false, ...values, status, ...pageWords(people), ...people });
}

export function myDataRoutes(sites: Sites, form: FormDeps): readonly ServedRoute[] {
  return [
    page(ROUTES.getMyDataPage, async ({ query, headers }, response) => {
      const { kid: named = '', key } = query as Readonly<Record<string, unknown>>;
      const here = sites.at(headers.host);
      const kid = named === '' && here.length === 1 ? here[0] : named;
      const publishableKey = publishableKeySchema.safeParse(key).data ?? null;
      const shown = typeof kid === 'string' ? { kid, publishableKey } : {};
      const people = speakOf(response, shown);
      const notice = typeof kid === 'string' ? await sites.notice(kid, people) : null;
      if (notice !== null) {
        showPage(response, people, { ...shown, notice });
        return;
      }
      if (named !== '') noteRefusal('unknown-kid', String(named));
      const refusal = new Refusal(named === '' ? 'missing-kid' : 'unknown-kid');
      if (headers.accept?.includes('text/html') !== true) throw refusal;
      showPage(response, people, { tenants: here }, named === '' ? 200 : refusal.status);
    }),
    page(ROUTES.submitMyDataForm, createFormPage(form)),
  ];
}

/** @param saved true if the person saves the page as a file, which is an export */
async function readHeldData(me: MeService, presented: Presented, people: PeopleLocals, saved: boolean) {
  const dsar = await (saved ? me.export(presented) : me.look(presented));
  const { head, total } = dsar;
  const shown = [];
  for await (const one of dsar.decisions(people.lang)) {
    shown.push(...one.slice(0, SHOWN_DECISIONS - shown.length));
    if (shown.length >= SHOWN_DECISIONS) break;
  }
  const view = await me.view(presented).catch((error: unknown) => {
    if (error instanceof Refusal && error.code === 'no-retained-data') return null;
    throw error;
  });
  // The token of a visit is valid for as long, and the page may show the visit a little later.
  const visit = shown.find(({ requestId }) => requestId === me.check(presented).requestId);
  const until = visit && isoTime(Date.parse(visit.decidedAt) + TOKEN_TTL_MS);
  const onHold = await me.isHeld(presented);
  const notice = await me.notice(presented, people);
  const { token } = presented;
  const { requestId, takesComplaints } = me.check(presented);
  const facts = { total, view, onHold, until, token, requestId, takesComplaints, decisions: shown };
  return { ...head, notice, told: '', ...facts };
}

export interface FormDeps {
  readonly me: MeService;
  readonly takePlace: TakePlace;
  readonly sendExport: SendExport;
}

interface SentForm {
  readonly presented: Presented;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly client: string;
  readonly network: string;
}

/** Codes of the fields, in the language of the person. @throws {Refusal} `invalid-request` */
function readFiling({ statement, email = '' }: SentForm['fields'], { say }: PeopleLocals): CaseFiling {
  const parsed = caseFilingSchema.safeParse(email === '' ? { statement } : { statement, email });
  if (parsed.success) return parsed.data;
  const isEmail = parsed.error.issues.every(({ path: [field] }) => field === 'email');
  const isEmpty = typeof statement !== 'string' || statement.trim() === '';
  const detail = say(isEmail ? 'refused.email' : isEmpty ? 'refused.short' : 'refused.long');
  throw new Refusal('invalid-request', { details: [detail] });
}

async function answerForm(
  { me, takePlace, sendExport }: FormDeps,
  { presented, fields, client, network }: SentForm,
  response: Response,
) {
  const { kid, takesComplaints } = me.check(presented);
  const people = speakOf(response, { kid });
  const { action } = fields;
  if (action === 'export') {
    const exported = await sendExport({ kid, client }, () => me.export(presented));
    response.attachment('my-data.json');
    return send(response, exported);
  }
  if (action === 'forget') {
    const notice = await me.notice(presented, people);
    const forgotten = await me.forget(presented);
    const summary = forgottenText(people, forgotten);
    return showPage(response, people, { kid, notice, held: { forgotten, notice, told: summary } });
  }
  if (action === 'contest') {
    const filing = readFiling(fields, people);
    const notice = await me.notice(presented, people);
    const filed = await me.contest(presented, { network, language: people.lang }, filing, people);
    // A second objection is answered with the first one, which may be resolved already.
    const summary = people.say(filed.caseKey === undefined ? 'filed.toldAgain' : 'filed.told');
    return showPage(response, people, { kid, notice, held: { filed, notice, told: summary } });
  }
  if (action === 'complain' && takesComplaints) {
    const filing = readFiling(fields, people);
    const notice = await me.notice(presented, people);
    const complained = await me.complain(presented, { network, language: people.lang }, filing);
    const summary =
      complained.caseKey === undefined
        ? 'Nothing new was sent: you complained before.'
        : 'Your complaint was sent.';
    return showPage(response, people, { kid, notice, held: { complained, notice, told: summary } });
  }
  const saved = action === 'page';
  const leave = takePlace({ kid, client });
  const data = await readHeldData(me, presented, people, saved).finally(leave);
  if (saved) response.attachment('my-data.html');
  return showPage(response, people, { kid, saved, notice: data.notice, held: data });
}

function createFormPage(deps: FormDeps) {
  const readForm = promisify(urlencoded({ extended: false, limit: MAX_FORM, inflate: false }));
  return async (request: Request, response: Response): Promise<void> => {
    await readForm(request, response);
    const fields = (request.body ?? {}) as SentForm['fields'];
    const presented = present(request.headers, fields['token']);
    const { limitKey: client, networkKey: network } = requestFacts(request);
    await answerForm(deps, { presented, fields, client, network }, response);
  };
}
