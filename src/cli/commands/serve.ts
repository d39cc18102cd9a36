import { startApp } from '../../app.ts';
import { serviceManager } from '../../config.ts';
import { describeFault, makeLogger } from '../../ops/log.ts';
import { makeSupervisor } from '../../ops/systemd/supervisor.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { printLine, wantsJson } from '../output.ts';
import { configFor, type Flags, fail } from '../run.ts';

const DECRYPT_THREAD = new URL('../../ingest/decrypt/worker.js', import.meta.url);
/** npm and the terminal both send the one Ctrl-C of `npm run demo`. */
const ONE_WISH_MS = 500;

/** Resolves with the signal that asks the process to end; a later one ends it at once. */
export function untilSignal(signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT']) {
  return new Promise<NodeJS.Signals>((resolve) => {
    let firstAt: number | null = null;
    for (const signal of signals) {
      process.on(signal, () => {
        if (firstAt !== null && Date.now() - firstAt > ONE_WISH_MS) process.exit(1);
        firstAt ??= Date.now();
        resolve(signal);
      });
    }
  });
}

/** Told of what the server cannot go on after. */
export const failStop = (log: ReturnType<typeof makeLogger>) => (error: unknown) => {
  log.fatal({ event: 'fail-stop', ...describeFault(error) });
  process.exit(1);
};

async function serve({ host, port }: Flags<'host' | 'port'>): Promise<void> {
  const config = configFor({ host, port });
  const log = makeLogger(config.log_level);
  const supervisor = makeSupervisor(serviceManager(io().env, process.pid), log);
  try {
    if (config.init_tenant !== null) await (await import('./init.ts')).initialiseOnce(config);
    const app = await startApp(config, {
      log,
      sockets: supervisor.sockets,
      decryptThread: DECRYPT_THREAD,
      onFatal: failStop(log),
    });
    // A terminal that was closed ends the server; `kill -HUP` from anywhere else asks to read the files again.
    const atTerminal = io().stdin.isTTY === true;
    const signalled = untilSignal(atTerminal ? ['SIGTERM', 'SIGINT', 'SIGHUP'] : undefined);
    if (!atTerminal)
      process.on('SIGHUP', () => void app.reload().then(() => log.info({ event: 'reloaded' })));
    log.info({ event: 'listening', url: app.url, port: app.port });
    if (wantsJson()) printLine(JSON.stringify({ url: app.url, port: app.port }));
    supervisor.ready(app);
    const signal = await signalled;
    supervisor.stopping();
    log.info({ event: 'draining', signal });
    await app.stop();
    log.info({ event: 'stopped' });
    await supervisor.close();
  } catch (error) {
    fail(error);
    await supervisor.close();
    io().leave();
  }
}

export const ACTIONS: Actions = { '': serve };
