import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dumpDatabase } from '../support/database.ts';
import { ask, type Reply } from '../support/http.ts';
import { type Console, createVisitor, signIn, startConsole } from './support/console.ts';

/** A stranger must not be able to make this server call the identity provider many times. */

const LIMIT = 6;

let site: Console;
beforeAll(async () => {
  const settings = { GPD_RATE_LOGIN: `${LIMIT}/60`, GPD_TRUSTED_PROXIES: '127.0.0.1/32' };
  site = await startConsole({ gpd: { settings } });
});
afterAll(() => site.stop());

const from = (client: number, cookie = '') => ({ cookie, 'x-forwarded-for': `203.0.113.${client}` });

/**
 * Begins a sign-in.
 * @returns its cookie, and the return address with a code that the provider does not know
 */
async function begin(client: number): Promise<{ cookie: string; path: string }> {
  const reply = await ask(site.url, '/console/login', { headers: from(client) });
  const state = new URL(reply.headers.location!).searchParams.get('state');
  const [cookie = ''] = reply.headers['set-cookie']![0]!.split(';');
  const iss = encodeURIComponent(site.idp.issuer);
  return { cookie, path: `/console/callback?code=made-up&state=${state}&iss=${iss}` };
}

const tokenCalls = async (): Promise<number> =>
  (await site.idp.asked()).filter((path) => path === '/token').length;

describe('a state', () => {
  it('asks the provider once, however often its cookie comes back and from wherever', async () => {
    const { cookie, path } = await begin(1);
    await site.idp.asked();
    const replies: Reply[] = await Promise.all(
      Array.from({ length: 12 }, (_, i) => ask(site.url, path, { headers: from(10 + i, cookie) })),
    );
    expect(await tokenCalls()).toBe(1);
    expect(replies.map(({ status }) => status)).toEqual(Array(12).fill(400));
    expect(replies.filter(({ text }) => text.includes('did not start here'))).toHaveLength(11);
    const later = await ask(site.url, path, { headers: from(30, cookie) });
    expect([later.status, await tokenCalls()]).toEqual([400, 0]);
  });

  it('of one sign-in says nothing of another, and none is stored in the clear', async () => {
    const { cookie, path } = await begin(2);
    await ask(site.url, path, { headers: from(2, cookie) });
    const other = await begin(2);
    await site.idp.asked();
    await ask(site.url, other.path, { headers: from(2, other.cookie) });
    expect(await tokenCalls()).toBe(1);
    const dump = JSON.stringify(await dumpDatabase(site.gpd.dataDir));
    expect(dump).not.toContain(new URLSearchParams(path).get('state'));
  });
});

describe('GPD_RATE_LOGIN', () => {
  const LIMITED = ['/console/login', '/console/callback?code=x&state=y'];

  it('is one bucket for both ways, by client, with a page that says so', async () => {
    const get = (i: number, client: number) =>
      ask(site.url, LIMITED[i % LIMITED.length]!, { headers: from(client) });
    for (let i = 0; i < LIMIT; i += 1) expect((await get(i, 3)).status).not.toBe(429);
    for (let i = 0; i < LIMITED.length; i += 1) {
      const reply = await get(i, 3);
      expect(reply.status).toBe(429);
      expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
      expect(reply.headers['content-type']).toContain('text/html');
      expect(reply.text).toContain('Too many sign-ins');
    }
    expect((await get(0, 4)).status).toBe(302);
  });

  it('leaves those who are signed in alone', async () => {
    // Without a proxy header the client is the address of the test.
    const staff = await signIn(site.url, 'ada');
    const visitor = createVisitor(site.url);
    for (let i = 0; i < LIMIT; i += 1) await visitor.get('/console/login');
    expect((await visitor.get('/console/login')).status).toBe(429);
    expect((await staff.get('/console/queue')).status).toBe(200);
  });
});
