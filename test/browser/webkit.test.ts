import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDisplay } from '../../bench/matrix/lib/display.ts';
import { eventually } from '../../bench/matrix/lib/process.ts';
import { missingPrograms, program } from '../../bench/matrix/lib/programs.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { freePort } from '../support/ports.ts';
import { describeWithTool } from '../support/tools.ts';
import { AGENT, ANALYTICS, type Shop, startShop } from './support/shop.ts';
import { clockAhead, FILL } from './support/trouble.ts';

/**
 * Banner and agent in WebKitGTK's small browser, by W3C WebDriver: as near to Safari as Linux comes. One browser
 * more than is required.
 */

interface Webkit {
  goto(url: string): Promise<unknown>;
  /** @param body of an async function in the page */
  run<T>(body: string): Promise<T>;
  /** Presses the element once it is there. @param element an expression of the page */
  click(element: string): Promise<unknown>;
  quit(): Promise<void>;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill();
  await exited;
}

async function startWebkit(): Promise<Webkit> {
  const display = await startDisplay();
  const port = await freePort();
  const driver = spawn(program('webkitdriver'), [`--port=${port}`], {
    env: { ...process.env, DISPLAY: display.name, LIBGL_ALWAYS_SOFTWARE: '1' },
    stdio: 'ignore',
  });
  const call = async (path: string, body?: object, method = 'POST'): Promise<unknown> => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const answer = await fetch(`http://127.0.0.1:${port}/session${path}`, init);
    const { value } = (await answer.json()) as { value: unknown };
    if (!answer.ok) throw new Error(JSON.stringify(value));
    return value;
  };
  const browser = { binary: program('minibrowser'), args: ['--automation'] };
  const capabilities = { alwaysMatch: { 'webkitgtk:browserOptions': browser } };
  const opened = await eventually(() => call('', { capabilities }), 120_000);
  const session = `/${(opened as { sessionId: string }).sessionId}`;
  return {
    goto: (url) => call(`${session}/url`, { url }),
    async run<T>(body: string) {
      const script = `const done = arguments[arguments.length - 1];
        (async () => { ${body} })().then((value) => done([value ?? null]), (error) => done(String(error)));`;
      const value = await call(`${session}/execute/async`, { script, args: [] });
      if (!Array.isArray(value)) throw new Error(String(value));
      return value[0] as T;
    },
    async click(element) {
      const script = `return ${element}`;
      const found = await eventually(() => call(`${session}/execute/sync`, { script, args: [] }), 60_000);
      const [id] = Object.values(found as Record<string, string>);
      return call(`${session}/element/${id}/click`, {});
    },
    async quit() {
      await call(session, undefined, 'DELETE').catch(() => {});
      await end(driver);
      await display.stop();
    },
  };
}

const BUTTON = (name: string): string =>
  `document.querySelector('gpd-consent').shadowRoot.querySelector('[data-testid="consent-${name}"]')`;

describeWithTool(
  'browser/webkit',
  missingPrograms(['minibrowser', 'webkitdriver', 'xvfb']),
  () => {
    let shop: Shop;
    let webkit: Webkit;

    beforeAll(async () => {
      [shop, webkit] = await Promise.all([startShop(), startWebkit()]);
    });
    afterAll(async () => {
      await webkit?.quit();
      await shop?.close();
    });

    const gpd = (): string => `http://localhost:${shop.api.gpd.port}`;
    const state = (): Promise<{ phase: string; granted: string[]; principalId: string }> =>
      webkit.run('return gpd.consent.ready.then(() => gpd.consent.state())');
    /** A page of somebody who was never here, and who accepts. */
    async function accept(before = ''): Promise<string> {
      const url = shop.page({ cached: true });
      await webkit.goto(url);
      await webkit.run('localStorage.clear()');
      await webkit.goto(url);
      expect(await state()).toMatchObject({ phase: 'asking', granted: [] });
      await webkit.run(before);
      await webkit.click(BUTTON('accept'));
      await expect.poll(async () => (await state()).granted.length, SEEN_WITHIN).toBe(2);
      return url;
    }

    it.each([0, 600_000, -600_000])('grant and identify, by a clock %d ms ahead', async (ms) => {
      await accept(clockAhead(ms));
      expect(await webkit.run(`return identify('${gpd()}')`)).toEqual({
        sent: true,
        reason: 'ok',
        status: 200,
      });
      expect(await webkit.run('return window.violations')).toEqual([]);
    });

    it('collects every group, and finds nothing patched', async () => {
      await accept();
      expect(
        await webkit.run(
          `const { collect } = await import('${gpd()}/v1/agent.js'); return collect(await gpd.consent.receipt())`,
        ),
      ).toMatchObject({
        frame: { srcdocPreattached: false },
        graphics: { canvasStable: true, audioStable: true, canvasFlatBadPixels: 0 },
        engine: { evalLength: 37, math: expect.any(String) },
        fonts: expect.any(String),
        tells: { patched: [], globals: [], notificationMismatch: false, processType: null },
      });
    });

    it('full storage: a withdrawal holds, and the next page asks', async () => {
      const url = await accept();
      const { principalId } = await state();
      await webkit.run(FILL);
      expect(await webkit.run(`return gpd.consent.withdraw('${ANALYTICS}')`)).toMatchObject({
        outcome: 'recorded',
      });
      expect((await state()).granted).toEqual([AGENT]);
      expect(await shop.api.check(principalId, ANALYTICS)).toMatchObject({ reason: 'withdrawn' });
      await webkit.goto(url);
      expect(await state()).toMatchObject({ phase: 'asking', granted: [] });
    });

    it('a page from the back/forward cache grants nothing that a later page refused', async () => {
      await accept(
        `addEventListener('pageshow', (event) => { window.restored = event.persisted; }); ${FILL}`,
      );
      await webkit.goto(shop.page());
      await webkit.click(BUTTON('reject'));
      await expect.poll(async () => (await state()).phase, SEEN_WITHIN).toBe('decided');
      await webkit.run('setTimeout(() => history.back())');
      await expect.poll(() => webkit.run('return window.restored').catch(() => null), SEEN_WITHIN).toBe(true);
      expect(await state()).toMatchObject({ phase: 'asking', granted: [] });
    });
  },
  { optional: true },
);
