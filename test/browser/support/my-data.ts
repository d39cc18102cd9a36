import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../../support/server.ts';
import { launchShell } from './chromium.ts';

/** Wants consent proven by its ledger. */
export const PROVEN = 'proven';

/** The page that a site links to, over https, with the cookie as it is in production; a new context for each test. */
export function useMyData() {
  let gpd: Gpd;
  let base: string;
  let browser: Browser;
  let page: Page;
  const problems: string[] = [];

  beforeAll(async () => {
    const port = await freePort();
    base = `https://localhost:${port}`;
    const { dataDir } = await initGpd([
      { kid: KID, origins: [base] },
      { kid: PROVEN, origins: [base] },
    ]);
    const env = { GPD_DATA_DIR: dataDir };
    expect(await runGpd(['tenants', 'set', PROVEN, 'consent.basis=ledger'], { env })).toMatchObject({
      code: 0,
    });
    const tls = tempDir('tls');
    const tlsInit = await runGpd(['tls', 'init', '--out', tls, '--host', 'localhost'], { env });
    expect({ code: tlsInit.code, stderr: tlsInit.stderr }).toMatchObject({ code: 0 });
    gpd = await startGpd({
      dataDir,
      args: ['--port', String(port)],
      settings: {
        GPD_TLS_CERT: join(tls, 'server.crt'),
        GPD_TLS_KEY: join(tls, 'server.key'),
        GPD_BASE_URL: base,
        GPD_RATE_PRIVACY: 'off',
      },
    });
    browser = await launchShell(['--ignore-certificate-errors']);
  });
  afterAll(async () => {
    await browser?.close();
    await gpd?.stop();
  });
  afterEach(() => page?.context().close());

  async function open(options: BrowserContextOptions = {}): Promise<void> {
    const context = await browser.newContext({ ignoreHTTPSErrors: true, ...options });
    page = await context.newPage();
    problems.length = 0;
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error' && !message.text().includes('404')) problems.push(message.text());
    });
    await page.goto(`${base}/my-data?kid=${KID}`);
  }

  const text = async (hook: string): Promise<string> => (await page.getByTestId(hook).textContent()) ?? '';
  /** Waits until the line of status says this. */
  const says = (pattern: RegExp | string): Promise<void> =>
    expect.poll(() => text('status')).toMatch(pattern);
  const look = async (): Promise<void> => {
    await page.getByTestId('look').click();
    await page.getByTestId('verdict').waitFor();
  };
  /** Opens what names the loss, and confirms. */
  const forget = async (): Promise<void> => {
    await page.getByTestId('forget').locator('summary').click();
    await page.getByTestId('forget-now').click();
  };
  const rows = async (table: string): Promise<number> =>
    Number((await execute(gpd.dataDir, `SELECT COUNT(*) AS n FROM ${table}`))[0]?.['n']);

  return {
    ...{ problems, open, look, forget, rows, text, says },
    get page() {
      return page;
    },
    get base() {
      return base;
    },
    get gpd() {
      return gpd;
    },
  };
}
