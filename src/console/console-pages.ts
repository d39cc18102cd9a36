import type { Router } from 'express';
import { exactRouter } from '../http/register.ts';
import { Refusal } from '../lib/errors.ts';
import { auditPages } from './audit-pages.ts';
import { casePages } from './case-pages.ts';
import { type ConsoleNeeds, createContext } from './context.ts';
import { insightPages, previewFiles } from './insight-pages.ts';
import { openPages, sessionPages } from './login-pages.ts';
import { queuePages } from './queue-pages.ts';
import { errorPage, type PageTable, register } from './session-guard.ts';
import { subjectPages } from './subject-pages.ts';

/** The console under /console: every page, its role and its address, from top to bottom. */

export const TABLES: readonly PageTable[] = [
  sessionPages,
  queuePages,
  casePages,
  subjectPages,
  auditPages,
  insightPages,
];

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

export function createConsolePages(needs: ConsoleNeeds): Router {
  const context = createContext(needs);
  const pages = exactRouter();
  openPages(pages, context);
  previewFiles(pages, context);
  for (const table of TABLES) register(pages, context, table);
  otherMethods(pages);
  pages.use(() => {
    throw new Refusal('not-found');
  });
  pages.use(errorPage(context));
  // A proxy that keeps /console from strangers keeps /CONSOLE from them as well.
  return exactRouter().use('/console', pages);
}
