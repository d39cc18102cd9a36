import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { type Request, type Response, urlencoded } from 'express';
import { present } from '../../attest/attest-routes.ts';
import type { Presented } from '../../attest/ceremony.ts';
import { speakTo } from '../../http/people.ts';
import { jsonReply, noteRefusal } from '../../http/reply.ts';
import { parseShape } from '../../http/request.ts';
import { json, page, reply, type ServedRoute } from '../../http/routes.ts';
import { requestFacts, send } from '../../http/server.ts';
import { toldOnce } from '../../ingest/verdict/classify.ts';
import { isReconciled } from '../../ingest/verdict/verdict.ts';
import { classText } from '../../ingest/verdict/verdict-words.ts';
import { isoTime } from '../../lib/clock.ts';
import { Refusal } from '../../lib/errors.ts';
import { type PeopleLanguage, requestLanguage } from '../../lib/languages.ts';
import { type CaseFiling, caseFilingSchema, type Forgotten } from '../../schema/rights.ts';
import { publishableKeySchema } from '../../schema/rights-routes.ts';
import { ROUTES } from '../../schema/routes.ts';
import { type createNotice, UNNAMED } from '../dsar/dsar.ts';
import type { SendExport, TakePlace } from '../export-routes.ts';
import type { MeService } from './service.ts';
import { TOKEN_TTL_MS } from './transparency.ts';

export const languageOfPerson = (headers: IncomingHttpHeaders, lang?: unknown): PeopleLanguage =>
  requestLanguage(lang, headers['accept-language'] ?? null);

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
  /** Reads the notice with the controller and its contact; null: the tenant does not exist. */
  notice(kid: string): Promise<ReturnType<typeof createNotice> | null>;
  /** Tenants whose pages are at this host, or the only tenant of the installation. Others are never shown. */
  at(host: string | undefined): readonly string[];
}

/** 4,000 characters of four bytes each, percent-encoded, and the rest of the form. */
const MAX_FORM = '64kb';
const SHOWN_DECISIONS = 100;

const TIME = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
const formatTime = (iso: string): string => `${TIME.format(new Date(iso))} UTC`;

interface Shown extends Readonly<Record<string, unknown>> {
  readonly kid?: string;
  readonly publishableKey?: string | null;
}

function showPage(response: Response, values: Shown, status = 200): void {
  const people = speakTo(response, { kid: values.kid, key: values.publishableKey });
  // Under no-referrer browsers send `Origin: null` with a form, and every token would be refused.
  response.set({ 'cache-control': 'no-store', 'referrer-policy': 'same-origin' });
  const isNamed = (contact: string): boolean => contact !== UNNAMED.contact;
  const inLanguage = (name: string): string => classText(name, people.lang);
  const words = { when: formatTime, toldOnce, classText: inLanguage, isReconciled, isNamed };
  response.status(status).render('my-data', { ...values, status, ...words, ...people });
}

export function myDataRoutes(sites: Sites, form: FormDeps): readonly ServedRoute[] {
  return [
    page(ROUTES.getMyDataPage, async ({ query, headers }, response) => {
      const { kid: named = '', key } = query as Readonly<Record<string, unknown>>;
      const here = sites.at(headers.host);
      const kid = named === '' && here.length === 1 ? here[0] : named;
      const notice = typeof kid === 'string' ? await sites.notice(kid) : null;
      if (typeof kid === 'string' && notice !== null) {
        const publishableKey = publishableKeySchema.safeParse(key).data ?? null;
        showPage(response, { kid, notice, publishableKey });
        return;
      }
      if (named !== '') noteRefusal('unknown-kid', String(named));
      const refusal = new Refusal(named === '' ? 'missing-kid' : 'unknown-kid');
      if (headers.accept?.includes('text/html') !== true) throw refusal;
      showPage(response, { tenants: here }, named === '' ? 200 : refusal.status);
    }),
    page(ROUTES.submitMyDataForm, createFormPage(form)),
  ];
}

function forgottenText({ shared, scopes }: Forgotten): string {
  const acts = scopes.filter(({ scope, action }) => scope !== 'backups' && action !== 'none');
  if (acts.length === 0) return 'Forgotten: nothing was held any longer.';
  const isKept = acts.some(({ action }) => action === 'retained');
  if (acts.every(({ action }) => action === 'retained'))
    return 'Nothing was erased. The list below says what is kept and why.';
  if (isKept) return 'Not all of it was erased. The list below says what is kept and why.';
  const isDone = acts.every(({ action }) => action === 'erased');
  if (shared)
    return `Only this visit ${isDone ? 'was' : 'is being'} erased. Similar devices share an id, so the others may be other people’s.`;
  return `Forgotten: the decisions about this device and its hash ${isDone ? 'were' : 'are being'} erased.`;
}

/** @param saved true if the person saves the page as a file, which is an export */
async function readHeldData(me: MeService, presented: Presented, saved: boolean, language: PeopleLanguage) {
  const dsar = await (saved ? me.export(presented) : me.look(presented));
  const { head, total } = dsar;
  const shown = [];
  for await (const one of dsar.decisions(language)) {
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
  const { takesComplaints } = me.check(presented);
  return {
    ...head,
    total,
    takesComplaints,
    view,
    onHold,
    until,
    told: '',
    token: presented.token,
    decisions: shown,
  };
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
  readonly language: PeopleLanguage;
}

/** An empty address is none. */
const readFiling = ({ statement, email = '' }: SentForm['fields']): CaseFiling =>
  parseShape(email === '' ? { statement } : { statement, email }, caseFilingSchema);

async function answerForm(
  { me, takePlace, sendExport }: FormDeps,
  { presented, fields, client, network, language }: SentForm,
  response: Response,
) {
  const { kid, requestId, takesComplaints } = me.check(presented);
  const { action } = fields;
  if (action === 'export') {
    const exported = await sendExport({ kid, client }, () => me.export(presented));
    response.attachment('my-data.json');
    return send(response, exported);
  }
  if (action === 'forget') {
    const notice = await me.notice(presented);
    const forgotten = await me.forget(presented);
    return showPage(response, { kid, held: { forgotten, notice, told: forgottenText(forgotten) } });
  }
  if (action === 'contest') {
    const filing = readFiling(fields);
    const notice = await me.notice(presented);
    const filed = await me.contest(presented, { network, language }, filing);
    // A second objection is answered with the first one, which may be resolved already.
    const message =
      filed.caseKey === undefined
        ? 'Nothing new was filed: a review of this decision was asked for before.'
        : 'Your objection was filed. A person will review it.';
    return showPage(response, { kid, held: { filed, notice, told: message } });
  }
  if (action === 'complain' && takesComplaints) {
    const notice = await me.notice(presented);
    const complained = await me.complain(presented, { network, language }, readFiling(fields));
    const told =
      complained.caseKey === undefined
        ? 'Nothing new was sent: you complained before.'
        : 'Your complaint was sent.';
    return showPage(response, { kid, held: { complained, notice, told } });
  }
  const saved = action === 'page';
  const leave = takePlace({ kid, client });
  const data = await readHeldData(me, presented, saved, language).finally(leave);
  const values = { kid, saved, held: { ...data, requestId } };
  if (saved) response.attachment('my-data.html');
  return showPage(response, values);
}

function createFormPage(deps: FormDeps) {
  const readForm = promisify(urlencoded({ extended: false, limit: MAX_FORM, inflate: false }));
  return async (request: Request, response: Response): Promise<void> => {
    await readForm(request, response);
    const fields = (request.body ?? {}) as SentForm['fields'];
    const presented = present(request.headers, fields['token']);
    const { limitKey: client, networkKey: network } = requestFacts(request);
    const language = languageOfPerson(request.headers, request.query['lang']);
    await answerForm(deps, { presented, fields, client, network, language }, response);
  };
}
