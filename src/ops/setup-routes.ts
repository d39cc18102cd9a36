import { randomBytes } from 'node:crypto';
import type { Request, RequestHandler, Response, Router } from 'express';
import { ConfigError } from '../config.ts';
import { isSameOrigin, isSameToken, readForm } from '../console/form.ts';
import { canJoinAt } from '../console/invite-service.ts';
import { usualPolicy } from '../console/render.ts';
import { exactRouter } from '../http/express-app.ts';
import { speakTo } from '../http/people.ts';
import { cookieValues } from '../http/request.ts';
import { HOUR, SECOND } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { isLoopbackAuthority } from '../lib/ip.ts';
import type { TextKey } from '../lib/people/say.ts';
import { AlreadyInitialised } from '../tenants/installation-files.ts';
import { VERSION } from '../version.ts';
import type { SetupLink } from './setup-link.ts';
import { type Installed, type InterruptedSetup, readSetup, type Setup } from './setup-service.ts';

/** The pages of `gpd serve --setup` until the installation exists; next-routes.ts has those after it. */

const COOKIE = 'gpd_setup';

/** @throws {Refusal} */
export const requireLoopback: RequestHandler = (request, _response, next) => {
  if (!isLoopbackAuthority(request.headers.host ?? '')) throw new Refusal('origin-not-allowed');
  next();
};

const originOf = ({ protocol, headers }: Request): string => new URL(`${protocol}://${headers.host}`).origin;

/** @throws {Refusal} for a form that another site has sent */
export async function readOwnForm(request: Request) {
  if (!isSameOrigin(request, originOf(request))) throw new Refusal('origin-not-allowed');
  return readForm(request);
}

/** The values of the page. */
export interface SetupPage {
  /** Texts by field. */
  readonly errors?: Readonly<Record<string, TextKey>>;
  /** The text above the form, with its values; `message` is the server's, in English. */
  readonly problem?: { readonly key: TextKey; readonly values?: object; readonly message?: string };
  readonly [name: string]: unknown;
}

export function renderSetup(response: Response, values: SetupPage, status = 200): void {
  const nonce = randomBytes(16).toString('base64');
  response.status(status).set({
    'content-security-policy': `${usualPolicy(nonce)}; connect-src 'self'`,
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
  });
  const defaults = { token: '', csrf: '', errors: {}, problem: null, values: {} };
  // The answer to a form shows some things once, and its address does not show it again.
  const hasSwitch = response.req.method === 'GET';
  response.render('setup', { ...speakTo(response), hasSwitch, nonce, ...defaults, ...values });
}

export const hasSession = (link: SetupLink, request: Request): boolean =>
  cookieValues(request.headers.cookie, COOKIE).some((secret) => link.isSession(secret));

export interface SetupNeeds {
  readonly link: SetupLink;
  /** The token of the forms. */
  readonly csrf: string;
  /** GPD_BASE_URL; null: the form asks for it. */
  readonly baseUrl: string | null;
  /** Creates the installation. @throws {AlreadyInitialised} {ConfigError} */
  readonly install: (setup: Setup) => Promise<Installed | InterruptedSetup>;
  /** Called after the page with the result was sent. */
  readonly onInstalled: (installed: Installed) => void;
  /** @returns the page *Next* before anything of it was done */
  readonly nextPage: (installed: Installed) => SetupPage;
}

/** The address that the browser shows; a passkey needs a name. */
const proposedBaseUrl = (request: Request): string => (canJoinAt(originOf(request)) ? originOf(request) : '');

function addLink(router: Router, { link, baseUrl, csrf }: SetupNeeds): void {
  router.get('/setup', (request, response) => {
    const { token } = request.query;
    if (hasSession(link, request)) {
      const values = { baseUrl: proposedBaseUrl(request) };
      renderSetup(response, { step: 'form', csrf, baseUrl, values });
    }
    // A GET leaves the link valid, because chat programs and browsers fetch links for a preview.
    else if (typeof token === 'string' && link.isGood(token)) renderSetup(response, { step: 'begin', token });
    else renderSetup(response, { step: 'over' }, 403);
  });
  router.post('/setup/begin', async (request, response) => {
    const form = await readOwnForm(request);
    const secret = link.exchange(form.get('token') ?? '');
    if (secret === null) {
      renderSetup(response, { step: 'over' }, 403);
      return;
    }
    const cookie = `${COOKIE}=${secret}; HttpOnly; SameSite=Strict; Path=/setup; Max-Age=${HOUR / SECOND}`;
    response.append('set-cookie', cookie).redirect(303, `/setup${speakTo(response).langQuery}`);
  });
}

function addForm(router: Router, needs: SetupNeeds): void {
  const { csrf } = needs;
  let isBusy = false;
  router.post('/setup', async (request, response) => {
    const form = await readOwnForm(request);
    if (!hasSession(needs.link, request) || !isSameToken(form.get('csrf') ?? '', csrf))
      throw new Refusal('unauthenticated');
    const values = {
      ...Object.fromEntries(form),
      ...(needs.baseUrl === null ? {} : { baseUrl: needs.baseUrl }),
    };
    const showForm = (problems: Pick<SetupPage, 'errors' | 'problem'>) =>
      renderSetup(response, { step: 'form', csrf, baseUrl: needs.baseUrl, values, ...problems }, 422);
    const { data, errors } = readSetup(values);
    if (!data) return showForm({ errors });
    if (isBusy) return showForm({ problem: { key: 'setup.busy' } });
    isBusy = true;
    try {
      const installed = await needs.install(data);
      if ('interruptedTenant' in installed) {
        isBusy = false;
        const tenant = { text: installed.interruptedTenant };
        return showForm({ problem: { key: 'setup.interrupted', values: { tenant } } });
      }
      response.once('finish', () => needs.onInstalled(installed));
      response.set('connection', 'close');
      renderSetup(response, needs.nextPage(installed));
    } catch (error) {
      isBusy = false;
      if (error instanceof AlreadyInitialised)
        showForm({ problem: { key: 'setup.exists', values: { command: { id: 'gpd tenants add' } } } });
      else if (error instanceof ConfigError)
        showForm({ problem: { key: 'setup.refused', message: error.message } });
      else throw error;
    }
  });
}

/** A supervisor or a container must not restart gpd while a person fills in the form. */
function addHealth(router: Router): void {
  router.get('/healthz', (_request, response) => {
    response.set('cache-control', 'no-store').json({ status: 'ok', version: VERSION });
  });
  router.get('/readyz', (_request, response) => {
    const notReady = ['the installation is not made yet: open the link of gpd serve --setup'];
    const housekeeping = { completeAt: null, retentionAt: null };
    response.status(503).set('cache-control', 'no-store');
    response.json({ status: 'not-ready', notReady, degraded: [], housekeeping });
  });
}

/** The page cannot have the link, because every program of this machine may open it. */
function addRoot(router: Router): void {
  router.get('/', ({ headers }, response) => {
    const isHere = isLoopbackAuthority(headers.host ?? '');
    renderSetup(response, { step: isHere ? 'closed' : 'elsewhere' }, isHere ? 503 : 403);
  });
}

/** The only routes until the installation exists. */
export function setupRoutes(needs: SetupNeeds): Router {
  const router = exactRouter();
  addHealth(router);
  addRoot(router);
  router.use(requireLoopback);
  addLink(router, needs);
  addForm(router, needs);
  return router;
}
