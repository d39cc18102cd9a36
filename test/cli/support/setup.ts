import { startApp } from '../../../src/app.ts';
import { loadConfig } from '../../../src/config.ts';
import { createLogger } from '../../../src/ops/log-service.ts';
import type { RunningApp } from '../../../src/ops/running.ts';
import { runSetup } from '../../../src/ops/setup-server-service.ts';
import { cleanEnvironment, collector } from '../../support/command.ts';
import { ask } from '../../support/http.ts';

/** The setup page, used as its form uses it. */

export const FORM = {
  tenant: 'shop',
  origin: 'https://shop.example',
  baseUrl: 'https://id.shop.example',
  controller: 'Shop Ltd',
  contact: 'a@b.c',
};

type Form = Readonly<Record<string, string>>;

export const postTo = (url: string, path: string, form: Form, headers: Form = {}) =>
  ask(url, path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: url, ...headers },
    body: new URLSearchParams(form).toString(),
  });

/** The address and the token of the link that `serve --setup` prints. */
export function readLink(setup: string): { readonly url: string; readonly token: string } {
  const link = new URL(setup);
  return { url: link.origin, token: link.searchParams.get('token') ?? '' };
}

/** The link's session, and the form's own token. */
export async function openForm(url: string, token: string) {
  const [header = ''] = [(await postTo(url, '/setup/begin', { token })).headers['set-cookie']].flat();
  const cookie = header.split(';')[0] ?? '';
  const page = (await ask(url, '/setup', { headers: { cookie } })).text;
  return { cookie, csrf: /name="csrf" value="([\w-]+)"/.exec(page)?.[1] ?? '' };
}

/**
 * `serve --setup` in this process, with its form open. Only an installation ends the setup, so a test sends the form before
 * it calls `stop`.
 */
export async function startSetup(dataDir: string, configFile?: string) {
  const environment = cleanEnvironment({ GPD_DATA_DIR: dataDir });
  const config = loadConfig({ environment, flags: { port: '0' }, configFile });
  const logged = collector();
  const log = createLogger(config.log_level, logged);
  const onFatal = (error: Error): void => log.fatal({ event: 'fail-stop', name: error.name });
  let running: Promise<RunningApp> | undefined;
  const link = await new Promise<string>((resolve, reject) => {
    const options = { file: configFile ?? `${dataDir}.toml`, socket: null, onLink: resolve };
    running = runSetup(config, { ...options, onFault: (_requestId, error) => log.error(error) }).then(
      ({ config: changed, routers }) => startApp(changed, { log, onFatal, routers }),
    );
    running.catch(reject);
  });
  const { url, token } = readLink(link);
  return {
    url,
    ...(await openForm(url, token)),
    logs: logged.text,
    stop: async () => (await running)?.stop(),
  };
}
