import type { Command } from 'commander';
import { startApp } from '../../app.ts';
import { makeLogger } from '../../ops/log.ts';
import type { RunningApp } from '../../ops/running.ts';
import { type CommandContext, command, configFor, example } from '../command.ts';
import { fail } from '../failure.ts';
import { io, print } from '../io.ts';
import { failStop, untilSignal } from './serve.ts';

export function define(demo: Command): void {
  demo
    .option('--port <port>', 'port to listen on; 0 picks a free one')
    .addHelpText('after', example('gpd demo --port 8080'))
    .action(command(runDemo));
}

async function start(options: { readonly port?: string }): Promise<RunningApp> {
  const { prepareDemo } = await import('../../demo/demo.ts');
  const demo = await prepareDemo(configFor({ port: options.port }));
  const log = makeLogger('warn');
  const app = await startApp(demo.config, { log, routers: demo.routers, onFatal: failStop(log) });
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

async function runDemo(_context: CommandContext, options: { readonly port?: string }): Promise<void> {
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
