import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import { databaseLocation } from '../../config.ts';
import { probe } from '../../egress/gpd-client.ts';
import { type CommandContext, command, example } from '../command-service.ts';
import { failed, io, print, printLine, wantsJson } from '../io-service.ts';
import { parseExposition } from '../top/exposition.ts';
import { type Reading, type TopView, viewOf, viewOfCounts } from '../top/view.ts';
import { checkUrl } from './status.ts';

export function define(top: Command): void {
  top
    .option('--url <url>', 'metrics of the running server (default: GPD_METRICS_LISTEN)')
    .addHelpText('after', example('gpd top --url http://127.0.0.1:9090/metrics'))
    .action(command(showTop));
}

/** Time between two readings. */
const INTERVAL_MS = 1000;

type NextView = () => Promise<TopView>;

function metricsUrl(config: Config, urlOption: string | undefined): string | null {
  if (urlOption !== undefined)
    return new URL(urlOption).pathname === '/' ? new URL('/metrics', urlOption).href : urlOption;
  const listen = config.metrics_listen?.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');
  return listen === undefined ? null : `http://${listen}/metrics`;
}

async function readMetrics(url: string): Promise<Reading> {
  const answer = await probe(url);
  if (answer?.status !== 200)
    throw failed(`${url} returned no metrics: is the server running, with GPD_METRICS_LISTEN set?`);
  return { at: Date.now(), samples: parseExposition(answer.text) };
}

/** Each call of the result waits for the next reading and compares it with the previous one. */
async function fromMetrics(url: string): Promise<NextView> {
  let before = await readMetrics(url);
  return async () => {
    await delay(INTERVAL_MS);
    const after = await readMetrics(url);
    const view = viewOf(before, after);
    before = after;
    return view;
  };
}

async function show(next: NextView, title: string): Promise<void> {
  const { drawTop, topText } = await import('../ui/top.tsx');
  if (wantsJson() || !io().stdout.isTTY || !io().stdin.isTTY) {
    const view = await next();
    print(view, () => topText(view));
    return;
  }
  const drawn = drawTop(title);
  let hasQuit = false;
  void drawn.quit.then(() => {
    hasQuit = true;
  });
  try {
    while (!hasQuit) {
      const view = await Promise.race([next(), drawn.quit]);
      if (view) drawn.update(view);
    }
  } finally {
    drawn.end();
  }
  printLine('');
}

async function showTop({ config, open }: CommandContext, options: { readonly url?: string }): Promise<void> {
  const url = metricsUrl(config, checkUrl(options.url));
  if (url !== null) {
    await show(await fromMetrics(url), `gpd top  ${url}`);
    return;
  }
  const { database } = await open();
  const { readStock, readTraffic } = await import('../../ops/metrics/stock-store.ts');
  let first = true;
  const next: NextView = async () => {
    if (!first) await delay(INTERVAL_MS);
    first = false;
    const now = Date.now();
    const stock = await readStock(database, databaseLocation(config), now);
    return viewOfCounts(stock, await readTraffic(database, now));
  };
  await show(next, 'gpd top  from the database');
}
