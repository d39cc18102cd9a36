import type { RunningApp } from '../../ops/running.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { print } from '../output.ts';
import { configFor, fail } from '../run.ts';
import { untilSignal } from './serve.ts';

async function start(options: { readonly port?: string }): Promise<RunningApp> {
  const [{ prepareDemo }, { startApp }, { describeFault, makeLogger }] = await Promise.all([
    import('../../demo/demo.ts'),
    import('../../app.ts'),
    import('../../ops/log.ts'),
  ]);
  const demo = await prepareDemo(configFor({ port: options.port }));
  const log = makeLogger('warn');
  const app = await startApp(demo.config, {
    log,
    routers: demo.routers,
    onFatal: (error) => {
      log.fatal({ event: 'fail-stop', ...describeFault(error) });
      process.exit(1);
    },
  });
  const urls = { shop: `${app.url}/demo`, console: `${app.url}/console` };
  const { users } = demo;
  print({ urls, users }, () => [
    `shop page   ${urls.shop}`,
    `console     ${urls.console}`,
    ...users.map(({ name, about }) => `  sign in as ${name.padEnd(14)} ${about}`),
    '',
    'Everything is in a temporary directory, which is deleted when you press Ctrl-C.',
  ]);
  return app;
}

async function demo(options: { readonly port?: string }): Promise<void> {
  const signalled = untilSignal(['SIGTERM', 'SIGINT', 'SIGHUP']);
  try {
    const app = await Promise.race([start(options), signalled]);
    await signalled;
    if (typeof app === 'object') await app.stop(1000);
  } catch (error) {
    fail(error);
  }
  io().leave();
}

export const ACTIONS: Actions = { '': demo };
