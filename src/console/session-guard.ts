import type { ErrorRequestHandler, Request, RequestHandler, Response, Router } from 'express';
import { type ConsoleSession, isLiveSession, mayOpen, type PageRole } from '../auth/credentials.ts';
import { toRefusal } from '../http/reply.ts';
import { cookieValues, hasLeft } from '../http/request.ts';
import { Refusal } from '../lib/errors.ts';
import { keepTyped } from './cases-service.ts';
import type { Context, Staff } from './context.ts';
import { cookieNames } from './cookies.ts';
import { contestOfPath, type Form, field, isSameOrigin, readForm, sameToken, typedOf } from './form.ts';
import { enterSession, findSession } from './sessions-service.ts';

/** The guard of every page and form: a session, and a role that may. */

export interface ConsoleVisit {
  readonly context: Context;
  readonly request: Request;
  readonly response: Response;
  readonly staff: Staff;
  readonly session: ConsoleSession;
  readonly now: number;
}

export interface Posted extends ConsoleVisit {
  readonly form: Form;
}

/** The session of the browser's cookie, whatever its age. */
export async function sessionOf(context: Context, request: Request): Promise<ConsoleSession | null> {
  const { session } = cookieNames(context.origin());
  const [token] = cookieValues(request.headers.cookie, session);
  return token === undefined || token.length > 128 ? null : findSession(context, token);
}

async function liveSession(context: Context, request: Request, now: number) {
  const session = await sessionOf(context, request);
  return { session, live: session && isLiveSession(session, now) ? session : null };
}

export async function isSignedIn(context: Context, request: Request): Promise<boolean> {
  return (await liveSession(context, request, context.clock())).live !== null;
}

/** @throws {Refusal} `insufficient-scope` */
async function admit(
  context: Context,
  response: Response,
  session: ConsoleSession,
  { role, now }: { readonly role: PageRole; readonly now: number },
): Promise<Staff> {
  const staff = await enterSession(context, session, now);
  response.locals['staff'] = staff;
  response.locals['csrf'] = session.csrf;
  if (!mayOpen(staff.role, role)) throw new Refusal('insufficient-scope');
  return staff;
}

/** GET: without a session the way leads to the sign-in and back. */
function withSession(
  context: Context,
  role: PageRole,
  show: (visit: ConsoleVisit) => unknown,
): RequestHandler {
  return async (request, response) => {
    const now = context.clock();
    const { live: session } = await liveSession(context, request, now);
    if (!session) {
      const back = encodeURIComponent(request.originalUrl);
      response.redirect(303, `/console/login?back=${back}`);
      return;
    }
    const staff = await admit(context, response, session, { role, now });
    await show({ context, request, response, staff, session, now });
  };
}

/** Text that somebody was writing when their session ended is kept for them; it proves itself by the old token. */
async function keepText(context: Context, session: ConsoleSession | null, request: Request, form: Form) {
  const contestId = contestOfPath(request.path);
  if (!session || contestId === null) return false;
  if (!sameToken(field(form, 'csrf') ?? '', session.csrf)) return false;
  const typed = Object.values(typedOf(form, request.path));
  return keepTyped(context, { kid: session.kid, ref: session.actor }, contestId, typed);
}

/** What the page of an expired session shows. */
function expired({ path }: Request, form: Form, kept: boolean) {
  const back = /^\/contests\/con_\w+/.exec(path)?.[0] ?? '';
  const text = ['text', 'question', 'basis'].flatMap((name) => form.get(name) || []).join('\n\n');
  return { kept, text, back: `/console${back}` };
}

/** POST: same origin, then the session, then its token, then the role (all before anything is looked up). */
function withForm(context: Context, role: PageRole, act: (posted: Posted) => unknown): RequestHandler {
  return async (request, response) => {
    if (!isSameOrigin(request, context.origin())) throw new Refusal('origin-not-allowed');
    const form = await readForm(request);
    const now = context.clock();
    const { session, live } = await liveSession(context, request, now);
    if (!live) {
      const kept = await keepText(context, session, request, form);
      context.render(response, 'expired', expired(request, form, kept), 401);
      return;
    }
    response.locals['csrf'] = live.csrf;
    if (!sameToken(form.get('csrf') ?? '', live.csrf)) throw new Refusal('origin-not-allowed');
    const staff = await admit(context, response, live, { role, now });
    await act({ context, request, response, staff, session: live, now, form });
  };
}

/** The page of whatever was thrown. */
export function errorPage({ render, onFault }: Context): ErrorRequestHandler {
  return (error: unknown, request, response, _next) => {
    const requestId = String(response.getHeader('x-request-id') ?? '');
    const refusal = refusalOf(error);
    if (!refusal && !hasLeft(error)) onFault(requestId, error);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.removeHeader('content-disposition');
    response.set(refusal?.headers ?? {});
    const code = refusal?.code ?? 'internal';
    const status = refusal?.status ?? 500;
    if (request.method === 'POST' && status === 413) response.set('connection', 'close');
    render(response, 'error', { code, requestId, details: refusal?.details ?? [] }, status);
  };
}

/** What another tenant has is not there: an id must not tell whether it exists elsewhere. */
function refusalOf(error: unknown): Refusal | null {
  const refusal = toRefusal(error);
  return refusal?.code === 'cross-tenant-denied' ? new Refusal('not-found') : refusal;
}

type Answers<Asked> = Readonly<Record<string, readonly [role: PageRole, answer: (asked: Asked) => unknown]>>;

/** Pages and forms of one group by their paths: who may, and what answers. */
export interface PageTable {
  readonly pages?: Answers<ConsoleVisit>;
  readonly forms?: Answers<Posted>;
}

export function register(router: Router, context: Context, { pages = {}, forms = {} }: PageTable): void {
  for (const [path, [role, show]] of Object.entries(pages))
    router.get(path, withSession(context, role, show));
  for (const [path, [role, act]] of Object.entries(forms)) router.post(path, withForm(context, role, act));
}
