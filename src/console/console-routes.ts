import type { RequestHandler, Router } from 'express';
import { exactRouter } from '../http/register.ts';
import type { ConsoleParts } from './context-make.ts';

/** The console is loaded when somebody opens it: an appliance that only ingests does not pay for it in memory or start. */

export function makeConsole(parts: ConsoleParts): Router {
  let loading: Promise<Router> | null = null;
  const handle: RequestHandler = async (request, response, next) => {
    if (!/^\/console(?:\/|$)/.test(request.path)) {
      next();
      return;
    }
    loading ??= import('./console-make.ts').then(({ composeConsole }) => composeConsole(parts));
    (await loading)(request, response, next);
  };
  return exactRouter().use(handle);
}
