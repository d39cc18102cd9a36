import type { Router } from 'express';
import { exactRouter, refuseOtherMethods } from '../http/express-app.ts';
import { Refusal } from '../lib/errors.ts';
import { agentPages } from './agent-pages.ts';
import { auditPages } from './audit-pages.ts';
import { casePages } from './case-pages.ts';
import { type ConsoleNeeds, createContext } from './context-service.ts';
import { decisionPages } from './decision-pages.ts';
import { evidencePages } from './evidence-pages.ts';
import { insightPages, registerPreviewFiles } from './insight-pages.ts';
import { registerOpenPages, sessionPages } from './login-pages.ts';
import { overviewPages } from './overview-pages.ts';
import { queuePages } from './queue-pages.ts';
import { createErrorPage, type PageTable, registerPages } from './session-guard-service.ts';
import { subjectPages } from './subject-pages.ts';

/**
 * Puts the tables of all console pages together under /console.
 * console-routes.ts loads this file on the first visit.
 */

export const TABLES: readonly PageTable[] = [
  sessionPages,
  queuePages,
  casePages,
  subjectPages,
  auditPages,
  agentPages,
  decisionPages,
  evidencePages,
  overviewPages,
  insightPages,
];

export function createConsolePages(needs: ConsoleNeeds): Router {
  const context = createContext(needs);
  const pages = exactRouter();
  registerOpenPages(pages, context);
  registerPreviewFiles(pages, context);
  for (const table of TABLES) registerPages(pages, context, table);
  refuseOtherMethods(pages);
  pages.use(() => {
    throw new Refusal('not-found');
  });
  pages.use(createErrorPage(context));
  // Paths are case-sensitive: a proxy that blocks /console from outside must not be bypassed with /CONSOLE.
  return exactRouter().use('/console', pages);
}
