import type { RequestHandler, Router } from 'express';
import type { Config } from '../config.ts';
import { exactRouter } from '../http/methods.ts';
import type { ConsoleParts } from './console-make.ts';

/** The console is loaded when somebody opens it: an appliance that only ingests does not pay for it in memory or start. */

export interface ConsoleWiring extends Omit<ConsoleParts, 'config' | 'onLoginFault'> {
  readonly logFault: (event: string) => (error: unknown) => void;
}

export function makeConsole(config: Config, wiring: ConsoleWiring): Router {
  const { logFault, ...rest } = wiring;
  let loading: Promise<Router> | null = null;
  const load = (): Promise<Router> => {
    loading ??= import('./console-make.ts').then(({ composeConsole }) =>
      composeConsole({
        ...rest,
        config,
        onLoginFault: logFault('console-login-failed'),
      }),
    );
    return loading;
  };
  const handle: RequestHandler = async (request, response, next) => {
    if (!/^\/console(?:\/|$)/.test(request.path)) next();
    else (await load())(request, response, next);
  };
  return exactRouter().use(handle);
}
