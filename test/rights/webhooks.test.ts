import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KID, REASON } from '../support/constants.ts';
import { type Rights, startRights } from './support/rights.ts';

/** Everybody who acts on a decision is told that it is contested, and what came of it. */

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
  rights = await startRights();
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request.headers;
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
      const expected = createHmac('sha256', key)
        .update(`${String(id)}.${String(at)}.${body}`)
        .digest('base64');
      if (signature !== `v1,${expected}`) unsigned.push(body);
      deliveries.push(JSON.parse(body) as Delivery);
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => {
    receiver.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  const webhook = await rights.gpd.json<{ secret: string }>(['webhooks', 'add', KID, url, '--allow-private']);
  secret = webhook.secret;
});
afterAll(async () => {
  receiver.close();
  await rights.stop();
});

const findDelivery = (type: string, requestId: string): Delivery | undefined =>
  deliveries.find((delivery) => delivery.type === type && delivery.data['requestId'] === requestId);

it('tells of the filing and of the outcome with its reason, signed', async () => {
  await expect
    .poll(
      async () => {
        await rights.visit();
        return deliveries.some(({ type }) => type === 'decision.recorded');
      },
      { timeout: 10_000, interval: 300 },
    )
    .toBe(true);
  const visit = await rights.visit({ bot: true });
  const subject = await rights.as({ gpd_role: 'subject', gpd_visitor: visit.visitorId });
  const filed = await rights.call(
    '/privacy/contest',
    { requestId: visit.requestId, statement: 'me' },
    subject,
  );
  const { contestId } = filed.json() as { contestId: string };
  await expect.poll(() => findDelivery('contest.filed', visit.requestId)).toBeDefined();
  expect(findDelivery('contest.filed', visit.requestId)?.data).toMatchObject({
    contestId,
    restricted: true,
    status: 'open',
  });
  const reviewer = await rights.as({ gpd_role: 'reviewer', sub: 'rita' });
  await rights.call(
    '/privacy/contest/resolve',
    { contestId, outcome: 'overturned', reason: REASON },
    reviewer,
  );
  await expect.poll(() => findDelivery('contest.resolved', visit.requestId)).toBeDefined();
  expect(findDelivery('contest.resolved', visit.requestId)?.data).toMatchObject({
    contestId,
    outcome: 'overturned',
    reason: REASON,
    restricted: false,
  });
  expect(unsigned).toEqual([]);
});
