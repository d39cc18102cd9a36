import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dropSeveralCredentials } from '../../src/http/request.ts';
import { createAuthenticator } from '../../src/rights/oidc.ts';
import { ask, openWire } from '../support/http.ts';
import { type Idp, startIdp } from '../support/oidc.ts';
import { answerTo, oidcSettings } from './support.ts';

/** The Authorization header, sent over a real connection. */

let idp: Idp;
let server: Server;
let token: string;
let url: string;
beforeAll(async () => {
  idp = await startIdp();
  token = await idp.token({ gpd_role: 'subject' });
  const authenticate = createAuthenticator(oidcSettings(idp), Date.now, () => {});
  server = createServer((request, response) => {
    dropSeveralCredentials(request);
    void answerTo(authenticate, request.headers.authorization).then((answer) => {
      response.writeHead(answer.status).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
  await idp.stop();
});

const statusOf = async (authorization: string | readonly string[]): Promise<number> =>
  (await ask(url, '/', { headers: { authorization } })).status;

describe('the scheme', () => {
  it.each(['Bearer', 'bearer', 'BEARER', 'bEaReR'])('is %s: its case does not matter', async (scheme) => {
    expect(await statusOf(`${scheme} ${token}`)).toBe(200);
  });

  it('may be followed by several spaces (RFC 9110 section 11.4)', async () => {
    expect(await statusOf(`Bearer   ${token}`)).toBe(200);
  });

  it.each([
    ['no scheme', (jwt: string) => jwt],
    ['Basic', (jwt: string) => `Basic ${jwt}`],
    ['DPoP', (jwt: string) => `DPoP ${jwt}`],
    ['Bearer with a colon', (jwt: string) => `Bearer: ${jwt}`],
    ['Bearer twice', (jwt: string) => `Bearer Bearer ${jwt}`],
    ['a tab', (jwt: string) => `Bearer\t${jwt}`],
    ['two tokens', (jwt: string) => `Bearer ${jwt} ${jwt}`],
    ['two tokens and a comma', (jwt: string) => `Bearer ${jwt}, Bearer ${jwt}`],
    ['a parameter', (jwt: string) => `Bearer token=${jwt}`],
    ['quotes', (jwt: string) => `Bearer "${jwt}"`],
    ['nothing behind it', () => 'Bearer'],
    ['an empty header', () => ''],
  ])('401 for %s', async (_name, header) => {
    expect(await statusOf(header(token))).toBe(401);
  });
});

describe('the header', () => {
  it('401 without one, and no error code (RFC 6750 section 3)', async () => {
    const reply = await ask(url, '/');
    expect(reply.status).toBe(401);
    expect(reply.json()).toMatchObject({ code: 'unauthenticated', challenge: 'Bearer' });
  });

  it.each([
    ['the same token', () => [token, token]],
    ['a good token first', () => [token, 'x.y.z']],
    ['a good token last', () => ['x.y.z', token]],
  ])('401 for two of them: %s', async (_name, tokens) => {
    const lines = tokens().map((jwt) => `Authorization: Bearer ${jwt}`);
    const wire = await openWire(Number(new URL(url).port));
    wire.send(`GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${lines.join('\r\n')}\r\n\r\n`);
    expect((await wire.closed).text).toMatch(/^HTTP\/1\.1 401 /);
  });
});
