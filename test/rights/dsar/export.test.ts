import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import express from 'express';
import { beforeAll, describe, expect, it } from 'vitest';
import { send as sendReply } from '../../../src/http/server.ts';
import { RULES } from '../../../src/ingest/verdict/classify.ts';
import type { Dsar } from '../../../src/rights/dsar/service.ts';
import { createExportPlaces, createSendExport } from '../../../src/rights/export-routes.ts';
import { KID, ORIGIN } from '../../support/constants.ts';
import { expectError } from '../../support/expect.ts';
import { ask, JSON_TYPE, type Reply } from '../../support/http.ts';
import { serve } from '../../support/serve.ts';
import { started } from '../../support/started.ts';
import { apiKey, startRights, type Visit } from '../support/rights.ts';

/** The export of a person explains each decision; few run at a time. */

const rights = started(() => startRights({ settings: { GPD_TRUSTED_PROXIES: '127.0.0.1' } }));
let secret: string;
let visit: Visit;
/** About 20 MB as JSON: more than a socket buffers, so that an export lasts until its client has read it. */
const DECISIONS = 6000;

beforeAll(async () => {
  secret = await apiKey(rights, 'secret');
  visit = await rights.visit();
  await rights.sql(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${DECISIONS})
     INSERT INTO decisions SELECT kid, 'req_' || i, decided_at, class, durable, verdict, salt, commitment
     FROM decisions, n WHERE request_id = '${visit.requestId}'`,
  );
});

interface Exported {
  readonly decisions: readonly {
    readonly rules: readonly { readonly id: string; readonly kind: string; readonly text: string }[];
    readonly whatWouldHaveChanged: { readonly text: string };
    readonly policyVersion: string;
    readonly howToContest: string;
  }[];
  readonly notice: Readonly<Record<string, string>>;
}

const subject = (visit: Visit, sub = 'anna'): Promise<string> =>
  rights.as({ gpd_role: 'subject', sub, gpd_visitor: visit.visitorId });

async function dsar(token: string): Promise<Exported> {
  const reply = await rights.call('/privacy/dsar', {}, token);
  expect({ status: reply.status, text: reply.text.slice(0, 200) }).toMatchObject({ status: 200 });
  return reply.json() as Exported;
}

describe('POST /privacy/dsar', () => {
  it('explains each decision by the rules that fired, in plain words, and says what would have changed it', async () => {
    const visit = await rights.visit({ bot: true });
    const { decisions } = await dsar(await subject(visit));
    expect(decisions).toHaveLength(1);
    const [decision] = decisions;
    const { requestId, visitorId, answer } = visit;
    const facts = {
      requestId,
      visitorId,
      suspectScore: answer.suspectScore,
      restricted: false,
      contestId: null,
    };
    expect(decision).toMatchObject({ ...facts, class: 'undeclared_automation' });
    expect(decision?.rules.length).toBeGreaterThan(0);
    for (const { id, kind, text } of decision?.rules ?? []) {
      expect(['A', 'T', 'M', 'W']).toContain(kind);
      expect(text).toBe(RULES.find((rule) => rule.id === id)?.text);
      expect(text.length).toBeGreaterThan(15);
    }
    expect(decision?.whatWouldHaveChanged.text).toMatch(/the result would have been/);
    expect(decision?.policyVersion).toMatch(/^20/);
    // Neither needs what this installation may lack: an account.
    expect(decision?.howToContest).toMatch(/POST \/me .*contest; with an account .*POST \/privacy\/contest/);
  });

  it('names where webhooks send notices, unless the settings say who receives data', async () => {
    const token = await subject(await rights.visit(), 'wanda');
    expect((await dsar(token)).notice['recipients']).toBe('The site has not said who else gets it.');
    const add = ['webhooks', 'add', KID, 'https://hooks.partner.example/x'];
    const { id } = await rights.gpd.json<{ id: string }>(add);
    const { notice } = await dsar(token);
    for (const name of ['recipients', 'transfers']) expect(notice[name]).toContain('hooks.partner.example');
    await rights.gpd.json(['webhooks', 'remove', KID, id, '--yes']);
  });

  it('explains an old verdict by what its rules counted as, whatever they count as today', async () => {
    const visit = await rights.visit();
    const rules = ['W1', 'W2'].map((id) => ({ id, weight: 0.15, kind: 'M' }));
    const change = { class: 'undeclared_automation', rules, policyVersion: '2025-01-01.1' };
    const [row] = await rights.sql(`SELECT verdict FROM decisions WHERE request_id = '${visit.requestId}'`);
    const verdict = { ...(JSON.parse(String(row?.['verdict'])) as object), ...change };
    await rights.sql(
      `UPDATE decisions SET verdict = '${JSON.stringify(verdict)}' WHERE request_id = '${visit.requestId}'`,
    );
    const { decisions } = await dsar(await subject(visit, 'olga'));
    const each = (over: object) => ['W1', 'W2'].map((id) => ({ id, ...over }));
    expect(decisions[0]).toMatchObject({
      class: 'undeclared_automation',
      rules: each({ kind: 'M' }),
      whatWouldHaveChanged: { decisive: each({ class: 'unknown' }), withoutAll: null },
    });
  });

  it('never tells the durable id, another person’s data or another tenant’s', async () => {
    const visit = await rights.visit();
    const other = await rights.visit();
    const text = JSON.stringify(await dsar(await subject(visit)));
    const [row] = await rights.sql(`SELECT durable FROM decisions WHERE request_id = '${visit.requestId}'`);
    for (const hidden of [String(row?.['durable']), other.requestId, '"durable"'])
      expect(text).not.toContain(hidden);
  });
});

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
  headers: { ...byToken(client).headers, 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams({ token: visit.token, action: 'export' }).toString(),
});
const byAccount = async (client: string): Promise<Asked> => ({
  path: '/privacy/dsar',
  headers: {
    ...JSON_TYPE,
    authorization: `Bearer ${await subject(visit)}`,
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

function expectWait(reply: Reply): void {
  expectError(reply, 'rate-limited');
  expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
}

const check = (): Promise<Reply> =>
  rights.call('/v1/consent/can-process', { principalId: 'anna', purpose: 'device-identification' }, secret);

describe('exports of a person', () => {
  it('are one at a time a client, by whatever route, while checks and visits are answered', async () => {
    const rows = () => rights.sql("SELECT seq FROM audit_log WHERE action = 'dsar.exported'");
    const first = await hold(byToken('198.51.100.1'));
    const before = await rows();
    for (const again of [byToken('198.51.100.1'), byForm('198.51.100.1'), await byAccount('198.51.100.1')])
      expectWait(await send(again));
    // A refusal leaves no audit row.
    expect(await rows()).toEqual(before);
    expect((await check()).status).toBe(200);
    expect((await rights.visit()).answer.reason).toBe('ok');
    const { decisions } = JSON.parse(Buffer.concat(await first.toArray()).toString()) as {
      decisions: readonly unknown[];
    };
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
});

it('an export that takes too long ends, and its place is free', async () => {
  const sendExport = createSendExport(createExportPlaces(), 1);
  const endless = {
    head: {},
    async *decisions() {
      for (;;) yield [{ some: 'decision' }];
    },
  } as unknown as Dsar;
  const ends: unknown[] = [];
  const app = express();
  app.get('/', (_request, response) =>
    sendExport({ kid: KID, client: 'one' }, async () => endless)
      .then((exported) => sendReply(response, exported))
      .catch((error: unknown) => {
        ends.push(error);
      }),
  );
  const { url, stop } = await serve(app);
  for (let n = 0; n < 2; n++) await expect(ask(url, '/')).rejects.toThrow('aborted');
  expect(ends).toMatchObject(Array(2).fill({ code: 'ERR_STREAM_PREMATURE_CLOSE' }));
  await stop();
});
