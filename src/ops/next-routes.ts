import type { Request, RequestHandler, Response, Router } from 'express';
import { z } from 'zod';
import { STAFF_ROLES, type StaffRole } from '../auth/credentials.ts';
import { isSameToken } from '../console/form.ts';
import { isStaffName } from '../console/invite-service.ts';
import { exactRouter } from '../http/express-app.ts';
import { Refusal } from '../lib/errors.ts';
import type { TextKey } from '../lib/people/say.ts';
import { agentPrompt } from './agent-prompt.ts';
import type { SetupLink } from './setup-link.ts';
import { hasSession, readOwnForm, renderSetup, requireLoopback, type SetupPage } from './setup-routes.ts';
import type { Installed } from './setup-service.ts';

/** The page *Next* after `gpd serve --setup`, for the browser that did it. Its steps tick themselves. */

const roleSchema = z.enum(STAFF_ROLES);

/** The steps, true if it has happened. */
export type NextSteps = Readonly<Record<'pages' | 'check' | 'staff' | 'paper' | 'backup', boolean>>;

const NOTHING_DONE: NextSteps = { pages: false, check: false, staff: false, paper: false, backup: false };

export interface NextNeeds {
  readonly link: SetupLink;
  /** The token of the forms. */
  readonly csrf: string;
  readonly installed: Installed;
  readonly readSteps: () => Promise<NextSteps>;
  /** False if an identity provider signs staff in. */
  readonly usesPasskeys: boolean;
  /** @returns the link; null if another person has the name */
  readonly inviteMember: (name: string, role: StaffRole) => Promise<string | null>;
  /** True until the tenant has a secret key. */
  readonly isKeyless: () => Promise<boolean>;
  /** @returns a new secret key, which is not stored */
  readonly createSecretKey: () => Promise<string>;
  /** Both forms look before they write: of two posts at once the second must find what the first wrote. */
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
}

/** The page of a fresh installation: the server that sends it has no database. */
export const nextPage = (
  { installed, csrf, usesPasskeys }: Pick<NextNeeds, 'installed' | 'csrf' | 'usesPasskeys'>,
  values: SetupPage = {},
) => ({
  ...{ step: 'done', installed, csrf, usesPasskeys, steps: NOTHING_DONE, keyless: true },
  ...{ secretKey: null, invited: null },
  prompt: agentPrompt(installed.baseUrl, installed.key),
  ...values,
});

type Show = (response: Response, values?: SetupPage, status?: number) => Promise<void>;

const createShow =
  (needs: NextNeeds): Show =>
  async (response, values, status) => {
    const [steps, keyless] = await Promise.all([needs.readSteps(), needs.isKeyless()]);
    renderSetup(response, nextPage(needs, { steps, keyless, ...values }), status);
  };

/** @throws {Refusal} */
async function readNextForm(request: Request, csrf: string) {
  const form = await readOwnForm(request);
  if (!isSameToken(form.get('csrf') ?? '', csrf)) throw new Refusal('unauthenticated');
  return form;
}

/**
 * Invites the first member of the staff. Later ones are invited on the command line: a thief of this session
 * could otherwise add one unseen.
 */
function addInvite(router: Router, needs: NextNeeds, guard: RequestHandler, show: Show): void {
  router.post('/setup/invite', requireLoopback, guard, async (request, response) => {
    const form = await readNextForm(request, needs.csrf);
    return needs.inTurn(async () => {
      if (!needs.usesPasskeys || (await needs.readSteps()).staff) return show(response, {}, 409);
      const name = (form.get('name') ?? '').trim();
      const { data: role } = roleSchema.safeParse(form.get('role'));
      const values = { name, role };
      const errors: Readonly<Record<string, TextKey>> = {
        ...(!isStaffName(name) && { name: 'setup.badStaffName' }),
        ...(role === undefined && { role: 'setup.noRole' }),
      };
      if (!isStaffName(name) || role === undefined) return show(response, { values, errors }, 422);
      const invitation = await needs.inviteMember(name, role);
      if (invitation === null) return show(response, { values, errors: { name: 'setup.nameTaken' } }, 422);
      return show(response, { invited: { name, link: invitation } });
    });
  });
}

/** Makes the first secret key, and shows it once. Later ones are made on the command line. */
function addSecretKey(router: Router, needs: NextNeeds, guard: RequestHandler, show: Show): void {
  router.post('/setup/key', requireLoopback, guard, async (request, response) => {
    await readNextForm(request, needs.csrf);
    return needs.inTurn(async () => {
      if (!(await needs.isKeyless())) return show(response, {}, 409);
      return show(response, { secretKey: await needs.createSecretKey() });
    });
  });
}

/** Routes of the started server, for the browser that did the setup. */
export function nextRoutes(needs: NextNeeds): Router {
  const router = exactRouter();
  const show = createShow(needs);
  const guard: RequestHandler = (request, _response, next) => {
    if (!hasSession(needs.link, request)) throw new Refusal('not-found');
    next();
  };
  router.get('/setup', requireLoopback, guard, (_request, response) => show(response));
  router.get('/setup/steps', requireLoopback, guard, async (_request, response) => {
    response.set('cache-control', 'no-store').json(await needs.readSteps());
  });
  addInvite(router, needs, guard, show);
  addSecretKey(router, needs, guard, show);
  return router;
}
