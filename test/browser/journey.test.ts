import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { contestTextsOf } from '../../src/rights/contests/contest.ts';
import { createContestService } from '../../src/rights/contests/service.ts';
import { open as openStore } from '../rights/support/eraser.ts';
import { runGpd } from '../support/command.ts';
import { KID, OTHER } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { postJson } from '../support/http.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, initGpd, startGpd } from '../support/server.ts';
import { describeWithTool } from '../support/tools.ts';
import { findChromium } from './support/chromium.ts';
import { type BrowserName, launch, missingBrowser, visit } from './support/drivers.ts';

/** One person's whole way: judged as a program, heard without an account, overturned by two, forgotten. */

const QUESTION = 'Which program drives your browser?';
const ANSWER = 'A switch that I press with my head.';

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeWithTool(`browser/journey in ${name}`, missingBrowser(name), () => {
    let gpd: Gpd;
    let base: string;
    let store: Awaited<ReturnType<typeof openStore>>;
    let reviewers: ReturnType<typeof createContestService>;
    let browser: Browser;
    let page: Page;

    beforeAll(async () => {
      const port = await freePort();
      base = `http://localhost:${port}`;
      const { dataDir } = await initGpd([
        { kid: KID, origins: [base] },
        { kid: OTHER, origins: [base] },
      ]);
      gpd = await startGpd({
        dataDir,
        args: ['--port', String(port)],
        settings: { GPD_RATE_PRIVACY: 'off' },
      });
      store = await openStore(dataDir);
      const tenantOf = (kid: string) => {
        const tenant = store.tenantOf(kid);
        return tenant && { ...tenant, settings: { ...tenant.settings, 'review.fourEyes': true } };
      };
      const { database } = store;
      const contestTexts = contestTextsOf(tenantOf);
      reviewers = createContestService({
        database,
        tenantOf,
        clock: Date.now,
        random: randomBytes,
        contestTexts,
      });
      browser = await launch(name, {}, findChromium());
    });
    afterAll(async () => {
      await browser?.close();
      await store?.database.close();
      await gpd?.stop();
    });

    const hook = (id: string): string => `[data-testid="${id}"]`;
    const text = async (selector: string): Promise<string> => {
      await page.waitForSelector(selector, { visible: true });
      return page.$eval(selector, (element) => element.textContent ?? '');
    };
    async function look(kid: string): Promise<string> {
      await page.goto(`${base}/my-data?kid=${kid}`);
      await page.waitForSelector(hook('look'));
      await page.click(hook('look'));
      // With what is held, and not only what the visit itself was told.
      await page.waitForSelector(hook('forget'));
      return text(hook('verdict'));
    }
    /** The page of the case reads its key from the fragment. */
    async function openCase(key: string): Promise<void> {
      await page.goto('about:blank');
      await page.goto(`${base}/case#${key}`);
    }
    async function says(selector: string, pattern: RegExp): Promise<void> {
      await expect.poll(() => text(selector), SEEN_WITHIN).toMatch(pattern);
    }
    const expectFits = async (width: number): Promise<void> =>
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
    async function shot(step: string, width: number): Promise<void> {
      const dir = process.env['SHOTS'];
      if (dir)
        await page.screenshot({ path: join(dir, `journey-${name}-${width}-${step}.png`), fullPage: true });
    }
    const caseOf = (caseKey: string) => postJson(gpd.url, '/case', { caseKey });

    async function file(statement: string, email: string): Promise<string> {
      await page.click(`${hook('contest')} summary`);
      await page.type(`${hook('contest')} textarea`, statement);
      await page.type(`${hook('contest')} input[name=email]`, email);
      await page.click(hook('file'));
      return text(hook('case-key'));
    }

    it.each([
      [390, 844, KID],
      [1440, 900, OTHER],
    ])('from a wrong verdict to nothing left, at %d px', async (width, height, kid) => {
      const rita = { kid, role: 'reviewer', ref: 'rita' } as const;
      page = await (await visit(browser)).tab();
      await page.setViewport({ width, height });
      const statement = `I am a person, and I write this at ${width} px.`;
      const email = `person-${width}-${name}@mail.example`;

      const judged = await look(kid);
      expect(judged).toContain('An automated visit');
      const request = /req_[0-9A-Z]{26}/.exec(judged)?.[0] ?? '';
      await shot('judged', width);
      const key = await file(statement, email);
      expect(key).toMatch(/^([0-9A-Z]{5}-){5}[0-9A-Z]$/);
      const { contestId } = (await caseOf(key)).json() as { contestId: string };

      await reviewers.ask(rita, contestId, QUESTION);
      await openCase(key);
      await says('#case', /Which program drives your browser\?/);
      await page.type('#reply textarea', ANSWER);
      await page.click('#reply button');
      await says('#case', /A switch that I press with my head\./);

      const ruling = { contestId, outcome: 'overturned', version: null } as const;
      await reviewers.resolve(rita, { ...ruling, reason: 'A switch explains every sign of these.' });
      await reviewers.resolve({ ...rita, ref: 'remy' }, { ...ruling, reason: 'I read it too, and I agree.' });
      await openCase(key);
      await says('#state', /Overturned/);
      await says('#reasons', /A switch explains every sign.*I read it too/s);
      await expectFits(width);
      await shot('overturned', width);

      const next = await look(kid);
      expect(next).toMatch(/^\s*A person/);
      // A later visit does not learn whose review it was where other people share the id.
      expect(next).toMatch(
        /A reviewer confirmed on .* that a person uses this device|Devices that look like this one/s,
      );
      expect(await page.$(hook('contest'))).toBeNull();
      await expectFits(width);
      await shot('human', width);

      // One character off, a guess, and another number of characters: one answer for all.
      const off = `${key.slice(0, -1)}${key.endsWith('0') ? '4' : '0'}`;
      const refusals = await Promise.all([off, '7ZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-ZZZZZ-Z', 'short'].map(caseOf));
      expect(new Set(refusals.map(({ status, text: body }) => `${status} ${body}`)).size).toBe(1);
      expect(refusals[0]?.status).toBe(404);

      await page.click(`${hook('forget')} summary`);
      await page.click(hook('forget-now'));
      await says(hook('status'), /^(Forgotten|Only this visit was erased)/);
      await shot('forgotten', width);
      // That erased the last visit alone where the id may belong to other people too, as the page says.
      const erase = ['erase', '--tenant', kid, '--request', request, '--yes'];
      const erased = await runGpd(erase, { env: { GPD_DATA_DIR: gpd.dataDir } });
      expect([0, 3]).toContain(erased.code);
      expect((await caseOf(key)).status).toBe(404);
      const secrets = [statement, email, key, key.replaceAll('-', ''), contestId];
      for (const one of readdirSync(gpd.dataDir).filter((entry) => entry.startsWith('gpd.db'))) {
        const bytes = readFileSync(join(gpd.dataDir, one));
        for (const secret of secrets) expect(bytes.includes(secret), `${secret} in ${one}`).toBe(false);
      }
      expect(await store.database.read('contests').where({ contest_id: contestId })).toEqual([]);
    });
  });
}
