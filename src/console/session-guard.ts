import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { type ConsoleSession, isLiveSession, roleOf, type StaffRole } from '../auth/console-session.ts';
import { toRefusal } from '../http/reply.ts';
import { MINUTE } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { cookieNames } from './cookies.ts';
import { type Form, field, isSameOrigin, readForm, sameToken } from './form.ts';
import type { ConsoleCore, Staff } from './ports.ts';
import { type Render, safeRequestId } from './render.ts';
import { contestOfPath, keepTyped, typedOf } from './typed.ts';

/** Who sits at the desk: every page and every form of the console passes here first. */

export interface Visit {
  readonly request: Request;
  readonly response: Response;
  readonly staff: Staff;
  readonly session: ConsoleSession;
  readonly now: number;
}

export interface Posted extends Visit {
  readonly form: Form;
}

export interface Desk {
  /** GET: without a session the way leads to the sign-in and back. */
  page(role: StaffRole, show: (visit: Visit) => Promise<void>): RequestHandler;
  /** POST: same origin, then the session, then its token, then the role (all before anything is looked up). */
  action(role: StaffRole, act: (posted: Posted) => Promise<void>): RequestHandler;
  isSignedIn(request: Request): Promise<boolean>;
  readonly onError: ErrorRequestHandler;
}

/** A write for every page view would be too many. */
const TOUCH_MS = MINUTE;

export function makeDesk(core: ConsoleCore, render: Render): Desk {
  async function find(request: Request): Promise<ConsoleSession | null> {
    const { session } = cookieNames(core.origin());
    const [token] = core.http.cookieValues(request.headers.cookie, session);
    return token === undefined || token.length > 128 ? null : core.sessions.find(token);
  }

  async function enter(session: ConsoleSession, now: number): Promise<Staff> {
    if (now - session.seenAt > TOUCH_MS) await core.sessions.touch(session);
    return { kid: session.kid, role: roleOf(session), ref: session.actor, label: session.label };
  }

  function requireRole(staff: Staff, role: StaffRole): void {
    if (role === 'dpo' && staff.role !== 'dpo') throw new Refusal('insufficient-scope');
  }

  /** Text that somebody was writing when their session ended is kept for them; it proves itself by the old token. */
  async function keepText(session: ConsoleSession | null, request: Request, form: Form): Promise<boolean> {
    const contestId = contestOfPath(request.path);
    if (!session || contestId === null) return false;
    if (!sameToken(field(form, 'csrf') ?? '', session.csrf)) return false;
    const typed = Object.values(typedOf(form, request.path));
    return keepTyped(core.drafts, { kid: session.kid, ref: session.actor }, contestId, typed);
  }

  return {
    async isSignedIn(request) {
      const session = await find(request);
      return session !== null && isLiveSession(session, core.clock());
    },

    page: (role, show) => async (request, response) => {
      const now = core.clock();
      const session = await find(request);
      if (!session || !isLiveSession(session, now)) {
        const back = encodeURIComponent(request.originalUrl);
        response.redirect(303, `/console/login?back=${back}`);
        return;
      }
      const staff = await enter(session, now);
      response.locals['staff'] = staff;
      response.locals['csrf'] = session.csrf;
      requireRole(staff, role);
      await show({ request, response, staff, session, now });
    },

    action: (role, act) => async (request, response) => {
      if (!isSameOrigin(request, core.origin())) throw new Refusal('origin-not-allowed');
      const form = await readForm(core.http, request);
      const now = core.clock();
      const session = await find(request);
      if (!session || !isLiveSession(session, now)) {
        const kept = await keepText(session, request, form);
        const back = /^\/contests\/con_\w+/.exec(request.path)?.[0] ?? '';
        const text = ['text', 'question', 'basis'].flatMap((name) => form.get(name) || []).join('\n\n');
        render(response, 'expired', { kept, text, back: `/console${back}` }, 401);
        return;
      }
      response.locals['csrf'] = session.csrf;
      if (!sameToken(form.get('csrf') ?? '', session.csrf)) throw new Refusal('origin-not-allowed');
      const staff = await enter(session, now);
      response.locals['staff'] = staff;
      requireRole(staff, role);
      await act({ request, response, staff, session, now, form });
    },

    onError: (error: unknown, request, response, _next) => {
      const requestId = safeRequestId(response);
      const refusal = refusalOf(error);
      if (!refusal) core.onFault(requestId, error);
      if (response.headersSent) {
        response.destroy();
        return;
      }
      response.set(refusal?.headers ?? {});
      const code = refusal?.code ?? 'internal';
      const status = refusal?.status ?? 500;
      if (request.method === 'POST' && status === 413) response.set('connection', 'close');
      render(response, 'error', { code, requestId, details: refusal?.details ?? [] }, status);
    },
  };
}

/** What another tenant has is not there: an id must not tell whether it exists elsewhere. */
function refusalOf(error: unknown): Refusal | null {
  const refusal = toRefusal(error);
  return refusal?.code === 'cross-tenant-denied' ? new Refusal('not-found') : refusal;
}
