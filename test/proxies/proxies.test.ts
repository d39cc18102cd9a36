import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createAgent, quoted, signedHeaders } from '../agents/support/agent.ts';
import { badBodies, badHeads } from '../attack/support/bad-requests.ts';
import { tempDir } from '../support/command.ts';
import { expectCore, SEEN_WITHIN } from '../support/expect.ts';
import type { Reply } from '../support/http.ts';
import { type GpdProcess, startProcess } from '../support/process.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { describeWithTool } from '../support/tools.ts';
import {
  askThrough,
  exchangeThrough,
  HOST,
  missingProxy,
  PROXIES,
  type Running,
  startProxy,
  type Through,
} from './proxy.ts';

/** docs/operate/proxies.md, on real proxies: what arrives at gpd is what came from outside, and who it came from. */

const INGEST = '/_fp/i/v1';
const LIMIT = 3;
/** So much of a refused body is read on by Caddy before it closes. */
const READ_ON_BYTES = 262_144;

for (const proxy of PROXIES) {
  describeWithTool(`behind ${proxy.name}`, missingProxy(proxy), () => {
    let gpd: GpdProcess;
    let running: Running;
    beforeAll(async () => {
      gpd = await startProcess({
        settings: {
          GPD_BASE_URL: `https://${HOST}`,
          GPD_TRUSTED_PROXIES: '127.0.0.1',
          GPD_RATE_INGEST: 'off',
          GPD_RATE_PRIVACY: `${LIMIT}/60`,
        },
      });
      running = await startProxy(proxy, gpd.port);
      await vi.waitFor(async () => {
        expect((await askThrough(running, '/readyz')).status).toBe(200);
      });
    });
    afterAll(async () => {
      running?.child.kill('SIGTERM');
      await running?.exited;
      expect(gpd.logs()).not.toMatch(/"event":"fault"/);
      await gpd.stop();
    });

    const ingest = (bundle: unknown, options: Through = {}): Promise<Reply> =>
      askThrough(running, INGEST, {
        ...options,
        method: 'POST',
        body: JSON.stringify(bundle),
        headers: { ...browserHeaders(), 'content-type': 'application/json', ...options.headers },
      });
    const bundle = (): unknown => createBundle(gpd.targets[0]!);

    it('serves pages, scripts and a verdict, over TLS', async () => {
      for (const path of ['/healthz', '/v1/agent.js', '/v1/embed.js', '/docs', '/openapi.json']) {
        expect({ path, status: (await askThrough(running, path)).status }).toEqual({ path, status: 200 });
      }
      expectCore(await ingest(bundle()), 'ok');
    });

    it('sends who comes without TLS to https', async () => {
      const options = { host: '127.0.0.1', port: running.http, path: '/docs?a=b', headers: { host: HOST } };
      const reply = await new Promise<{ status: number | undefined; location: string | undefined }>(
        (resolve, reject) => {
          request(options, (response) => {
            response.resume();
            resolve({ status: response.statusCode, location: response.headers.location });
          })
            .once('error', reject)
            .end();
        },
      );
      expect(reply).toMatchObject({ status: 308 });
      expect(reply.location).toMatch(new RegExp(`^https://${HOST}(?::${running.https})?/docs\\?a=b$`));
    });

    /** The bucket of /me is keyed on the client: it tells whom gpd sees. */
    const me = (options: Through): Promise<Reply> =>
      askThrough(running, '/me', {
        ...options,
        method: 'POST',
        body: '{}',
        headers: { 'content-type': 'application/json', ...options.headers },
      });
    const statuses = async (all: readonly Through[]): Promise<number[]> => {
      const found: number[] = [];
      for (const options of all) found.push((await me(options)).status);
      return found;
    };
    const UNTIL_LIMITED = [...Array.from({ length: LIMIT }, () => 401), 429];
    const times = (options: (i: number) => Through): Through[] =>
      Array.from({ length: LIMIT + 1 }, (_, i) => options(i));

    it('gives every client a limit of its own', async () => {
      expect(await statuses(times(() => ({ from: '127.0.0.21' })))).toEqual(UNTIL_LIMITED);
      expect(await statuses(times(() => ({ from: '127.0.0.22' })))).toEqual(UNTIL_LIMITED);
    });

    it.each([
      ['X-Forwarded-For', (i: number) => ({ 'x-forwarded-for': `203.0.113.${i}` })],
      ['two X-Forwarded-For', (i: number) => ({ 'x-forwarded-for': [`203.0.113.${i}`, `127.0.0.1`] })],
      [
        'X-Forwarded-For with our own address',
        (i: number) => ({ 'x-forwarded-for': `203.0.113.${i}, 127.0.0.1` }),
      ],
      ['Forwarded', (i: number) => ({ forwarded: `for=203.0.113.${i}` })],
      ['X-Real-IP', (i: number) => ({ 'x-real-ip': `203.0.113.${i}` })],
      [
        'a Connection that names X-Forwarded-For',
        (i: number) => ({
          connection: 'close, X-Forwarded-For',
          'x-forwarded-for': `203.0.113.${i}`,
        }),
      ],
    ])('a forged %s changes nothing', async (header, headers) => {
      const from = `127.0.1.${Buffer.from(header).reduce((sum, byte) => sum + byte, 0) % 250}`;
      expect(await statuses(times((i) => ({ from, headers: headers(i) })))).toEqual(UNTIL_LIMITED);
    });

    it('keeps Host and the headers of Web Bot Auth, so that an agent is declared', async () => {
      const agent = createAgent('https://agent.example');
      const file = join(tempDir('jwks'), 'keys.json');
      writeFileSync(file, JSON.stringify({ keys: [agent.jwk] }));
      await gpd.json(['agents', 'add', 'https://agent.example', '--jwks', file]);
      await vi.waitFor(async () => {
        const now = Math.floor(Date.now() / 1000);
        const params = {
          created: String(now),
          expires: String(now + 60),
          nonce: quoted(`n${Math.random()}`),
        };
        const components = [
          '"@authority"',
          '"@method"',
          '"@path"',
          '"@scheme"',
          '"signature-agent";key="sig1"',
        ];
        const headers = signedHeaders(agent, { host: HOST, scheme: 'https', params, components });
        const body = expectCore(await ingest(bundle(), { headers }), 'ok');
        expect(body).toMatchObject({ class: 'declared_agent', declaredAgentId: 'https://agent.example' });
      }, SEEN_WITHIN);
    });

    it('refuses a signature for another host', async () => {
      const agent = createAgent('https://agent.example');
      const headers = { ...signedHeaders(agent, { host: 'other.example' }), host: HOST };
      expect(expectCore(await ingest(bundle(), { headers }), 'ok').class).not.toBe('declared_agent');
    });

    it.each([32_768, 32_769, 40_000, 900_000, 8_000_000])(
      'a body of %i bytes gets its own answer and no other',
      async (size) => {
        const body = `{"pad":"${'x'.repeat(size - 10)}"}`;
        const answer = askThrough(running, INGEST, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
        }).catch((error: NodeJS.ErrnoException) => error.code);
        const reply = await answer;
        // A client that goes on sending after a 413 may be cut off before it reads the answer; no other
        // client gets that answer.
        if (typeof reply !== 'object') {
          expect(size).toBeGreaterThan(READ_ON_BYTES);
          expect(reply).toMatch(/^(?:ECONNRESET|EPIPE)$/);
          return;
        }
        const reason = size > 32_768 ? 'payload-too-large' : 'malformed-sealed-bundle';
        expect({ status: reply.status, body: reply.json() }).toMatchObject({
          status: size > 32_768 ? 413 : 400,
          body: { error: reason },
        });
      },
    );

    it('keeps the cookie and CORS of the origin', async () => {
      const reply = await ingest(bundle(), { headers: { origin: 'https://shop.example' } });
      expectCore(reply, 'ok');
      expect(reply.headers['access-control-allow-credentials']).toBe('true');
      expect(reply.headers['strict-transport-security'] ?? 'max-age').toContain('max-age');
    });

    it('no request is smuggled past it', async () => {
      const asHost = (text: string): string => text.replaceAll('gpd.test', HOST);
      const attacks = [...badHeads(INGEST), ...badBodies(INGEST)].flatMap(([name, text]) => {
        const hidden = `GET /smuggled HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
        return [[name, `${asHost(text)}${hidden}`]] as const;
      });
      expect(attacks.length).toBeGreaterThan(20);
      for (const [name, bytes] of attacks) {
        const answers = await exchangeThrough(running, bytes);
        // At most its own answer and that of the request it openly sent behind.
        expect({ name, count: answers.length <= 2 }).toEqual({ name, count: true });
        // The next clients on the same connections to gpd get their own answers.
        for (let i = 0; i < 3; i += 1) {
          const next = await askThrough(running, '/healthz');
          expect({ name, status: next.status, text: next.text }).toEqual({
            name,
            status: 200,
            text: expect.stringContaining('"status":"ok"') as string,
          });
        }
      }
    });

    it('a gpd that is away is a 502, and back again it is there', async () => {
      const other = await startProxy(proxy, 9);
      await vi.waitFor(async () => {
        expect((await askThrough(other, '/healthz')).status).toBe(502);
      });
      other.child.kill('SIGTERM');
      await other.exited;
      expect((await askThrough(running, '/healthz')).status).toBe(200);
    });
  });
}
