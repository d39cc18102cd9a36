import { createHmac } from 'node:crypto';
import { expect, vi } from 'vitest';
import { KID } from '../../support/constants.ts';
import { SEEN_WITHIN } from '../../support/expect.ts';
import { receive } from '../../support/serve.ts';
import type { Rights } from './rights.ts';

interface Delivery {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Intervals in milliseconds of a server whose webhooks do not wait. */
export const AT_ONCE = { intervals: { webhooks: 20, poll: 20 } } as const;

/** A webhook of the tenant that takes everything, once the server has sent it the first event. */
export async function startDeliveries(rights: Rights) {
  const deliveries: Delivery[] = [];
  const unsigned: string[] = [];
  let secret = '';
  const { url, stop } = await receive(({ headers, body }, response) => {
    const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
    const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
    const signature = createHmac('sha256', key).update(signed).digest('base64');
    if (headers['webhook-signature'] !== `v1,${signature}`) unsigned.push(body);
    deliveries.push(JSON.parse(body) as Delivery);
    response.writeHead(204).end();
  });
  const words = ['webhooks', 'add', KID, `${url}/`, '--allow-private'];
  ({ secret } = await rights.gpd.json<{ secret: string }>(words));
  await vi.waitFor(async () => {
    await rights.visit();
    expect(deliveries.map(({ type }) => type)).toContain('decision.recorded');
  }, SEEN_WITHIN);
  return { deliveries, unsigned, stop };
}
