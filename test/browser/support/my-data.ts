import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { runGpd, tempDir } from '../../support/command.ts';
import { KID } from '../../support/constants.ts';
import { execute } from '../../support/database.ts';
import { freePort } from '../../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../../support/server.ts';
import { useTabs } from './chromium.ts';

/** Wants consent proven by its ledger. */
export const PROVEN = 'proven';

/** The page that a site links to, over https, with the cookie as it is in production; a new context for each test. */
export function useMyData() {
  let gpd: Gpd;
  let base: string;
  const { openTab, faults: problems } = useTabs(['--ignore-certificate-errors']);
  let page: Page;

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
  });
  afterAll(() => gpd?.stop());

  async function open(options: BrowserContextOptions = {}): Promise<void> {
    page = await openTab(`${base}/my-data?kid=${KID}`, { ignoreHTTPSErrors: true, ...options });
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
