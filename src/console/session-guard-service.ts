import type { ErrorRequestHandler, Request, RequestHandler, Response, Router } from 'express';
import { type ConsoleSession, isLiveSession, mayOpen, type PageRole } from '../auth/credentials.ts';
import { readOn } from '../http/connections.ts';
import { toRefusal } from '../http/reply.ts';
import { cookieValues, hasLeft } from '../http/request.ts';
import { Refusal } from '../lib/errors.ts';
import { saveTyped } from './case-queue-service.ts';
import type { Context, Staff } from './context-service.ts';
import { cookieNames } from './cookies.ts';
import {
  contestOfPath,
  type Form,
  isSameOrigin,
  isSameToken,
  readField,
  readForm,
  readTypedTexts,
} from './form.ts';
import { readPlaceCounts } from './places-service.ts';
import { enterSession, findSession } from './sessions-service.ts';

/**
 * Admits a request to a page or a form: it needs a live session
 * and a role that may open the page. Shows the error page.
 */

export interface ConsoleVisit {
  readonly context: Context;
  readonly request: Request;
  readonly response: Response;
  readonly staff: Staff;
  readonly session: ConsoleSession;
  readonly now: number;
}

export interface FormVisit extends ConsoleVisit {
  readonly form: Form;
}

/** @returns the session of the browser's cookie, which may have expired */
export async function findCookieSession(context: Context, request: Request): Promise<ConsoleSession | null> {
  const { session } = cookieNames(context.origin());
  const [token] = cookieValues(request.headers.cookie, session);
  return token === undefined || token.length > 128 ? null : findSession(context, token);
}

async function findLiveSession(context: Context, request: Request, now: number) {
  const session = await findCookieSession(context, request);
  return { session, live: session && isLiveSession(session, now) ? session : null };
}

export async function isSignedIn(context: Context, request: Request): Promise<boolean> {
  return (await findLiveSession(context, request, context.clock())).live !== null;
}

/** @throws {Refusal} `insufficient-scope` */
async function admit(
  context: Context,
  response: Response,
  session: ConsoleSession,
  { role, now }: { readonly role: PageRole; readonly now: number },
): Promise<Staff> {
  const staff = await enterSession(context, session, now);
  response.locals['places'] = await readPlaceCounts(context, staff);
  response.locals['staff'] = staff;
  response.locals['csrf'] = session.csrf;
  if (!mayOpen(staff.role, role)) throw new Refusal('insufficient-scope');
  return staff;
}

/** Guards a GET. Without a session the browser is sent to the sign-in, and then back. */
function guardPage(context: Context, role: PageRole, show: (visit: ConsoleVisit) => unknown): RequestHandler {
  return async (request, response) => {
    const now = context.clock();
    const { live: session } = await findLiveSession(context, request, now);
    if (!session) {
      const back = encodeURIComponent(request.originalUrl);
      response.redirect(303, `/console/login?back=${back}`);
      return;
    }
    const staff = await admit(context, response, session, { role, now });
    await show({ context, request, response, staff, session, now });
  };
}

/**
 * Saves the texts of a form whose session has expired. The form must carry the CSRF token of that session.
 */
async function keepText(context: Context, session: ConsoleSession | null, request: Request, form: Form) {
  const contestId = contestOfPath(request.path);
  if (!session || contestId === null) return false;
  if (!isSameToken(readField(form, 'csrf') ?? '', session.csrf)) return false;
  const typed = Object.values(readTypedTexts(form, request.path));
  return saveTyped(context, { kid: session.kid, ref: session.actor }, contestId, typed);
}

/** Collects the typed texts, which the page shows so that the person can copy them. */
function expiredValues({ path }: Request, form: Form, isKept: boolean) {
  const back = /^\/contests\/con_\w+/.exec(path)?.[0] ?? '';
  const text = ['text', 'question', 'basis'].flatMap((name) => form.get(name) || []).join('\n\n');
  return { isKept, text, back: `/console${back}` };
}

/**
 * Guards a POST. It checks origin, session, CSRF token and role, in this order, before anything is looked up.
 */
function guardForm(context: Context, role: PageRole, act: (visit: FormVisit) => unknown): RequestHandler {
  return async (request, response) => {
    if (!isSameOrigin(request, context.origin())) throw new Refusal('origin-not-allowed');
    const form = await readForm(request);
    const now = context.clock();
    const { session, live } = await findLiveSession(context, request, now);
    if (!live) {
      const isKept = await keepText(context, session, request, form);
      context.render(response, 'expired', expiredValues(request, form, isKept), 401);
      return;
    }
    response.locals['csrf'] = live.csrf;
    if (!isSameToken(form.get('csrf') ?? '', live.csrf)) throw new Refusal('origin-not-allowed');
    const staff = await admit(context, response, live, { role, now });
    await act({ context, request, response, staff, session: live, now, form });
  };
}

/** Shows a page for a refusal, and for any other error, which is reported to `onFault`. */
export function createErrorPage({ render, onFault }: Context): ErrorRequestHandler {
  return async (error: unknown, request, response, _next) => {
    const requestId = String(response.getHeader('x-request-id') ?? '');
    const refusal = toPageRefusal(error);
    if (!refusal && !hasLeft(error)) onFault(requestId, error);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.removeHeader('content-disposition');
    response.set(refusal?.headers ?? {});
    const code = refusal?.code ?? 'internal';
    const status = refusal?.status ?? 500;
    // A browser that still sends would lose the page.
    if (status === 413) await readOn(request);
    render(response, 'error', { code, requestId, details: refusal?.details ?? [] }, status);
  };
}

/**
 * Another tenant's object is answered as not found, so that an id does not reveal whether it exists there.
 */
function toPageRefusal(error: unknown): Refusal | null {
  const refusal = toRefusal(error);
  return refusal?.code === 'cross-tenant-denied' ? new Refusal('not-found') : refusal;
}

type Handlers<Visit> = Readonly<Record<string, readonly [role: PageRole, answer: (asked: Visit) => unknown]>>;

/** The pages and forms of one file: by path, the role that may open it and the function that answers. */
export interface PageTable {
  readonly pages?: Handlers<ConsoleVisit>;
  readonly forms?: Handlers<FormVisit>;
}

export function registerPages(router: Router, context: Context, { pages = {}, forms = {} }: PageTable): void {
  for (const [path, [role, show]] of Object.entries(pages)) router.get(path, guardPage(context, role, show));
  for (const [path, [role, act]] of Object.entries(forms)) router.post(path, guardForm(context, role, act));
}
