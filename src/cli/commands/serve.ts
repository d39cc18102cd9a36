import type { Command } from 'commander';
import { ConfigError, readServiceManager } from '../../config.ts';
import { createLogger, describeFault } from '../../ops/log-service.ts';
import type { AppOptions } from '../../ops/running.ts';
import { createSupervisor } from '../../ops/systemd/supervisor-service.ts';
import { type CommandContext, command, configFor, example, type Flags } from '../command-service.ts';
import { commandFailureOf, endWithError, isDamaged } from '../failure-service.ts';
import { io, print, printLine, say, wantsJson } from '../io-service.ts';

export function define(serve: Command): void {
  serve
    .option('--host <address>', 'address to listen on')
    .option('--port <port>', 'port to listen on')
    .option('--setup', 'make a new installation from a page: print a link to it, then serve')
    .addHelpText('after', example('gpd serve --host 0.0.0.0 --port 8080'))
    .action(command(runServer));
}

const DECRYPT_THREAD = new URL('../../ingest/decrypt/worker.js', import.meta.url);
/**
 * Contract section 10: the process ends within 15 s, whatever hangs. What was answered is committed by then.
 */
const STOP_WITHIN_MS = 14_000;
/** Under `npm run demo`, both npm and the terminal send a signal for one Ctrl-C. */
const DUPLICATE_SIGNAL_MS = 500;

/** Resolves with the signal that asks the process to end; a later one ends it at once. */
export function untilSignal(signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']) {
  return new Promise<NodeJS.Signals>((resolve) => {
    let firstAt: number | null = null;
    for (const signal of signals) {
      process.on(signal, () => {
        if (firstAt !== null && Date.now() - firstAt > DUPLICATE_SIGNAL_MS) process.exit(1);
        firstAt ??= Date.now();
        resolve(signal);
      });
    }
  });
}

/** Logs an error after which the server must not continue, and ends the process. */
export const failStop = (log: ReturnType<typeof createLogger>) => (error: unknown) => {
  log.fatal({ event: 'fail-stop', ...describeFault(error) });
  process.exit(1);
};

type ServeFlags = Flags<'host' | 'port'> & { readonly setup?: true };

/** With --setup, serves the page that creates the installation first. */
async function prepare(
  { setup, ...flags }: ServeFlags,
  { log, sockets }: Pick<AppOptions, 'log' | 'sockets'>,
) {
  const config = configFor(flags);
  const { isSetupUnfinished } = await import('../../ops/setup-service.ts');
  if (setup !== true && isSetupUnfinished(config))
    throw new ConfigError(`the setup of ${config.data_dir} was interrupted: repeat \`gpd serve --setup\``);
  if (setup !== true) return { config };
  const { runSetup } = await import('../../ops/setup-server-service.ts');
  return runSetup(config, {
    file: io().globalOptions.config ?? 'gpd.toml',
    socket: sockets?.http ?? null,
    onFault: (requestId, error) => log.error({ event: 'setup-failed', requestId, ...describeFault(error) }),
    onLink: (url) =>
      print({ setup: url }, () => [`Open this link in a browser, once and within an hour:`, url]),
  });
}

async function runServer(_context: CommandContext, flags: ServeFlags): Promise<void> {
  const log = createLogger(configFor().log_level);
  const supervisor = createSupervisor(readServiceManager(io().env, process.pid), log);
  const { sockets } = supervisor;
  try {
    const { config, ...setupResult } = await prepare(flags, { log, sockets });
    if (config.init_tenant !== null) await (await import('./init.ts')).initialiseOnce(config);
    const { startApp } = await import('../../app.ts');
    const app = await startApp(config, {
      log,
      sockets,
      decryptThread: DECRYPT_THREAD,
      onFatal: failStop(log),
      ...setupResult,
    });
    // Closing a terminal sends SIGHUP and ends the server; without a terminal, SIGHUP asks to read the files
    // again.
    const atTerminal = io().stdin.isTTY === true;
    const signalled = untilSignal(atTerminal ? ['SIGTERM', 'SIGINT', 'SIGHUP'] : undefined);
    if (!atTerminal)
      process.on('SIGHUP', () => void app.reload().then(() => log.info({ event: 'reloaded' })));
    log.info({ event: 'listening', url: app.url, port: app.port });
    if (wantsJson()) printLine(JSON.stringify({ url: app.url, port: app.port }));
    else if (io().stderr.isTTY === true) say(`gpd: open ${app.url} in a browser, end with Ctrl-C`);
    if (!app.hasTenants())
      say('gpd: no tenant yet, so no website can use gpd: gpd tenants add KID --origin URL');
    supervisor.ready(app);
    const signal = await signalled;
    supervisor.stopping();
    setTimeout(() => {
      log.error({ event: 'stop-timed-out' });
      process.exit(0);
    }, STOP_WITHIN_MS).unref();
    log.info({ event: 'draining', signal });
    await app.stop();
    log.info({ event: 'stopped' });
    await supervisor.close();
  } catch (error) {
    endWithError(isDamaged(error) ? new ConfigError(commandFailureOf(error).message) : error);
    await supervisor.close();
    io().leave();
  }
}
