import { once } from 'node:events';
import { createServer, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ConsentClient } from '../src/client.ts';
import { FakeConsent } from '../src/fake.ts';
import type { RequestLike } from '../src/request.ts';

const PURPOSES = ['ads', 'newsletter'];

async function visited(): Promise<{ fake: FakeConsent; cookie: string; later: (seconds: number) => void }> {
  let ahead = 0;
  const fake = new FakeConsent({ cookieDomain: 'shop.example', now: () => Date.now() + ahead * 1000 });
  fake.setGpcPolicy('support', 'ignore');
  await fake.grant({ principalId: 'u-1', purposes: ['newsletter', 'support'] });
  return {
    fake,
    cookie: await fake.cookieFor('u-1'),
    later: (seconds) => {
      ahead += seconds;
    },
  };
}

describe('may', () => {
  test.each<[string, (headers: Record<string, string>) => RequestLike]>([
    ['a Fetch request', (headers) => new Request('http://shop.example', { headers })],
    ['Headers', (headers) => new Headers(headers)],
    ['the headers of Node', (headers) => headers],
    [
      'a record with other letters and lists',
      (headers) => ({ COOKIE: [headers['cookie'] ?? ''], 'Sec-Gpc': headers['sec-gpc'] }),
    ],
  ])('reads %s', async (_name, requestOf) => {
    const { fake, cookie } = await visited();
    expect((await fake.may(requestOf({ cookie }), PURPOSES)).purposes).toEqual(['newsletter']);
    const underGpc = requestOf({ cookie, 'sec-gpc': '1' });
    expect((await fake.may(underGpc, ['newsletter', 'support'])).purposes).toEqual(['support']);
  });

  test('reads the request of a server of Node', async () => {
    const { fake, cookie } = await visited();
    const server = createServer((incoming, response) => {
      void fake.may(incoming, PURPOSES).then((may) => {
        response.end(`${may.allows('newsletter')} ${may.allows('ads')} ${may.allows('other')}`);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const outgoing = sendRequest({ port, host: '127.0.0.1', headers: { cookie: ['a=b', cookie] } }).end();
    const [response] = (await once(outgoing, 'response')) as [AsyncIterable<Buffer>];
    let text = '';
    for await (const chunk of response) text += chunk.toString();
    server.close();
    expect(text).toBe('true false false');
  });

  test('refuses what is no request', async () => {
    const { fake } = await visited();
    for (const request of [undefined, null, 'cookie', { headers: undefined }])
      await expect(fake.may(request as never, PURPOSES)).rejects.toMatchObject({ kind: 'invalid-request' });
  });

  test('is cancelled by its signal', async () => {
    const client = new ConsentClient({
      url: 'http://127.0.0.1:1',
      key: 'gpd_sk_x',
      fetch: (_url, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
        }),
    });
    const { cookie } = await visited();
    const controller = new AbortController();
    const pending = client.may({ cookie }, PURPOSES, { signal: controller.signal });
    const reason = new Error('no longer wanted');
    controller.abort(reason);
    await expect(pending).rejects.toBe(reason);
    await expect(client.readState(cookie, { signal: controller.signal })).rejects.toBe(reason);
    await expect(client.may({ cookie }, PURPOSES, { timeoutMs: 0 })).rejects.toMatchObject({
      kind: 'config',
    });
  });
});

describe('the fake', () => {
  test('renews a cookie as the server does', async () => {
    const { fake, cookie, later } = await visited();
    expect(await fake.readState(cookie)).toMatchObject({ purposes: ['newsletter', 'support'], seq: 2 });
    expect(await fake.currentState(cookie)).toMatchObject({
      purposes: ['newsletter', 'support'],
      setCookie: null,
    });
    await fake.withdraw({ principalId: 'u-1', purposes: ['newsletter'] });
    // The cookie itself says so for five minutes: the banner replaces it at once.
    expect((await fake.may({ cookie }, PURPOSES)).purposes).toEqual(['newsletter']);
    expect((await fake.may({ cookie }, PURPOSES, { principalId: 'u-1' })).purposes).toEqual([]);
    later(300);
    expect(await fake.readState(cookie)).toBeNull();
    const { purposes, seq, setCookie } = await fake.currentState(cookie);
    expect({ purposes, seq }).toEqual({ purposes: ['support'], seq: 3 });
    expect(setCookie).toMatch(/^gpd_consent=[\w-]+\.[\w-]+\.[\w-]+; Path=\/; .*; Domain=shop\.example$/);
    const renewed = setCookie?.split(';')[0];
    expect(await fake.readState(renewed)).toMatchObject({ purposes: ['support'], seq: 3 });
  });

  test('is as strict as the client', async () => {
    const { fake, cookie, later } = await visited();
    const other = await visited();
    expect(await other.fake.readState(cookie)).toBeNull();
    expect(await fake.readState(cookie.slice(0, -2))).toBeNull();
    expect(await fake.readState(`${cookie}; ${cookie}`)).toBeNull();
    later(-120);
    expect(await fake.readState(cookie)).toBeNull();
  });

  test('fails as a server that is gone', async () => {
    const { fake, cookie, later } = await visited();
    fake.setUnavailable(true);
    expect(await fake.readState(cookie)).toBeNull();
    expect((await fake.may({ cookie }, PURPOSES)).purposes).toEqual([]);
    fake.setUnavailable(false);
    later(5);
    expect((await fake.may({ cookie }, PURPOSES)).purposes).toEqual(['newsletter']);
    fake.setUnavailable(true);
    expect((await fake.may({ cookie }, PURPOSES)).purposes).toEqual(['newsletter']);
    later(300);
    expect(await fake.may({ cookie }, PURPOSES)).toMatchObject({ purposes: [], setCookie: null });
    const strict = new FakeConsent({ onUnavailable: 'error' });
    strict.setUnavailable(true);
    await expect(strict.currentState(await strict.cookieFor('u-1'))).rejects.toMatchObject({
      kind: 'network',
    });
    expect(await strict.readState(await strict.cookieFor('u-1'))).toBeNull();
  });
});
