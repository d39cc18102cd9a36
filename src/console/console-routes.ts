import type { RequestHandler, Router } from 'express';
import { exactRouter } from '../http/express-app.ts';
import type { ConsoleNeeds } from './context-service.ts';

/**
 * Loads the console when it is first opened, so that an
 * appliance which only ingests saves its memory and start time.
 */

export function createConsole(needs: ConsoleNeeds): Router {
  let loading: Promise<Router> | null = null;
  const handle: RequestHandler = async (request, response, next) => {
    if (!/^\/console(?:\/|$)/.test(request.path)) {
      next();
      return;
    }
    loading ??= import('./console-pages.ts').then(({ createConsolePages }) => createConsolePages(needs));
    (await loading)(request, response, next);
  };
  return exactRouter().use(handle);
}
