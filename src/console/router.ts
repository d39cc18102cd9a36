import { Router } from 'express';
import { Refusal } from '../lib/errors.ts';
import { casePages } from './case-pages.ts';
import { makeDesk } from './desk.ts';
import { loginPages } from './login-pages.ts';
import type { CasePort, ConsoleCore, QueuePort } from './ports.ts';
import { queuePages } from './queue-pages.ts';
import { makeRender } from './render.ts';
import { loadStrings } from './strings.ts';

/** The console under /console: every page, its role and its address, from top to bottom. */

export interface ConsoleDeps extends ConsoleCore {
  readonly views: string;
  readonly queue: QueuePort;
  readonly cases: CasePort;
}

export function consoleRoutes(deps: ConsoleDeps): Router {
  const t = loadStrings(deps.views);
  const render = makeRender({ t, random: deps.random, clock: deps.clock });
  const desk = makeDesk(deps, render);
  const pages = Router({ caseSensitive: true });
  pages.get(
    '/',
    desk.page('reviewer', ({ response }) => Promise.resolve(response.redirect(303, '/console/queue'))),
  );
  loginPages(pages, deps, desk, render);
  queuePages(pages, deps.queue, desk, render);
  casePages(pages, { cases: deps.cases, desk, render, t });
  pages.use(() => {
    throw new Refusal('not-found');
  });
  pages.use(desk.onError);
  return Router().use('/console', pages);
}
