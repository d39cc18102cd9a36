import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { send } from '../../src/http/server.ts';
import { Refusal } from '../../src/lib/errors.ts';
import { type LedgerDeps, ledgerRoutes } from '../../src/log/routes.ts';
import { ROUTES } from '../../src/schema/routes.ts';

/** An open log is read whole by one request of a client at a time. */

const CLIENT = 'x-client';
function createConcurrencyLimit() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/** Ends the exports of acme. */
let gate = createConcurrencyLimit();

const deps = {
  isPublic: () => true,
  async *exportLines(kid: string) {
    yield `first of ${kid}\n`;
    if (kid === 'acme') await gate.opened;
    yield 'last\n';
  },
} as unknown as LedgerDeps;

const route = ledgerRoutes(deps).find(({ row }) => row === ROUTES.exportPublicLog);
const app = express();
app.get('/:kid', async (request, response) => {
  const call = { params: { kid: request.params.kid }, limitKey: request.headers[CLIENT] };
  try {
    if (route && 'answer' in route) await send(response, await route.answer(call as never));
  } catch (error) {
    if (error instanceof Refusal) response.status(error.status).set(error.headers).end();
    else response.destroy();
  }
});
const server = createServer(app);
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
afterAll(() => void server.close());

/** Once its head is there; the export goes on. */
async function ask(client: string, kid = 'acme', method = 'GET'): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const options = { port, path: `/${kid}`, method, headers: { [CLIENT]: client }, agent: false } as const;
  const [reply] = (await once(get(options), 'response')) as [IncomingMessage];
  reply.on('error', () => {});
  return reply;
}

async function read(reply: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of reply) text += String(part);
  return text;
}

it('a second one of the same client waits its turn, and nobody else’s does', async () => {
  const first = await ask('a');
  const second = await ask('a', 'beta');
  expect([first.statusCode, second.statusCode, second.headers['retry-after']]).toEqual([200, 429, '10']);
  const other = await ask('b');
  expect(other.statusCode).toBe(200);
  gate.open();
  expect(await read(first)).toBe('first of acme\nlast\n');
  await read(other);
  const after = await ask('a', 'beta');
  expect([after.statusCode, await read(after)]).toEqual([200, 'first of beta\nlast\n']);
});

it('who leaves before the end may come back', async () => {
  gate = createConcurrencyLimit();
  const abandoned = await ask('a');
  expect((await ask('a')).statusCode).toBe(429);
  abandoned.destroy();
  await expect.poll(async () => (await ask('a', 'acme', 'HEAD')).statusCode).toBe(200);
  const again = await ask('a');
  expect(again.statusCode).toBe(200);
  gate.open();
  await read(again);
});
