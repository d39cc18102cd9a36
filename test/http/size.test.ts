import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectCore, expectError, INGEST, post, REQUEST_ID } from '../support/expect.ts';
import { ask, JSON_TYPE, lastReply, openWire, type RawReply } from '../support/http.ts';
import { browserHeaders } from '../support/samples.ts';
import { createBundle } from '../support/seal.ts';
import { type Gpd, type SealTarget, startGpd } from '../support/server.ts';

const LIMIT = 32_768;

let gpd: Gpd;
let acme: SealTarget;
beforeAll(async () => {
  gpd = await startGpd();
  acme = gpd.targets[0]!;
});
afterAll(() => gpd.stop());

/** A good bundle in a body of exactly `size` bytes; white space after a JSON value means nothing. */
function bodyOf(size: number): string {
  return JSON.stringify(createBundle(acme)).padEnd(size, ' ');
}

/** A bundle whose ciphertext itself fills the body, up to the few bytes that base64 cannot hit. */
function fullBundle(): string {
  const pad = (length: number): string =>
    JSON.stringify(createBundle(acme, { signals: { collector: '1', padding: 'x'.repeat(length) } }));
  const over = pad(20_000).length - LIMIT;
  return pad(20_000 - Math.ceil((over * 3) / 4) - 3).padEnd(LIMIT, ' ');
}

function head(...lines: readonly string[]): string {
  const fixed = [`POST ${INGEST} HTTP/1.1`, 'Host: gpd.test', 'Content-Type: application/json'];
  return `${[...fixed, ...lines].join('\r\n')}\r\n\r\n`;
}

function expectTooLarge(reply: RawReply): void {
  expect(reply.status).toBe(413);
  expect(JSON.parse(reply.body)).toMatchObject({ error: 'payload-too-large' });
  expect(reply.headers['connection']).toBe('close');
  expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  expect(reply.headers).not.toHaveProperty('set-cookie');
}

describe('the size of a body', () => {
  it('32,768 bytes are accepted, 32,769 are not', async () => {
    expectCore(await post(gpd.url, bodyOf(LIMIT)), 'ok');
    expectCore(await post(gpd.url, fullBundle()), 'ok');
    expectError(await post(gpd.url, bodyOf(LIMIT + 1)), 'payload-too-large');
  });

  it('counts bytes, not characters', async () => {
    expectError(await post(gpd.url, 'ß'.repeat(LIMIT / 2)), 'malformed-sealed-bundle');
    expectError(await post(gpd.url, `${'ß'.repeat(LIMIT / 2)} `), 'payload-too-large');
  });

  it('holds for a body whose length nobody said', async () => {
    const chunked = (body: string) =>
      ask(gpd.url, INGEST, {
        method: 'POST',
        headers: { ...JSON_TYPE, ...browserHeaders() },
        body,
        chunked: true,
      });
    expectCore(await chunked(bodyOf(LIMIT)), 'ok');
    const reply = await chunked(bodyOf(LIMIT + 1));
    expectError(reply, 'payload-too-large');
    expect(reply.headers['connection']).toBe('close');
  });
});

describe('Expect: 100-continue', () => {
  it('is granted for a body that may come', async () => {
    const body = bodyOf(LIMIT);
    const wire = await openWire(gpd.port);
    wire.send(head(`Content-Length: ${LIMIT}`, 'Expect: 100-continue', 'Connection: close'));
    expect(await wire.until(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 /);
    wire.send(body);
    expect(lastReply((await wire.closed).text).status).toBe(200);
  });

  it('is answered 413 for one that may not', async () => {
    const wire = await openWire(gpd.port);
    wire.send(head(`Content-Length: ${LIMIT + 1}`, 'Expect: 100-continue'));
    const { text } = await wire.closed;
    expect(text).not.toContain(' 100 ');
    expectTooLarge(lastReply(text));
  });
});

describe('a request that is no HTTP', () => {
  it.each([
    ['garbage', 'GARBAGE\r\n\r\n'],
    ['both lengths', head('Content-Length: 2', 'Transfer-Encoding: chunked')],
    ['two lengths', head('Content-Length: 2', 'Content-Length: 3')],
    ['a bad chunk', `${head('Transfer-Encoding: chunked')}zz\r\n`],
    ['a folded header', head('X-A: b', ' c')],
    ['no Host', `POST ${INGEST} HTTP/1.1\r\nContent-Length: 0\r\n\r\n`],
    ['a header of 20,000 bytes', head(`X-A: ${'a'.repeat(20_000)}`), 431],
    ['a header of 70,000 bytes', head(`X-A: ${'a'.repeat(70_000)}`), 431],
  ])('is told so in the common shape, with a request id: %s', async (_name, bytes, status = 400) => {
    const wire = await openWire(gpd.port);
    wire.send(bytes);
    const reply = lastReply((await wire.closed).text);
    expect(reply.status).toBe(status);
    expect(JSON.parse(reply.body)).toMatchObject({ error: expect.stringMatching(/^[a-z-]+$/) });
    expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  });

  it('an expectation that nobody can meet has the common shape too', async () => {
    const wire = await openWire(gpd.port);
    wire.send(`${head('Content-Length: 2', 'Expect: the-impossible', 'Connection: close')}{}`);
    const reply = lastReply((await wire.closed).text);
    expect([400, 417]).toContain(reply.status);
    expect(JSON.parse(reply.body)).toHaveProperty('error');
    expect(reply.headers['x-request-id']).toMatch(REQUEST_ID);
  });
});
