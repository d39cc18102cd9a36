import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INGEST } from '../support/expect.ts';
import { ask, openWire } from '../support/http.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** Every answer carries the security headers for browsers, and a request head has a size limit. */

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "frame-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join(';');

/** Sends raw bytes. @returns what came back until the other side closed */
async function talk(port: number, head: string): Promise<string> {
  const wire = await openWire(port);
  wire.send(head);
  return (await wire.closed).text;
}

let gpd: Gpd;
let secure: Gpd;
beforeAll(async () => {
  [gpd, secure] = await Promise.all([
    startGpd({ settings: { GPD_RATE_INGEST: '1/600', GPD_TRUSTED_PROXIES: '127.0.0.1' } }),
    startGpd({ settings: { GPD_BASE_URL: 'https://id.shop.example' } }),
  ]);
});
afterAll(() => Promise.all([gpd.stop(), secure.stop()]));

const PAGES = ['/healthz', '/docs', '/openapi.json', '/v1/agent.js', '/v1/embed.js', '/nowhere', '/my-data'];

describe('what a browser is told', () => {
  it.each(PAGES)('%s: nothing inline, no frame, no guess of a type, no referrer', async (path) => {
    const { headers } = await ask(gpd.url, path);
    expect(headers).toMatchObject({
      'content-security-policy': CSP,
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      // A form of /my-data needs its Origin, which browsers blank under no-referrer.
      'referrer-policy': path === '/my-data' ? 'same-origin' : 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(headers).not.toHaveProperty('server');
    expect(headers).not.toHaveProperty('strict-transport-security');
  });

  it.each([...PAGES, INGEST, '/v1/consent/can-process'])(
    '%s: https for a year, where it is',
    async (path) => {
      const { headers } = await ask(`http://127.0.0.1:${secure.port}`, path);
      expect(headers['strict-transport-security']).toBe('max-age=31536000');
      expect(headers['x-content-type-options']).toBe('nosniff');
    },
  );
});

it('the font is loaded once, because its name has its version; a style sheet is asked for again', async () => {
  const font = await ask(gpd.url, '/assets/inter.4.1.woff2');
  expect(font.headers).toMatchObject({
    'content-type': 'font/woff2',
    'cache-control': 'public, max-age=31536000, immutable',
  });
  const sheet = await ask(gpd.url, '/assets/font.css');
  expect(sheet.headers['cache-control']).toBe('public, max-age=0');
  expect(sheet.text).toContain('url("inter.4.1.woff2")');
});

it.each([INGEST, '/v1/consent/can-process'])('the lane %s is no page, in no frame', async (path) => {
  const { headers } = await ask(gpd.url, path, { method: 'POST', body: '{}' });
  expect(headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
});

describe('the head of a request', () => {
  it('is read up to 16 KB, and refused beyond', async () => {
    const head = (bytes: number): string => {
      const frame = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Fill: \r\n\r\n';
      return frame.replace('X-Fill: ', `X-Fill: ${'a'.repeat(bytes - frame.length)}`);
    };
    expect(await talk(gpd.port, head(16_000))).toMatch(/^HTTP\/1\.1 200 /);
    // gpd refuses a head that Node no longer reads in the same words.
    for (const bytes of [17_000, 60_000, 70_000]) {
      const refused = await talk(gpd.port, head(bytes));
      expect(refused).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\n/);
      expect(refused).toContain('"error":"headers-too-large"');
      expect(refused.match(/HTTP\/1\.1/g)).toHaveLength(1);
    }
  });

  it('is read to its end: what a proxy adds behind 2,500 headers still names the client', async () => {
    const body = '{}';
    const headerLines = 'a:\r\n'.repeat(2500);
    const status = async (client: string): Promise<string> => {
      const reply = await talk(
        gpd.port,
        `POST ${INGEST} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n` +
          `Content-Length: ${body.length}\r\n${headerLines}X-Forwarded-For: ${client}\r\n\r\n${body}`,
      );
      return reply.slice(9, 12);
    };
    // One bundle a client: were the last header dropped, both would be the proxy.
    const statuses = [await status('203.0.113.1'), await status('203.0.113.2'), await status('203.0.113.1')];
    expect(statuses).toEqual(['400', '400', '429']);
  });
});
