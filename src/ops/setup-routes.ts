import { randomBytes } from 'node:crypto';
import type { Request, RequestHandler, Response, Router } from 'express';
import { z } from 'zod';
import { STAFF_ROLES, type StaffRole } from '../auth/credentials.ts';
import { ConfigError } from '../config.ts';
import { isSameOrigin, isSameToken, readForm } from '../console/form.ts';
import { canJoinAt, isStaffName, NAME_RULE } from '../console/invite-service.ts';
import { usualPolicy } from '../console/render.ts';
import { exactRouter } from '../http/express-app.ts';
import { cookieValues } from '../http/request.ts';
import { HOUR, SECOND } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { isLoopbackAuthority } from '../lib/ip.ts';
import { AlreadyInitialised } from '../tenants/installation-files.ts';
import { VERSION } from '../version.ts';
import type { SetupLink } from './setup-link.ts';
import { type Installed, readSetup, type Setup } from './setup-service.ts';

/**
 * The pages of `gpd serve --setup`: the form that creates the installation, then the snippet until the first
 * visit arrives.
 */

const COOKIE = 'gpd_setup';
const roleSchema = z.enum(STAFF_ROLES);

/** @throws {Refusal} */
const requireLoopback: RequestHandler = (request, _response, next) => {
  if (!isLoopbackAuthority(request.headers.host ?? '')) throw new Refusal('origin-not-allowed');
  next();
};

const originOf = ({ protocol, headers }: Request): string => new URL(`${protocol}://${headers.host}`).origin;

/** @throws {Refusal} for a form that another site has sent */
async function readOwnForm(request: Request) {
  if (!isSameOrigin(request, originOf(request))) throw new Refusal('origin-not-allowed');
  return readForm(request);
}

function render(response: Response, values: object, status = 200): void {
  const nonce = randomBytes(16).toString('base64');
  response.status(status).set({
    'content-security-policy': `${usualPolicy(nonce)}; connect-src 'self'`,
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
  });
  response.render('setup', { nonce, token: '', csrf: '', wrong: {}, values: {}, invited: null, ...values });
}

const hasSession = (link: SetupLink, request: Request): boolean =>
  cookieValues(request.headers.cookie, COOKIE).some((secret) => link.isSession(secret));

export interface SetupNeeds {
  readonly link: SetupLink;
  /** The token of the forms. */
  readonly csrf: string;
  /** False if an identity provider signs staff in. */
  readonly usesPasskeys: boolean;
  /** GPD_BASE_URL; null: the form asks for it. */
  readonly baseUrl: string | null;
  /** Creates the installation. @throws {AlreadyInitialised} {ConfigError} */
  readonly install: (setup: Setup) => Promise<Installed>;
  /** Called after the page with the result was sent. */
  readonly onInstalled: (installed: Installed) => void;
}

/** The address that the browser shows; a passkey needs a name. */
const proposedBaseUrl = (request: Request): string => (canJoinAt(originOf(request)) ? originOf(request) : '');

function addLink(router: Router, { link, baseUrl, csrf }: SetupNeeds): void {
  router.get('/setup', (request, response) => {
    const { token } = request.query;
    if (hasSession(link, request)) {
      const values = { baseUrl: proposedBaseUrl(request) };
      render(response, { step: 'form', csrf, baseUrl, values });
    }
    // A GET leaves the link valid, because chat programs and browsers fetch links for a preview.
    else if (typeof token === 'string' && link.isGood(token)) render(response, { step: 'begin', token });
    else render(response, { step: 'over' }, 403);
  });
  router.post('/setup/begin', async (request, response) => {
    const form = await readOwnForm(request);
    const secret = link.exchange(form.get('token') ?? '');
    if (secret === null) {
      render(response, { step: 'over' }, 403);
      return;
    }
    const cookie = `${COOKIE}=${secret}; HttpOnly; SameSite=Strict; Path=/setup; Max-Age=${HOUR / SECOND}`;
    response.append('set-cookie', cookie).redirect(303, '/setup');
  });
}

function addForm(router: Router, needs: SetupNeeds): void {
  const { csrf, usesPasskeys } = needs;
  let isBusy = false;
  router.post('/setup', async (request, response) => {
    const form = await readOwnForm(request);
    if (!hasSession(needs.link, request) || !isSameToken(form.get('csrf') ?? '', csrf))
      throw new Refusal('unauthenticated');
    const values = {
      ...Object.fromEntries(form),
      ...(needs.baseUrl === null ? {} : { baseUrl: needs.baseUrl }),
    };
    const showForm = (errors: object) =>
      render(response, { step: 'form', csrf, baseUrl: needs.baseUrl, values, wrong: errors }, 422);
    const { data, errors } = readSetup(values);
    if (!data) return showForm(errors);
    if (isBusy) return showForm({ form: 'The installation is being made.' });
    isBusy = true;
    try {
      const installed = await needs.install(data);
      response.once('finish', () => needs.onInstalled(installed));
      response.set('connection', 'close');
      render(response, { step: 'done', installed, csrf, usesPasskeys, invitable: usesPasskeys });
    } catch (error) {
      isBusy = false;
      if (!(error instanceof AlreadyInitialised || error instanceof ConfigError)) throw error;
      showForm({ form: error.message });
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

/** The only routes until the installation exists. */
export function setupRoutes(needs: SetupNeeds): Router {
  const router = exactRouter();
  addHealth(router);
  router.use(requireLoopback);
  addLink(router, needs);
  addForm(router, needs);
  return router;
}

export interface FirstVisitNeeds extends Pick<SetupNeeds, 'link' | 'csrf' | 'usesPasskeys'> {
  readonly installed: Installed;
  readonly hasVisit: () => Promise<boolean>;
  /** True until somebody is invited. */
  readonly isInvitable: () => Promise<boolean>;
  /** @returns the link; null if another person has the name */
  readonly inviteMember: (name: string, role: StaffRole) => Promise<string | null>;
}

/**
 * Invites the first member of the staff. Later ones are invited on the command line: a thief of this session
 * could otherwise add one unseen.
 */
function addInvite(router: Router, needs: FirstVisitNeeds, guard: RequestHandler): void {
  const { installed, csrf, usesPasskeys } = needs;
  const isInvitable = async () => usesPasskeys && (await needs.isInvitable());
  router.post('/setup/invite', requireLoopback, guard, async (request, response) => {
    const form = await readOwnForm(request);
    if (!isSameToken(form.get('csrf') ?? '', csrf)) throw new Refusal('unauthenticated');
    const show = (values: object, status = 200) =>
      render(response, { step: 'done', installed, csrf, usesPasskeys, ...values }, status);
    if (!(await isInvitable())) return show({ invitable: false }, 409);
    const name = (form.get('name') ?? '').trim();
    const { data: role } = roleSchema.safeParse(form.get('role'));
    const errors = {
      ...(!isStaffName(name) && { name: `Enter a name: ${NAME_RULE}.` }),
      ...(role === undefined && { role: 'Choose a role.' }),
    };
    if (!isStaffName(name) || role === undefined)
      return show({ invitable: true, values: { name, role }, wrong: errors }, 422);
    const invitation = await needs.inviteMember(name, role);
    if (invitation === null)
      return show(
        { invitable: true, values: { name, role }, wrong: { name: 'Somebody has that name.' } },
        422,
      );
    show({ invitable: false, invited: { name, link: invitation } });
  });
}

/**
 * Routes of the started server: the browser that did the setup sees the snippet again, whether a visit has
 * arrived, and invites the first member of the staff.
 */
export function firstVisitRoutes(needs: FirstVisitNeeds): Router {
  const { link, csrf, installed, usesPasskeys } = needs;
  const router = exactRouter();
  const guard: RequestHandler = (request, _response, next) => {
    if (!hasSession(link, request)) throw new Refusal('not-found');
    next();
  };
  router.get('/setup', requireLoopback, guard, async (_request, response) =>
    render(response, {
      ...{ step: 'done', installed, csrf, usesPasskeys },
      invitable: usesPasskeys && (await needs.isInvitable()),
    }),
  );
  router.get('/setup/visit', requireLoopback, guard, async (_request, response) => {
    response.set('cache-control', 'no-store').json({ arrived: await needs.hasVisit() });
  });
  addInvite(router, needs, guard);
  return router;
}
