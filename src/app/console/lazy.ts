import { readFileSync } from 'node:fs';
import { type RequestHandler, Router } from 'express';
import { type Config, ConfigError } from '../../config.ts';
import type { Directory } from '../directory.ts';
import type { ConsoleApp, ConsoleParts } from './compose.ts';

/** The console is loaded when somebody opens it: an appliance that only ingests does not pay for it in memory or start. */

/** Read at the start, so that a wrong path is a refusal to start and not a page. @throws {ConfigError} */
function readClientSecret(config: Config): string | null {
  const file = config.console_client_secret_file;
  if (file === null) return null;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    throw new ConfigError(`GPD_CONSOLE_CLIENT_SECRET_FILE: cannot read ${file}`);
  }
}

export interface ConsoleWiring
  extends Pick<
    ConsoleParts,
    'database' | 'serverSecret' | 'views' | 'origin' | 'eraser' | 'clock' | 'onFault'
  > {
  readonly directory: Directory;
  readonly logFault: (event: string) => (error: unknown) => void;
}

/** @throws {ConfigError} */
export function makeConsole(config: Config, wiring: ConsoleWiring): ConsoleApp {
  const { directory, logFault, ...rest } = wiring;
  const clientSecret = readClientSecret(config);
  let loading: Promise<ConsoleApp> | null = null;
  const load = (): Promise<ConsoleApp> => {
    loading ??= import('./compose.ts').then(({ composeConsole }) =>
      composeConsole({
        ...rest,
        config,
        clientSecret,
        tenantOf: (kid) => directory.consentTenant(kid),
        ingestTenantOf: (kid) => directory.tenant(kid),
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
    router: Router().use(handle),
    async stop() {
      await (await loading)?.stop();
    },
  };
}
