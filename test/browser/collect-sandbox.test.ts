import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readSignals } from '../../src/schema/signals.ts';
import { serve } from '../support/serve.ts';
import { started } from '../support/started.ts';
import { describeWithTool } from '../support/tools.ts';
import { GRANTED } from './support/answers.ts';
import { findChromium } from './support/chromium.ts';
import { type BrowserName, launch, missingBrowser, visit } from './support/drivers.ts';

/** A page that its site sandboxes has an opaque origin: it may not read its own frames, and has no storage. */

const AGENT = readFileSync(new URL('../../dist/agent/agent.js', import.meta.url), 'utf8');

for (const name of ['chromium', 'firefox'] satisfies BrowserName[]) {
  describeWithTool(`browser/collect in a sandboxed page of ${name}`, missingBrowser(name), () => {
    const site = started(() =>
      serve(({ url }, response) => {
        const isAgent = url === '/agent.js';
        response.writeHead(200, {
          'content-type': isAgent ? 'text/javascript' : 'text/html',
          'access-control-allow-origin': '*',
          'content-security-policy': 'sandbox allow-scripts',
        });
        response.end(isAgent ? AGENT : '<!doctype html><p>Page</p>');
      }),
    );

    it('collects what there is', async () => {
      const browser = await launch(name, {}, findChromium());
      try {
        const page = await (await visit(browser)).tab();
        const origin = `http://localhost:${site.port}`;
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
