import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSignals, type Signals } from '../../src/schema/signals.ts';
import { GRANTED } from './support/answers.ts';
import { describeInChromium, findChromium, launchChromium } from './support/chromium.ts';
import { type Site, startSite } from './support/site.ts';

const FILES = {
  '/run.html': { type: 'text/html', body: '<!doctype html><script type="module" src="/run.js"></script>' },
  '/run.js': {
    type: 'text/javascript',
    body: `import { collect } from '/v1/agent.js';
      const signals = await collect(${JSON.stringify(GRANTED)});
      await fetch('/_fp/report', { method: 'POST', body: JSON.stringify(signals) });`,
  },
};

/** M2 is only worth its weight if a Chromium that nobody drives does not show it. */
describeInChromium('browser/console-tell', () => {
  let site: Site;
  let profile: string;
  let child: ChildProcess | undefined;
  let report: (signals: Signals) => void = () => {};

  beforeAll(async () => {
    profile = await mkdtemp(join(tmpdir(), 'gpd-profile-'));
    site = await startSite({
      files: FILES,
      gpd: ({ body }) => {
        report(readSignals(JSON.parse(body)).signals);
        return { status: 200, body: {} };
      },
    });
  });
  afterAll(async () => {
    if (child && child.exitCode === null) {
      const exited = new Promise((resolve) => child?.once('exit', resolve));
      child.kill();
      await exited;
    }
    await site?.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });

  const reported = (): Promise<Signals> =>
    new Promise((resolve) => {
      report = resolve;
    });

  it('is silent in a Chromium without the developer protocol', async () => {
    const signals = reported();
    const args = ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run'];
    child = spawn(findChromium()!, [...args, `--user-data-dir=${profile}`, `${site.origin}/run.html`], {
      stdio: 'ignore',
    });
    const { tells, worker, page } = await signals;
    expect({ page: tells?.cdp, worker: worker?.cdp, webdriver: page?.webdriver }).toEqual({
      page: false,
      worker: false,
      webdriver: false,
    });
  });

  it('speaks in a Chromium that is driven by it', async () => {
    const signals = reported();
    const browser = await launchChromium();
    const page = await browser.newPage();
    await page.goto(`${site.origin}/run.html`);
    const { tells, worker } = await signals;
    await browser.close();
    expect({ page: tells?.cdp, worker: worker?.cdp }).toEqual({ page: true, worker: true });
  });
});
