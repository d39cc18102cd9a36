import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Dsar } from '../../../src/rights/dsar/service.ts';
import { createSendExport } from '../../../src/rights/export-routes.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { ask, JSON_TYPE, type Reply } from '../../support/http.ts';
import { apiKey, type Rights, startRights, type Visit } from '../support/rights.ts';

/** A person's export reads a whole trail: one at a time a client, two at a time a tenant. */

let rights: Rights;
let secret: string;
let visit: Visit;
/** About 20 MB as JSON: more than a socket buffers, so that an export lasts until its client has read it. */
const DECISIONS = 6000;

beforeAll(async () => {
  rights = await startRights({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } });
  secret = await apiKey(rights, 'secret');
  visit = await rights.visit();
  await rights.sql(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${DECISIONS})
     INSERT INTO decisions SELECT kid, 'req_' || i, decided_at, class, durable, verdict, salt, commitment
     FROM decisions, n WHERE request_id = '${visit.requestId}'`,
  );
});
afterAll(() => rights.stop());

interface Asked {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
const browser = { origin: ORIGIN, cookie: '' };
const byToken = (client: string, of = visit): Asked => ({
  path: '/me',
  headers: { ...JSON_TYPE, ...browser, cookie: `gp_session=${of.session}`, 'x-forwarded-for': client },
  body: JSON.stringify({ token: of.token, action: 'export' }),
});
const byForm = (client: string): Asked => ({
  path: '/my-data',
  headers: {
    ...byToken(client).headers,
    'content-type': 'application/x-www-form-urlencoded',
  },
  body: new URLSearchParams({ token: visit.token, action: 'export' }).toString(),
});
const byAccount = async (client: string): Promise<Asked> => ({
  path: '/privacy/dsar',
  headers: {
    ...JSON_TYPE,
    authorization: `Bearer ${await rights.as({ gpd_role: 'subject', sub: 'anna', gpd_visitor: visit.visitorId })}`,
    'x-forwarded-for': client,
  },
  body: '{}',
});

const send = ({ path, headers, body }: Asked): Promise<Reply> =>
  ask(rights.gpd.url, path, { method: 'POST', headers, body });

/** Once its head is there. Nothing of the body is read, so that the export goes on. */
async function hold({ path, headers, body }: Asked): Promise<IncomingMessage> {
  const { port } = rights.gpd;
  const pending = request({ agent: false, host: '127.0.0.1', port, path, method: 'POST', headers });
  pending.end(body);
  const [reply] = (await once(pending, 'response')) as [IncomingMessage];
  reply.on('error', () => {});
  expect(reply.statusCode).toBe(200);
  return reply;
}

async function read(reply: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of reply) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

function expectWait(reply: Reply): void {
  expectError(reply, 'rate-limited');
  expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
}

const check = (): Promise<Reply> =>
  rights.call('/v1/consent/can-process', { principalId: 'anna', purpose: 'device-identification' }, secret);

describe('exports of a person', () => {
  it('are one at a time a client, by whatever route, while checks and visits are answered', async () => {
    const first = await hold(byToken('198.51.100.1'));
    for (const again of [byToken('198.51.100.1'), byForm('198.51.100.1'), await byAccount('198.51.100.1')])
      expectWait(await send(again));
    expect((await check()).status).toBe(200);
    expect((await rights.visit()).answer.reason).toBe('ok');
    const { decisions } = JSON.parse(await read(first)) as { decisions: readonly unknown[] };
    expect(decisions).toHaveLength(DECISIONS + 1);
    expect((await send(byToken('198.51.100.1'))).status).toBe(200);
  });

  it('are two at a time a tenant, and another tenant’s do not count', async () => {
    const openExports = [await hold(byToken('198.51.100.1')), await hold(byForm('198.51.100.2'))];
    expectWait(await send(await byAccount('198.51.100.3')));
    const theirs = await rights.visit({ target: rights.other });
    expect((await send(byToken('198.51.100.4', theirs))).status).toBe(200);
    // The token is looked at first: who has none is told so, and holds no place.
    expectError(await send({ ...byToken('198.51.100.3'), body: '{"action":"export"}' }), 'unauthenticated');
    openExports[0]?.destroy();
    await expect.poll(async () => (await hold(byToken('198.51.100.3'))).destroy().destroyed).toBe(true);
    openExports[1]?.destroy();
  });

  it('leave no audit row where they are refused', async () => {
    const rows = async () =>
      (await rights.sql(`SELECT 1 FROM audit_log WHERE kid = '${KID}' AND action = 'dsar.exported'`)).length;
    const first = await hold(byToken('198.51.100.5'));
    const before = await rows();
    expectWait(await send(byToken('198.51.100.5')));
    expect(await rows()).toBe(before);
    first.destroy();
  });
});

it('an export that takes too long ends, and its place is free', async () => {
  const sendExport = createSendExport(1);
  const endless = {
    head: {},
    async *decisions() {
      for (;;) yield [{ some: 'decision' }];
    },
  } as unknown as Dsar;
  const ends: unknown[] = [];
  const app = express();
  app.get('/', (_request, response) =>
    sendExport(response, { kid: KID, client: 'one' }, async () => endless).catch((error: unknown) => {
      ends.push(error);
    }),
  );
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (let n = 0; n < 2; n++) await expect(ask(url, '/')).rejects.toThrow('aborted');
  expect(ends).toMatchObject(Array(2).fill({ code: 'ERR_STREAM_PREMATURE_CLOSE' }));
  server.close();
});
