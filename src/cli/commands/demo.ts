import { Readable, Writable } from 'node:stream';
import type { Command } from 'commander';
import { createLogger } from '../../ops/log-service.ts';
import type { RunningApp } from '../../ops/running.ts';
import { type CommandContext, checkInteger, command, configFor, example } from '../command-service.ts';
import { endWithError } from '../failure-service.ts';
import { io, print, withIo } from '../io-service.ts';
import { failStop, untilSignal } from './serve.ts';

export function define(demo: Command): void {
  demo
    .option('--port <port>', 'port to listen on; 0 picks a free one')
    .option('--visits <number>', 'write so many decisions of the past two weeks, up to 200000')
    .addHelpText('after', example('gpd demo --visits 100000'))
    .action(command(runDemo));
}

/** Runs `gpd consent verify KID --config FILE` with an empty environment. @returns all that it printed */
async function verifyLog(kid: string, config: string): Promise<string> {
  const { verify } = await import('./consent-ledger.ts');
  let text = '';
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString('utf8');
      done();
    },
  });
  const streams = { env: {}, stdin: Readable.from([]), stdout: output, stderr: output };
  await withIo({ ...streams, exitCode: 0, globalOptions: { config }, leave: () => {} }, () =>
    command(verify)(kid, {}),
  );
  return text;
}

interface Options {
  readonly port?: string;
  readonly visits?: string;
}

const MAX_VISITS = 200_000;

function readVisits(text: string | undefined): number | null {
  if (text === undefined) return null;
  return checkInteger('--visits', text, [1, MAX_VISITS], `a whole number from 1 to ${MAX_VISITS}`);
}

async function start(options: Options): Promise<{ app: RunningApp; filled: Promise<void> }> {
  const visits = readVisits(options.visits);
  const [{ startApp }, { prepareDemo }, { createMailbox }] = await Promise.all([
    import('../../app.ts'),
    import('../../demo/demo-service.ts'),
    import('../../demo/mailbox.ts'),
  ]);
  const mailbox = createMailbox();
  const log = createLogger('warn');
  const demo = await prepareDemo(configFor({ port: options.port }), {
    mailbox,
    visits,
    verifyLog,
  });
  const { clock, admit, routers } = demo;
  const given = { clock, admit, routers, sendMail: mailbox.send };
  const app = await startApp(demo.config, { log, onFatal: failStop(log), ...given });
  const urls = { shop: `${app.url}/demo`, console: `${app.url}/console` };
  const { users, directory } = demo;
  print({ urls, users, dataDir: directory }, () => [
    `tour            ${urls.shop}`,
    `console         ${urls.console}`,
    `mails           ${urls.shop}/mails`,
    ...users.map(({ name, about }) => `  sign in as    ${name.padEnd(14)} ${about}`),
    `data directory  ${directory}`,
    '',
    'The data directory is deleted when you press Ctrl-C.',
  ]);
  return { app, filled: demo.fill() };
}

async function runDemo(_context: CommandContext, options: Options): Promise<void> {
  const signalled = untilSignal(['SIGTERM', 'SIGINT', 'SIGHUP']);
  try {
    const started = await Promise.race([start(options), signalled]);
    if (typeof started === 'object') await Promise.race([started.filled, signalled]);
    await signalled;
    if (typeof started === 'object') await started.app.stop(1000);
  } catch (error) {
    endWithError(error);
  }
  io().leave();
}
