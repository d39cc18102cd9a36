import type { RequestHandler } from 'express';
import type { Config } from '../config.ts';
import { exactRouter } from '../http/methods.ts';
import type { ConsoleApp, ConsoleParts } from './console-make.ts';

/** The console is loaded when somebody opens it: an appliance that only ingests does not pay for it in memory or start. */

export interface ConsoleWiring extends Omit<ConsoleParts, 'config' | 'onLoginFault' | 'onJobFault'> {
  readonly logFault: (event: string) => (error: unknown) => void;
}

export function makeConsole(config: Config, wiring: ConsoleWiring): ConsoleApp {
  const { logFault, ...rest } = wiring;
  let loading: Promise<ConsoleApp> | null = null;
  const load = (): Promise<ConsoleApp> => {
    loading ??= import('./console-make.ts').then(({ composeConsole }) =>
      composeConsole({
        ...rest,
        config,
        onLoginFault: logFault('console-login-failed'),
        onJobFault: logFault('console-job-failed'),
      }),
    );
    return loading;
  };
  const handle: RequestHandler = async (request, response, next) => {
    if (!/^\/console(?:\/|$)/.test(request.path)) next();
    else (await load()).router(request, response, next);
  };
  return {
    router: exactRouter().use(handle),
    async stop() {
      await (await loading)?.stop();
    },
  };
}
