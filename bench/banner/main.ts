import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';
import type { Browser, BrowserContext } from 'puppeteer-core';
import puppeteer from 'puppeteer-core';
import { note } from '../lib/report.ts';
import { median } from '../lib/stats.ts';
import { createPeers } from './peers.ts';
import type { Sight } from './sight.ts';
import { type Candidate, createSite } from './site.ts';

/**
 * Measures when a visitor first sees the banner: `npx tsx bench/banner/main.ts [SAMPLES]`, with gpd built.
 * PEERS names a directory whose `node_modules` has the other banners; without it only gpd is measured.
 */

const CPU_SLOWDOWN = 4;
/** A good mobile network: 40 ms each way and back, 10 Mbit/s. */
const NETWORK = { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 };
const SIGHT = buildSync({
  entryPoints: [fileURLToPath(new URL('sight.ts', import.meta.url))],
  bundle: true,
  write: false,
  format: 'iife',
  globalName: 'sight',
}).outputFiles[0]?.text;
const SAMPLES = Number(process.argv[2] ?? 11);

const launch = (): Promise<Browser> =>
  puppeteer.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium-headless-shell',
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
  });

/** @returns the first sight of the banner after a navigation, in milliseconds */
async function visit(context: BrowserContext, { url, selector }: Candidate): Promise<Sight> {
  const page = await context.newPage();
  try {
    const cdp = await page.createCDPSession();
    await cdp.send('Network.enable');
    await cdp.send('Network.emulateNetworkConditions', NETWORK);
    await cdp.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
    page.on('pageerror', (error) => note(`${url}: ${String(error)}`));
    await page.evaluateOnNewDocument(`${SIGHT} sight.reportFirstSight(${JSON.stringify(selector)});`);
    await page.goto(url, { waitUntil: 'load' });
    const handle = await page.waitForFunction('window.firstSight', { timeout: 20_000 });
    return (await handle.jsonValue()) as Sight;
  } finally {
    await page.close();
  }
}

interface Samples {
  readonly cold: Sight[];
  readonly warm: Sight[];
}

/** A new visitor with an empty cache, and the same one on the next page: nothing was answered. */
async function sample(browser: Browser, candidate: Candidate, { cold, warm }: Samples): Promise<void> {
  const context = await browser.createBrowserContext();
  try {
    cold.push(await visit(context, candidate));
    warm.push(await visit(context, candidate));
  } finally {
    await context.close();
  }
}

/** Median and range of the sight, and the median of its distance from the page's first paint. */
function summary(sights: readonly Sight[]): string {
  const times = sights.map(({ at }) => at);
  const shift = Math.max(...sights.map(({ shift: moved }) => moved));
  const [low, mid, high] = [Math.min(...times), median(times), Math.max(...times)].map(Math.round);
  const behind = Math.round(median(sights.map(({ at, paint }) => at - paint)));
  const moves = shift > 0 ? `  moves the page by ${shift.toFixed(3)}` : '';
  return `${mid} (${low}–${high})`.padEnd(18) + `+${behind}${moves}`.padEnd(10);
}

async function main(): Promise<void> {
  const site = await createSite(createPeers(process.env['PEERS']));
  const browser = await launch();
  try {
    const results = site.candidates.map((candidate) => ({
      candidate,
      samples: { cold: [], warm: [] } as Samples,
    }));
    // In turns, so that a busy machine slows all of them; the first round is not counted.
    for (let round = 0; round <= SAMPLES; round += 1)
      for (const { candidate, samples } of results)
        await sample(browser, candidate, round === 0 ? { cold: [], warm: [] } : samples);
    console.log('milliseconds to the first sight of the banner (range), + after the first paint of the page');
    for (const { candidate, samples } of results)
      console.log(`${candidate.name.padEnd(26)}cold ${summary(samples.cold)} warm ${summary(samples.warm)}`);
  } finally {
    await browser.close();
    await site.close();
  }
}

await main();
