import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { HOUR } from '../../src/lib/clock.ts';
import { anchorAudit } from '../../src/log/anchors-store.ts';
import { KID, REASON } from '../support/constants.ts';
import { SEEN_WITHIN } from '../support/expect.ts';
import { sealProblems } from '../support/verify.ts';
import { open } from './support/eraser.ts';
import { type Rights, startRights } from './support/rights.ts';

/** Every action leaves one row, sealed into the tenant's log, and whoever acts on a decision is told of its contest. */

interface Delivery {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

let rights: Rights;
let receiver: Server;
let secret: string;
const deliveries: Delivery[] = [];
const unsigned: string[] = [];

beforeAll(async () => {
  rights = await startRights({ app: { intervals: { webhooks: 20, poll: 20 } } });
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers;
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
      const signed = createHmac('sha256', key).update(`${String(id)}.${String(at)}.${body}`);
      if (signature !== `v1,${signed.digest('base64')}`) unsigned.push(body);
      deliveries.push(JSON.parse(body) as Delivery);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const webhook = await rights.gpd.json<{ secret: string }>(['webhooks', 'add', KID, url, '--allow-private']);
  secret = webhook.secret;
  await vi.waitFor(async () => {
    await rights.visit();
    expect(deliveries.map(({ type }) => type)).toContain('decision.recorded');
  }, SEEN_WITHIN);
});
afterAll(async () => {
  receiver.close();
  await rights.stop();
});

it('each action has a row by keyed reference; a changed or a missing row is noticed; a webhook is signed', async () => {
  const visit = await rights.visit({ bot: true });
  const { requestId, visitorId } = visit;
  const dataOf = (type: string) =>
    deliveries.find((delivery) => delivery.type === type && delivery.data['requestId'] === requestId)?.data;
  const subject = await rights.as({ gpd_role: 'subject', sub: 'anna@example.org', gpd_visitor: visitorId });
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita@example.org' });
  const filed = await rights.call('/privacy/contest', { requestId, statement: 'secret words' }, subject);
  const { contestId } = filed.json() as { contestId: string };
  await expect.poll(() => dataOf('contest.filed')).toMatchObject({ contestId, restricted: true });
  await rights.call('/privacy/contest', { requestId }, subject);
  const ruling = { contestId, outcome: 'upheld', reason: REASON };
  for (let i = 0; i < 2; i += 1) await rights.call('/privacy/contest/resolve', ruling, reviewer);
  await expect.poll(() => dataOf('contest.resolved')).toMatchObject({ ...ruling, restricted: false });
  expect(unsigned).toEqual([]);
  await rights.call('/privacy/dsar', {}, subject);
  await rights.call('/privacy/erase', {}, subject);
  const rows = await rights.sql('SELECT role, actor, action, object, detail FROM audit_log ORDER BY seq');
  expect(rows.map((row) => `${String(row['role'])} ${String(row['action'])}`)).toEqual([
    'operator webhook.added',
    'subject contest.filed',
    'reviewer contest.resolved',
    'subject dsar.exported',
    'subject subject.erased',
  ]);
  const text = JSON.stringify(rows);
  for (const private_ of ['anna', 'rita', 'secret words', REASON, requestId, visitorId, contestId])
    expect(text).not.toContain(private_);
  expect(new Set(rows.filter((row) => row['role'] === 'subject').map((row) => row['actor'])).size).toBe(1);

  const { database, tenant } = await open(rights.gpd.dataDir);
  try {
    expect(await anchorAudit(database, KID, Date.now() + 2 * HOUR, tenant.stateMac)).toBe(1);
    expect(await sealProblems(database, KID)).toEqual([]);
    expect(await rights.gpd.json(['consent', 'verify', KID])).toMatchObject({ ok: true });
    await rights.sql("UPDATE audit_log SET role = 'dpo' WHERE action = 'contest.resolved'");
    expect(await sealProblems(database, KID)).toEqual([expect.stringMatching(/^audit row \d+ was changed$/)]);
    const broken = await rights.gpd.cli(['consent', 'verify', KID, '--json']);
    expect([broken.code, (JSON.parse(broken.stdout) as { ok: boolean }).ok]).toEqual([1, false]);
    await rights.sql("DELETE FROM audit_log WHERE action = 'contest.resolved'");
    expect(await sealProblems(database, KID)).toEqual([
      expect.stringMatching(/^1 of 5 audit rows of .* are missing$/),
    ]);
  } finally {
    await database.close();
  }
});
