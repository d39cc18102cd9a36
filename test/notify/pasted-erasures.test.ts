import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ConsentClient } from '../../sdk/node/src/index.ts';
import {
  blocksOf,
  commandsOf,
  filesOf,
  type PastedShop,
  pasteShop,
  readDocs,
} from '../browser/support/pasted.ts';
import { post } from '../support/expect.ts';
import { createBundle } from '../support/seal.ts';

/** docs/when-somebody-is-erased.md, pasted into the shop of docs/after-login.md. */

const PAGE = 'when-somebody-is-erased.md';
let shop: PastedShop;

beforeAll(async () => {
  shop = await pasteShop();
  for (const [name, code] of filesOf(PAGE)) writeFileSync(join(shop.folder, name), code);
  const [, lines = ''] = blocksOf(readDocs(PAGE), 'js');
  const server = filesOf('after-login.md').get('server.mjs') ?? '';
  const changed = server.replace('app.use(login);', `app.use(login);\n${lines}`);
  expect(changed).not.toBe(server);
  writeFileSync(join(shop.folder, 'server.mjs'), changed);
  const [add = ''] = blocksOf(readDocs(PAGE), 'sh');
  const [words = []] = commandsOf(add);
  const { secret } = await shop.command(words);
  await shop.start({ WEBHOOK_SECRET: String(secret) });
});
afterAll(() => shop?.stop());

const copies = async (): Promise<unknown> => (await fetch(`${shop.url}/copies`)).json();

async function send(path: string, body: string, type: string): Promise<number> {
  const headers = { 'content-type': type, cookie: 'customer=alice' };
  return (await fetch(`${shop.url}${path}`, { method: 'POST', headers, body })).status;
}

it('deletes the rows of an erased person, and of an erased decision, by their references alone', async () => {
  const visit = await post(shop.gpd.url, createBundle(shop.target, { context: 'order-1' }), {
    origin: shop.url,
  });
  const { requestId } = visit.json() as { requestId: string };
  expect(await send('/subscribe', '{"email":"alice@shop.example"}', 'application/json')).toBe(201);
  const sendVisit = (order: string): Promise<number> =>
    send('/checkout/device', JSON.stringify({ order, requestId }), 'application/json');
  expect(await sendVisit('order-2')).toBe(409);
  expect(await sendVisit('order-1')).toBe(201);
  expect(await copies()).toBe(2);
  const consent = new ConsentClient({ url: shop.gpd.url, key: shop.secret });
  await consent.grant({ principalId: 'alice', purposes: ['newsletter'] });

  const erase = ['gpd', 'erase', '--tenant', 'shop', '--yes'];
  await shop.command([...erase, '--request', requestId]);
  await expect.poll(copies).toBe(1);
  expect((await fetch(`${shop.url}/hooks`, { method: 'POST', body: '{}' })).status).toBe(400);
  expect(await copies()).toBe(1);
  await shop.command([...erase, '--principal', 'alice']);
  await expect.poll(copies).toBe(0);
});
