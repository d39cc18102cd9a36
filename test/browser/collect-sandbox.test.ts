import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readSignals } from '../../src/schema/signals.ts';
import { describeWithTool } from '../support/tools.ts';
import { GRANTED } from './support/answers.ts';
import { findChromium } from './support/chromium.ts';
import { type BrowserName, launch, missingBrowser, visit } from './support/drivers.ts';

/** A page that its site sandboxes has an opaque origin: it may not read its own frames, and has no storage. */

const AGENT = readFileSync(new URL('../../dist/agent/agent.js', import.meta.url), 'utf8');

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeWithTool(`browser/collect in a sandboxed page of ${name}`, missingBrowser(name), () => {
    let site: Server;
    beforeAll(async () => {
      site = createServer(({ url }, response) => {
        const isAgent = url === '/agent.js';
        response.writeHead(200, {
          'content-type': isAgent ? 'text/javascript' : 'text/html',
          'access-control-allow-origin': '*',
          'content-security-policy': 'sandbox allow-scripts',
        });
        response.end(isAgent ? AGENT : '<!doctype html><p>Page</p>');
      });
      await new Promise<void>((resolve) => void site.listen(0, '127.0.0.1', resolve));
    });
    afterAll(() => new Promise((resolve) => void site.close(resolve)));

    it('collects what there is', async () => {
      const browser = await launch(name, {}, findChromium());
      try {
        const page = await (await visit(browser)).tab();
        const origin = `http://localhost:${(site.address() as AddressInfo).port}`;
        await page.goto(origin);
        expect(await page.evaluate('origin')).toBe('null');
        const signals = await page.evaluate(
          `import('${origin}/agent.js').then(({ collect }) => collect(${JSON.stringify(GRANTED)}, null))`,
        );
        expect(readSignals(signals as Record<string, unknown>)).toMatchObject({
          malformed: false,
          signals: {
            frame: { webdriver: null, srcdocPreattached: false },
            tells: { cdp: null, patched: [] },
          },
        });
        expect(await page.evaluate("document.querySelectorAll('iframe').length")).toBe(0);
      } finally {
        await browser.close();
      }
    });
  });
}
