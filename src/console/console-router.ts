import type { Router } from 'express';
import { exactRouter } from '../http/exact-router.ts';
import { Refusal } from '../lib/errors.ts';
import { auditPages } from './audit-pages.ts';
import { casePages } from './case-pages.ts';
import { insightPages } from './insight-pages.ts';
import { jobPages } from './job-pages.ts';
import { loginPages } from './login-pages.ts';
import type { ConsoleCore } from './ports.ts';
import type { CasePort, QueuePort } from './ports-cases.ts';
import type { AuditPort, JobPort, SubjectPort } from './ports-dpo.ts';
import type { InsightPort } from './ports-insight.ts';
import { previewPages } from './preview-pages.ts';
import { queuePages } from './queue-pages.ts';
import { makeRender } from './render.ts';
import { makeDesk } from './session-guard.ts';
import { loadStrings } from './strings-files.ts';
import { subjectPages } from './subject-pages.ts';

/** The console under /console: every page, its role and its address, from top to bottom. */

export interface ConsoleDeps extends ConsoleCore {
  readonly views: string;
  readonly queue: QueuePort;
  readonly cases: CasePort;
  readonly subjects: SubjectPort;
  readonly jobs: JobPort;
  readonly audit: AuditPort;
  readonly insight: InsightPort;
}

/** Whatever a page or a form does not take is 405 with what it does. Read off the routes, so that none is forgotten. */
function otherMethods(pages: Router): void {
  const taken = new Map<string, Set<string>>();
  for (const { route } of pages.stack) {
    if (!route) continue;
    const methods = taken.get(route.path) ?? new Set<string>();
    for (const { method } of route.stack) methods.add(method.toUpperCase());
    if (methods.has('GET')) methods.add('HEAD');
    taken.set(route.path, methods);
  }
  for (const [path, methods] of taken) {
    const headers = { allow: [...methods].join(', ') };
    pages.all(path, () => {
      throw new Refusal('method-not-allowed', { headers });
    });
  }
}

/** A proxy that keeps /console from strangers keeps /CONSOLE from them as well. */

export function consoleRoutes(deps: ConsoleDeps): Router {
  const t = loadStrings(deps.views);
  const render = makeRender({ t, random: deps.random, clock: deps.clock });
  const desk = makeDesk(deps, render);
  const pages = exactRouter();
  pages.get(
    '/',
    desk.page('reviewer', ({ response }) => Promise.resolve(response.redirect(303, '/console/queue'))),
  );
  loginPages(pages, deps, desk, render);
  queuePages(pages, deps.queue, desk, render);
  casePages(pages, { cases: deps.cases, drafts: deps.drafts, desk, render, t });
  subjectPages(pages, deps.subjects, desk, render);
  jobPages(pages, deps.jobs, desk, render);
  auditPages(pages, deps.audit, desk, render);
  insightPages(pages, deps.insight, desk, render);
  previewPages(pages, { insight: deps.insight, views: deps.views, desk, render });
  otherMethods(pages);
  pages.use(() => {
    throw new Refusal('not-found');
  });
  pages.use(desk.onError);
  return exactRouter().use('/console', pages);
}
