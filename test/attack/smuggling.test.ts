import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startProcess } from '../support/process.ts';
import { started } from '../support/started.ts';
import { badBodies, badHeads, HOST, post, SMUGGLED } from './support/bad-requests.ts';
import { expectNoneLogged } from './support/faults.ts';
import { type Exchanged, exchange, pause } from './support/raw.ts';

/** Bytes that two readers could read in two ways: at most one answer a request, in order, then the end. */

const gpd = started(() => startProcess());
expectNoneLogged(/"event":"fault"|DeprecationWarning|^\(node/m, () => gpd.logs());

const statuses = ({ answers }: Exchanged): number[] => answers.map(({ status }) => status);

/** RFC 6585 section 5 has a status of its own for a head that is too large. */
const TOO_LARGE = new Set(['a header of 20,000 bytes', '2,000 headers']);

/** One refusal in the common shape, nothing behind it, and the connection is over. */
function expectOneRefusal(found: Exchanged, name = ''): void {
  const [status, error] = TOO_LARGE.has(name) ? [431, 'headers-too-large'] : [400, 'invalid-request'];
  expect({ statuses: statuses(found), closed: found.closed, rest: found.rest }).toEqual({
    statuses: [status],
    closed: true,
    rest: '',
  });
  const [answer] = found.answers;
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error });
  expect(answer?.headers.get('x-request-id')).toMatch(/^req_/);
}

/** The hot lanes and Express read bodies each in its own way. */
const ROUTES = ['/_fp/i/v1', '/v1/consent/can-process', '/v1/consent/grant', '/me', '/privacy/dsar'];

/** A refusal of a whole head may come first: without a credential /v1 and /privacy answer 401. */
function expectOneAnswer(found: Exchanged, allowed: readonly number[]): void {
  expect({ answers: found.answers.length, closed: found.closed, rest: found.rest }).toEqual({
    answers: 1,
    closed: true,
    rest: '',
  });
  expect(allowed).toContain(found.answers[0]?.status);
  expect(JSON.parse(found.answers[0]?.body ?? '')).toHaveProperty('error');
}

async function each(run: (path: string) => Promise<void>): Promise<void> {
  await Promise.all(ROUTES.map(run));
}
const nth = (
  cases: (path: string) => readonly (readonly [string, string])[],
  i: number,
  path: string,
): string => cases(path)[i]?.[1] ?? '';

describe.concurrent('every way to read a body', () => {
  it.each(badHeads('').map(([name], i) => [name, i] as const))(
    '%s: one refusal, and what follows is no request',
    (name, i) =>
      each(async (path) =>
        expectOneRefusal(await exchange(gpd.port, [nth(badHeads, i, path) + SMUGGLED], 'closes'), name),
      ),
  );

  it.each(badBodies('').map(([name], i) => [name, i] as const))('%s: one answer, then the end', (_name, i) =>
    each(async (path) => {
      const found = await exchange(gpd.port, [nth(badBodies, i, path) + SMUGGLED], 'closes');
      expectOneAnswer(found, [400, 401]);
    }),
  );

  it('a body that goes wrong after an early answer gets no second one', () =>
    each(async (path) => {
      // Without a credential /v1 and /privacy answer before the body is there.
      const found = await exchange(
        gpd.port,
        [post(path, 'Transfer-Encoding: chunked'), `zz\r\n${SMUGGLED}`],
        'closes',
      );
      expect(found.answers).toHaveLength(1);
      expect(found).toMatchObject({ closed: true, rest: '' });
    }));

  it('garbage behind a whole request does not take the place of its answer', () =>
    each(async (path) => {
      const found = await exchange(
        gpd.port,
        [`${post(path, 'Content-Length: 2')}{}GARBAGE\r\n\r\n`],
        'closes',
      );
      expect(statuses(found)).toHaveLength(2);
      expect(statuses(found)[0]).not.toBe(404);
      expect(found.answers[0]?.headers.get('connection')).not.toBe('close');
      expect(statuses(found)[1]).toBe(400);
      expect(found).toMatchObject({ closed: true, rest: '' });
    }));
});

describe('a pipeline', () => {
  it('is answered request by request, in its order', async () => {
    const one = ['/healthz', '/nothing', '/healthz', '/v1/ledger/vkey', '/healthz'];
    const text = one.map((path) => `GET ${path} HTTP/1.1\r\n${HOST}\r\n`).join('');
    const found = await exchange(gpd.port, [text.repeat(3)], 15);
    expect(statuses(found)).toEqual(Array.from({ length: 3 }, () => [200, 404, 200, 401, 200]).flat());
    expect(found.rest).toBe('');
  });

  it('with a bad body at its end is answered up to there, in order', async () => {
    const bad = `${post('/me', 'Transfer-Encoding: chunked')}zz\r\n`;
    const found = await exchange(gpd.port, [SMUGGLED + SMUGGLED + bad + SMUGGLED], 'closes');
    expect(statuses(found)).toEqual([200, 200, 400]);
    expect(found).toMatchObject({ closed: true, rest: '' });
  });

  it('a body that looks like a request is a body', async () => {
    const found = await exchange(gpd.port, [
      `${post('/me', `Content-Length: ${SMUGGLED.length}`)}${SMUGGLED}`,
    ]);
    expect(statuses(found)).toEqual([400]);
    expect(JSON.parse(found.answers[0]?.body ?? '')).toMatchObject({ error: 'invalid-json' });
  });
});

describe.concurrent('a request target', () => {
  it.each([
    'http://gpd.test/healthz',
    'HTTP://gpd.test/healthz',
    'https://other.test:99999/healthz?x=http://y',
    'http://a:b:c/healthz',
    'http://[::1]:abc/healthz',
    'http://[/healthz',
    'http://xn--a/healthz',
    'http://user:pass@gpd.test/healthz',
  ])('%s is its path', async (target) => {
    const found = await exchange(gpd.port, [`GET ${target} HTTP/1.1\r\n${HOST}\r\n`]);
    expect(statuses(found)).toEqual([200]);
    expect(found.answers[0]?.body).toContain('"ok"');
  });

  it.each([
    'http://',
    'http:///healthz',
    'ftp://gpd.test/healthz',
    'gopher://x/healthz',
    'healthz',
    'http:/healthz',
  ])('%s is none', async (target) => {
    expectOneRefusal(await exchange(gpd.port, [`GET ${target} HTTP/1.1\r\n${HOST}\r\n`], 'closes'));
  });

  // An absolute form without a path asks for the root, which says what this server is.
  it.each(['http://gpd.test', 'http://[', 'http://a:b:c?x'])('%s is the root', async (target) => {
    const found = await exchange(gpd.port, [`GET ${target} HTTP/1.1\r\n${HOST}\r\n`]);
    expect(found.answers.map(({ status }) => status)).toEqual([200]);
  });

  it.each(['*', '/%', '/%00', '//gpd.test/healthz', '/\\healthz', '/#a'])(
    '%s leads nowhere, in the common shape',
    async (target) => {
      await Promise.all(
        ['GET', 'OPTIONS', 'POST'].map(async (method) => {
          const head = `${method} ${target} HTTP/1.1\r\n${HOST}Content-Length: 0\r\n\r\n`;
          const found = await exchange(gpd.port, [head]);
          expect(found.answers).toHaveLength(1);
          expect([400, 404, 405]).toContain(found.answers[0]?.status);
          expect(JSON.parse(found.answers[0]?.body ?? '')).toHaveProperty('error');
        }),
      );
    },
  );

  it('that keeps its own half open after a refusal is cut off', async () => {
    const socket = connect({ port: gpd.port, host: '127.0.0.1', allowHalfOpen: true });
    let failed = false;
    socket.on('error', () => {
      failed = true;
    });
    socket.resume().write('GARBAGE\r\n\r\n');
    const startedAt = performance.now();
    // A byte to a peer that is gone comes back as a reset.
    while (!failed && performance.now() - startedAt < 60_000) {
      await pause(300);
      if (!socket.destroyed) socket.write('x');
    }
    socket.destroy();
    expect(failed).toBe(true);
  });
});

it('a sender that leaves in the middle of a body is nobody’s fault', async () => {
  await each(async (path) => {
    const socket = connect({ port: gpd.port, host: '127.0.0.1' });
    await new Promise<void>((resolve) => {
      socket.write(`${post(path, 'Content-Length: 90')}{"a":`, () => resolve());
    });
    await pause(100);
    socket.resetAndDestroy();
  });
});
