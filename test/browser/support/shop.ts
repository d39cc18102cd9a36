import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'puppeteer-core';
import { type Api, addKeys, apiOf } from '../../consent/app/support/api.ts';
import { execute, executeSealed } from '../../support/database.ts';
import { initGpd, startGpd } from '../../support/server.ts';

/** A shop of another origin than gpd's, under the strictest policy that lets the snippet in, and the real gpd. */

const KID = 'shop';
/** Two hosts of one domain; browsers trust them like any localhost. */
export const DOMAIN = '.shop.localhost';
const HOSTS = [`www${DOMAIN}`, `app${DOMAIN}`];
export const AGENT = 'device-identification';
export const ANALYTICS = 'analytics';

const BUILT = new URL('../../../dist/banner/', import.meta.url);
export const NONCE = 'bm9uY2Utb2YtdGhlLXRlc3Q';

/** A page's own script: keeps the events and lets a test ask the agent. */
const PAGE_SCRIPT = `
  window.heard = [];
  window.violations = [];
  addEventListener('securitypolicyviolation', (e) => violations.push(e.effectiveDirective + ' ' + e.blockedURI));
  const consent = window.gpd?.consent;
  if (consent) for (const name of ['ready', 'change', 'open', 'close'])
    consent.on(name, (state) => heard.push([name, state.phase, state.granted.join(' ')].join(' | ')));
  document.getElementById('opener').addEventListener('click', () => consent.open());
  window.identify = async (server, receipt) => {
    const { identify } = await import(server + '/v1/agent.js');
    const result = await identify({ kid: '${KID}', consent: receipt ?? (() => consent.receipt()), workerUrl: null });
    window.token = result.response?.transparencyToken ?? '';
    return { sent: result.sent, reason: result.reason ?? result.response.reason, status: result.status ?? null };
  };
`;

export interface ShopPage {
  /** Attributes of the snippet beside src, data-key and defer. */
  readonly snippet?: Readonly<Record<string, string>>;
  /** The shop serves the pinned script itself. */
  readonly own?: boolean;
  readonly language?: string;
  readonly body?: string;
  readonly head?: string;
  /** Markup at the end of the body. */
  readonly after?: string;
  /** A further address that the policy lets the page connect to. */
  readonly connect?: string;
  /** May wait in the back/forward cache. */
  readonly cached?: boolean;
  /** The page begins with the banner as markup, by this query; the shop keeps it. */
  readonly markup?: string;
  /** The markup as a browser or a server on the way changes it. */
  readonly altered?: (markup: string) => string;
  /** The script of the banner comes when the test says so. */
  readonly held?: boolean;
}

export interface Shop {
  readonly api: Api;
  readonly origin: string;
  /** Address of a page. @param host of the domain */
  page(options?: ShopPage, host?: 'www' | 'app'): string;
  /** Decisions that gpd has recorded. */
  decisions(): Promise<number>;
  /** Paths that the shop was asked for. */
  readonly asked: string[];
  /** The scripts that are held come. */
  release(): void;
  /** gpd goes away. */
  stop(): Promise<void>;
  /** gpd is there again, if it was away. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

function html(
  gpd: string,
  key: string,
  { snippet = {}, own: isOwnOrigin, held: isHeld, language = 'en', head, body, after }: ShopPage,
  markup: string,
): string {
  const src = isHeld ? '/held/v1/embed.js' : `${isOwnOrigin ? '' : gpd}/v1/embed.js`;
  const server = isHeld ? { 'data-server': gpd } : {};
  const attributes = { src, 'data-key': key, ...server, ...snippet };
  const text = Object.entries(attributes).map(([name, value]) => `${name}="${value}"`);
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><title>Shop</title>
    <meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
    <link rel="stylesheet" href="/page.css">${head ?? ''}
    <script ${text.join(' ')} defer></script><script src="/page.js" defer></script></head>
    <body>${markup}<header><a id="first" href="#end">Skip to the end</a></header><main><h1>Shop</h1>
    <button id="opener" type="button">Your privacy</button>${body ?? ''}
    ${'<p>Paper, ink and things that keep a record.</p>'.repeat(30)}
    <p><a id="end" href="#first">The last link</a></p></main>${after ?? ''}</body></html>`;
}

/** No inline style at all, no inline script without its nonce. */
const policy = (gpd: string, connect = ''): string =>
  [
    "default-src 'none'",
    `script-src 'self' ${gpd} 'nonce-${NONCE}'`,
    `style-src 'self' 'nonce-${NONCE}'`,
    `connect-src ${gpd} ${connect}`,
    'img-src data:',
    "frame-src 'self'",
  ].join('; ');

const FILES: Readonly<Record<string, readonly [type: string, body: string]>> = {
  '/page.js': ['text/javascript', PAGE_SCRIPT],
  '/page.css': ['text/css', ':root { color-scheme: light dark } body { font: 1rem/1.5 serif; margin: 2rem }'],
  '/large.css': ['text/css', 'html { font-size: 200% }'],
  '/transform.css': ['text/css', 'body { transform: translateZ(0) } main { min-height: 3000px }'],
  '/counting.css': [
    'text/css',
    'body > * + * { margin-top: 24px } body > :first-child { padding-top: 40px } header:first-child { height: 90px }' +
      ' body > :nth-child(2) { margin-left: 60px } footer:last-child { height: 500px } main { height: 900px }',
  ],
  '/small.css': ['text/css', 'html { font-size: 62.5% } body { font-size: 1rem; margin: 0 }'],
  '/theme.css': [
    'text/css',
    ':root { --gpd-paper: #0a141e; --gpd-ink: #f0f0c8; --gpd-radius: 0; } button { letter-spacing: 1em; color: red }',
  ],
  '/slow.js': ['text/javascript', 'window.ran.push("file");'],
  '/gated.js': ['text/javascript', 'window.gated = [...(window.gated ?? []), "file"];'],
};

/** Inline under the page's nonce, and a file: both wait for their purposes. */
export const GATED = `
  <script type="text/plain" data-purpose="${ANALYTICS}" nonce="${NONCE}">window.gated = [...(window.gated ?? []), "inline"];</script>
  <script type="text/plain" data-purpose="${ANALYTICS}" data-src="/gated.js"></script>
  <script type="text/plain" data-purpose="${ANALYTICS} ${AGENT}" nonce="${NONCE}">window.gated = [...(window.gated ?? []), "both"];</script>`;

const inline = (does: string): string =>
  `<script type="text/plain" data-purpose="${ANALYTICS}" nonce="${NONCE}">${does}</script>`;

/** A file that is slow and what needs it, and a file that is not there. */
export const LIBRARY = `${inline('window.ran = ["before"];')}
  <script type="text/plain" data-purpose="${ANALYTICS}" data-src="/slow.js"></script>
  ${inline('window.ran.push("after " + window.ran.at(-1));')}
  <script type="text/plain" data-purpose="${ANALYTICS}" src="/missing.js"></script>
  ${inline('window.ran.push("last");')}`;

const analyticsSql = `INSERT INTO purposes (kid, id, title, description, lawful_basis, gpc, ttl_days)
  VALUES ('${KID}', '${ANALYTICS}', 'Audience measurement', 'Counts visits to learn which pages are read.',
    'consent', 'ignore', 30)`;

export interface ShopOptions {
  /** With a second purpose, which Global Privacy Control does not touch. */
  readonly analytics?: boolean;
  /** The agent's purpose lets a person overrule Global Privacy Control. */
  readonly ask?: boolean;
  /** Further settings of the tenant. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A tenant that wants consent proven by its ledger, so that the server judges what the page says. */
export async function startShop({
  analytics = true,
  ask = false,
  settings = {},
}: ShopOptions = {}): Promise<Shop> {
  const pages = new Map<string, ShopPage>();
  const requestedPaths: string[] = [];
  let gpdUrl = '';
  let key = '';
  const keptMarkup = new Map<string, string>();
  /** A shop's server keeps the markup, and shows it without gpd too. */
  async function markupOf({ markup: query, altered = (text) => text }: ShopPage): Promise<string> {
    if (query === undefined) return '';
    const headers = { authorization: `Bearer ${key}` };
    const answer = await fetch(`${gpdUrl}/v1/consent/banner.html${query}`, { headers }).catch(() => null);
    if (answer?.ok) keptMarkup.set(query, await answer.text());
    return altered(keptMarkup.get(query) ?? '');
  }
  let releaseHeld: (() => void)[] = [];
  const respond = async (request: IncomingMessage): Promise<readonly [type: string, body: string] | null> => {
    const { pathname } = new URL(request.url ?? '/', 'http://shop');
    requestedPaths.push(pathname);
    if (pathname.startsWith('/held/')) await new Promise<void>((resolve) => void releaseHeld.push(resolve));
    // A copy of the script without its second file.
    if (pathname === '/alone/v1/embed.js')
      return ['text/javascript', readFileSync(new URL('embed.js', BUILT), 'utf8')];
    if (pathname.endsWith('/v1/embed.js'))
      return ['text/javascript', readFileSync(new URL('pinned.js', BUILT), 'utf8')];
    const page = pages.get(pathname);
    return page ? ['text/html', html(gpdUrl, key, page, await markupOf(page))] : (FILES[pathname] ?? null);
  };
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = await respond(request);
    const shown = pages.get(request.url ?? '');
    response.writeHead(file ? 200 : 404, {
      'content-type': `${file?.[0] ?? 'text/plain'}; charset=utf-8`,
      'content-security-policy': policy(gpdUrl, shown?.connect),
      'cache-control': shown?.cached ? 'no-cache' : 'no-store',
    });
    setTimeout(() => response.end(file?.[1]), request.url === '/slow.js' ? 300 : 0);
  }
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const shopPort = (server.address() as AddressInfo).port;
  const origins = ['localhost', ...HOSTS].map((host) => `http://${host}:${shopPort}`);
  const origin = origins[0] ?? '';

  // `localhost` for both: two origins of one site.
  const { dataDir } = await initGpd([{ kid: KID, origins: ['https://placeholder.example'] }]);
  await executeSealed(
    dataDir,
    `UPDATE tenants SET settings = json_patch(settings, '${JSON.stringify({ ...settings, origins, 'consent.basis': 'ledger' })}')
      WHERE kid = '${KID}'`,
    ...(analytics ? [analyticsSql] : []),
    ...(ask ? [`UPDATE purposes SET gpc = 'ask' WHERE kid = '${KID}'`] : []),
  );
  const keys = await addKeys(dataDir, KID);
  key = keys.publishable;
  const start = (port: string) => startGpd({ dataDir, args: ['--port', port] });
  let gpd = await start('0');
  let away = false;
  const { port } = gpd;
  gpdUrl = `http://localhost:${port}`;
  const shop = {
    api: apiOf(gpd, keys),
    origin,
    asked: requestedPaths,
    page(options: ShopPage = {}, host?: 'www' | 'app') {
      const path = `/page-${pages.size}`;
      pages.set(path, options);
      return `${host ? `http://${host}${DOMAIN}:${shopPort}` : origin}${path}`;
    },
    async decisions() {
      const rows = await execute(dataDir, 'SELECT COUNT(*) AS n FROM decisions');
      return Number(rows[0]?.['n']);
    },
    release() {
      for (const release of releaseHeld) release();
      releaseHeld = [];
    },
    async stop() {
      await shop.api.stop();
      away = true;
    },
    async restart() {
      if (!away) return;
      gpd = await start(String(port));
      away = false;
      shop.api = apiOf(gpd, keys);
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      if (!away) await shop.api.stop();
    },
  };
  return shop;
}

/** The banner of a page as a person meets it. */
export function bannerOf(page: Page) {
  const hook = (name: string): string => `gpd-consent >>> [data-testid="consent-${name}"]`;
  const inside = <T>(body: string): Promise<T> =>
    page.evaluate(
      `(() => { const root = document.querySelector('gpd-consent')?.shadowRoot; ${body} })()`,
    ) as Promise<T>;
  const press = async (name: string): Promise<void> => {
    const element = await page.waitForSelector(hook(name), { visible: true });
    await element?.click();
  };
  return {
    press,
    /** Presses, and waits until the banner has gone. */
    answer: async (name: 'accept' | 'reject'): Promise<void> => {
      await press(name);
      await page.waitForSelector(hook('reopen'), { visible: true });
    },
    shown: (name: string): Promise<boolean> =>
      inside(`const e = root?.querySelector('[data-testid="consent-${name}"]');
        return !!e && e.getClientRects().length > 0;`),
    waitFor: (name: string): Promise<unknown> => page.waitForSelector(hook(name), { visible: true }),
    waitGone: (name: string): Promise<unknown> => page.waitForSelector(hook(name), { hidden: true }),
    inside,
    text: (selector: string): Promise<string> =>
      inside(`return root.querySelector(${JSON.stringify(selector)})?.textContent ?? '';`),
    settingsOpen: (): Promise<boolean> => inside("return root.querySelector('dialog').open;"),
    tick: async (purpose: string): Promise<void> => {
      const box = await page.waitForSelector(`gpd-consent >>> input[name="${purpose}"]`, { visible: true });
      await box?.click();
    },
    /** The hook or id of what has the keyboard. */
    focused: (): Promise<string> =>
      page.evaluate(`(() => { let at = document.activeElement; while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
        return at?.dataset?.testid || at?.id || at?.tagName || ''; })()`) as Promise<string>,
    state: (): Promise<{
      phase: string;
      problem: string | null;
      gpc: boolean;
      granted: string[];
      principalId: string | null;
      purposes: { id: string; status: string; until: number | null }[];
    }> => page.evaluate('gpd.consent.ready.then(() => gpd.consent.state())') as never,
    receipt: (): Promise<{
      purposes: string[];
      gpc: boolean;
      version: number;
      issuedAt: number;
      proof?: { seq: number; hash: string };
      principalId?: string;
    }> => page.evaluate('gpd.consent.receipt()') as never,
    stored: (): Promise<number> => page.evaluate('localStorage.length') as Promise<number>,
  };
}
export type Banner = ReturnType<typeof bannerOf>;
