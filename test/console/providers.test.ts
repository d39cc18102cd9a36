import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { HOUR, SECOND } from '../../src/lib/clock.ts';
import { KID } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { ask } from '../support/http.ts';
import type { FaultRule } from '../support/oidc.ts';
import { startGpd } from '../support/server.ts';
import { type Console, type ConsoleOptions, createVisitor, signIn, startConsole } from './support/console.ts';

/** Signs in with identity providers that differ, are away or are not configured. */

/** Starts a console that ends with its test. */
async function startOwn(options?: ConsoleOptions): Promise<Console> {
  const ownConsole = await startConsole(options);
  onTestFinished(() => ownConsole.stop());
  return ownConsole;
}

describe('an identity provider that puts the claims into the ID token', () => {
  it('lets staff in all the same', async () => {
    const ownConsole = await startOwn({ idp: { claimsInIdToken: true } });
    const staff = await signIn(ownConsole.url, 'dora');
    expect((await staff.get('/console/queue')).text).toContain('Data-protection officer');
  });
});

describe('an identity provider whose clock is ahead', () => {
  it('lets staff in within the tolerance of bearer tokens, and refuses an ID token that was issued later', async () => {
    let behindMs = HOUR;
    const ownConsole = await startOwn({ gpd: { app: { clock: () => Date.now() - behindMs } } });
    const refused = await signIn(ownConsole.url, 'ada');
    expect(refused.last.status).toBe(400);
    expect([...refused.cookies.keys()]).toEqual([]);
    behindMs = 10 * SECOND;
    expect((await signIn(ownConsole.url, 'ada')).last.status).toBe(303);
  });
});

describe('an identity provider that is away', () => {
  it('is blamed, and not the person, where the role is at userinfo and that breaks', async () => {
    const settings = { GPD_OIDC_ROLE_CLAIM: 'preferred_username' };
    const accounts = { rita: { preferred_username: 'reviewer', gpd_tenant: KID, name: 'Rita' } };
    const ownConsole = await startOwn({ idp: { accounts }, gpd: { settings } });
    expect((await signIn(ownConsole.url, 'rita')).last.status).toBe(303);
    await ownConsole.idp.fault({ fault: 'error', only: 'userinfo' });
    const { last } = await signIn(ownConsole.url, 'rita');
    expect(last.status).toBe(503);
    expect(last.text).toContain('did not say which role you have');
  });

  it('a page says so, open sessions go on, and it works again afterwards', async () => {
    const { url, idp } = await startOwn();
    const staff = await signIn(url, 'ada');
    await idp.fault({ fault: 'error' });
    const visitor = createVisitor(url);
    // The discovery document is cached, so only the token endpoint fails.
    const { headers } = await visitor.get('/console/login');
    const state = new URL(headers.location!).searchParams.get('state');
    const callback = `/console/callback?state=${state}&iss=${encodeURIComponent(idp.issuer)}&code=x`;
    expect((await visitor.get(callback)).status).toBeGreaterThanOrEqual(400);
    expect((await staff.get('/console/queue')).status).toBe(200);
    await idp.fault(null);
    expect((await signIn(url, 'ada')).last.status).toBe(303);
  });

  const stranger = JSON.stringify({
    issuer: 'https://other.example',
    authorization_endpoint: 'https://other.example/a',
  });
  const faults: readonly (readonly [string, FaultRule])[] = [
    ['silence', { fault: 'hang' }],
    ['no JSON', { fault: 'body', target: '{"issuer": <html>' }],
    ['another issuer', { fault: 'body', target: stranger }],
    ['an error', { fault: 'error' }],
  ];
  describe('from the start', () => {
    let separateConsole: Console;
    beforeAll(async () => {
      separateConsole = await startConsole();
    });
    afterAll(() => separateConsole.stop());

    it.each(faults)('%s: 503, with what to do', async (_name, rule) => {
      await separateConsole.idp.fault(rule);
      await separateConsole.idp.asked();
      const asks = { timeout: 20_000, interval: 50 };
      const reply = await vi.waitFor(async () => {
        const answer = await createVisitor(separateConsole.url).get('/console/login');
        // gpd does not call the provider in the second after a failure.
        expect(await separateConsole.idp.asked()).not.toEqual([]);
        return answer;
      }, asks);
      expect(reply.status).toBe(503);
      expect(reply.headers['retry-after']).toMatch(/^\d+$/);
      expect(reply.text).toContain('does not answer');
    });
  });

  it('lets staff in once it is back', async () => {
    const ownConsole = await startOwn();
    await ownConsole.idp.fault({ fault: 'error' });
    expect((await createVisitor(ownConsole.url).get('/console/login')).status).toBe(503);
    await ownConsole.idp.fault(null);
    // gpd calls the provider again a second after a failure.
    await vi.waitFor(
      async () => expect((await signIn(ownConsole.url, 'ada')).last.status).toBe(303),
      SEEN_WITHIN,
    );
  });
});

describe('not configured', () => {
  it('says what to set, and lets nobody in', async () => {
    const gpd = await startGpd();
    try {
      for (const path of ['/console/login', '/console/callback?code=x']) {
        const reply = await ask(gpd.url, path);
        expect(reply.status).toBe(503);
        for (const name of ['GPD_OIDC_ISSUER', 'GPD_CONSOLE_CLIENT_ID', 'GPD_CONSOLE_CLIENT_SECRET_FILE']) {
          expect(reply.text).toContain(name);
        }
      }
      expect((await ask(gpd.url, '/console')).headers.location).toBe('/console/login?back=%2Fconsole');
    } finally {
      await gpd.stop();
    }
  });

  it('plain http on a public name: nobody is let in', async () => {
    const ownConsole = await startOwn({ gpd: { settings: { GPD_BASE_URL: 'http://gpd.example' } } });
    const reply = await ask(`http://127.0.0.1:${ownConsole.gpd.port}`, '/console/login');
    expect(reply.status).toBe(503);
    expect(reply.text).toContain('needs https');
  });

  it('a wrong client secret: the provider refuses, and the page says so', async () => {
    const ownConsole = await startOwn({ secret: 'wrong' });
    const staff = await signIn(ownConsole.url, 'ada');
    expect(staff.last.status).toBe(400);
    expect(staff.last.text).toContain('The identity provider refused');
    expect(ownConsole.gpd.logs()).not.toContain('wrong');
  });
});
