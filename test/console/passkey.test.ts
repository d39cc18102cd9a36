import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { create, createPasskey, get, type Passkey } from '../attest/authenticator.ts';
import { KID } from '../support/constants.ts';
import { ask } from '../support/http.ts';
import { freePort } from '../support/ports.ts';
import { type Gpd, startGpd } from '../support/server.ts';

/** Staff sign in with a passkey whose counter stays 0, as every passkey that is synchronised between devices. */

let gpd: Gpd;
let base: string;
beforeAll(async () => {
  const port = await freePort();
  base = `http://localhost:${port}`;
  gpd = await startGpd({ args: ['--port', String(port)], settings: { GPD_BASE_URL: base } });
});
afterAll(() => gpd.stop());

const cookiesOf = (headers: { readonly 'set-cookie'?: readonly string[] | undefined }): string =>
  (headers['set-cookie'] ?? []).map((line) => line.split(';')[0]).join('; ');

async function openPage(path: string): Promise<{ cookie: string; challenge: string }> {
  const { headers, text } = await ask(gpd.url, path);
  const offer = /data-offer="([^"]*)"/.exec(text)?.[1] ?? '';
  const { publicKey } = JSON.parse(offer.replaceAll('&#34;', '"')) as { publicKey: { challenge: string } };
  return { cookie: cookiesOf(headers), challenge: publicKey.challenge };
}

const send = (cookie: string, fields: Record<string, string>, origin = base) =>
  ask(gpd.url, '/console/passkey', {
    method: 'POST',
    headers: { cookie, origin, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ back: '/console', ...fields }).toString(),
  });

async function invite(name: string, role: string): Promise<string> {
  const { link } = await gpd.json<{ link: string }>([
    'staff',
    'invite',
    name,
    '--role',
    role,
    '--tenant',
    KID,
  ]);
  return new URL(link).hash.split('.').at(-1) ?? '';
}

async function join(key: Passkey, invitation: string) {
  const { cookie, challenge } = await openPage('/console/join');
  return send(cookie, { answer: JSON.stringify(create(key, { origin: base, challenge })), invitation });
}

async function prepareSignIn(key: Passkey) {
  const { cookie, challenge } = await openPage('/console/login');
  return { cookie, answer: JSON.stringify(get(key, { origin: base, challenge })) };
}

const countSignIns = async (): Promise<number> =>
  (await gpd.json<object[]>(['audit', KID, '--action', 'staff.signed-in'])).length;

describe('one passkey for two invitations at the same moment', () => {
  it('joins once; the other is refused, and its invitation stays good', async () => {
    const key = createPasskey(0);
    const invitations = [await invite('Bea', 'reviewer'), await invite('Ole', 'operator')];
    const replies = await Promise.all(invitations.map((invitation) => join(key, invitation)));
    expect(replies.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 400]);
    const refusedInvitation = invitations[replies.findIndex(({ status }) => status === 400)] ?? '';
    expect((await join(key, refusedInvitation)).status).toBe(400);
    expect((await join(createPasskey(0), refusedInvitation)).status).toBe(303);
    expect(gpd.logs()).not.toContain('UNIQUE');
  });
});

describe('an answer of a passkey', () => {
  it('signs in once, at whatever time and however often it is sent', async () => {
    const before = await countSignIns();
    const key = createPasskey(0);
    expect((await join(key, await invite('Rosa', 'dpo'))).status).toBe(303);
    const { cookie, answer } = await prepareSignIn(key);
    expect((await send(cookie, { answer }, 'https://evil.example')).status).toBe(403);
    const together = await Promise.all([1, 2, 3].map(() => send(cookie, { answer })));
    expect(together.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 400, 400]);
    const later = await send(cookie, { answer });
    expect([later.status, cookiesOf(later.headers)]).toEqual([
      400,
      expect.not.stringContaining('gpd_console'),
    ]);
    const next = await prepareSignIn(key);
    expect((await send(next.cookie, { answer: next.answer })).status).toBe(303);
    // Joining signs in too.
    expect(await countSignIns()).toBe(before + 3);
  });
});

describe('a pending sign-in', () => {
  it('is answered in the browser and for the act that it was begun for, in two tabs too', async () => {
    const key = createPasskey(0);
    const invitation = await invite('Ada', 'reviewer');
    const mine = await openPage('/console/login');
    const created = JSON.stringify(create(key, { origin: base, challenge: mine.challenge }));
    expect((await send(mine.cookie, { answer: created, invitation })).status).toBe(400);
    // The invitation is still good, and a page to join lets nobody sign in.
    expect((await join(key, invitation)).status).toBe(303);
    const joining = await openPage('/console/join');
    const signed = JSON.stringify(get(key, { origin: base, challenge: joining.challenge }));
    expect((await send(joining.cookie, { answer: signed })).status).toBe(400);

    const [first, second, other] = [
      await prepareSignIn(key),
      await prepareSignIn(key),
      await prepareSignIn(key),
    ];
    for (const cookie of ['', other.cookie, other.cookie.replace(/_[^=]*/, first.cookie.match(/_[^=]*/)![0])])
      expect((await send(cookie, { answer: first.answer })).status).toBe(400);
    const tabs = `${first.cookie}; ${second.cookie}`;
    expect((await send(tabs, { answer: second.answer })).status).toBe(303);
    expect((await send(tabs, { answer: first.answer })).status).toBe(303);
    expect((await send(tabs, { answer: first.answer })).status).toBe(400);
  });
});
