import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import type { Database } from '../../src/db/db.ts';
import { outboxContext, webhookSecretContext } from '../../src/keys/contexts.ts';
import { makeMasterKey } from '../../src/keys/master-key.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import { startDispatcher } from '../../src/webhooks/service.ts';
import { enqueue, type Webhook } from '../../src/webhooks/store.ts';
import { KID } from '../support/constants.ts';
import { NOW, seededRandom } from '../support/make.ts';
import { initGpd } from '../support/server.ts';

/** The dispatcher on a real database, with a receiver of its own. */

const random = seededRandom('webhooks');
const PAYLOAD_KEY = random(32);
const EVENT = 'consent.granted';

let receiver: Server;
let url: string;
let seen: number[];
beforeAll(async () => {
  receiver = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on('end', () => {
      seen.push((JSON.parse(body) as { seq: number }).seq);
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
});
afterAll(() => new Promise((resolve) => void receiver.close(resolve)));
beforeEach(() => {
  seen = [];
});

interface Place {
  readonly database: Database;
  readonly faults: unknown[];
  readonly deps: Parameters<typeof startDispatcher>[0];
  readonly advance: (ms: number) => void;
  readonly put: (sealed: string | null, requestId?: string) => Promise<void>;
}

async function withPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const { dataDir } = await initGpd();
  const { database, masterKey } = await openStore(
    loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} }),
  );
  let now = NOW;
  const faults: unknown[] = [];
  const webhook: Webhook = {
    kid: KID,
    id: 'w1',
    url,
    events: [EVENT],
    allowPrivate: true,
    wrappedSecret: masterKey.wrap(random(32), webhookSecretContext(KID, 'w1')),
    createdAt: NOW,
  };
  const deps = {
    database,
    masterKey: () => masterKey,
    clock: () => now,
    webhook: (_kid: string, id: string) => (id === 'w1' ? webhook : undefined),
    payloadKey: () => PAYLOAD_KEY,
    findDecision: () => Promise.resolve({}),
    random,
    onFault: (error: unknown) => faults.push(error),
  };
  const put: Place['put'] = (sealed, requestId) =>
    database.hotTransaction((tx) =>
      enqueue(tx, [
        {
          kid: KID,
          webhook: 'w1',
          event: EVENT,
          requestId: requestId ?? null,
          principal: null,
          sealed,
          at: NOW,
        },
      ]),
    );
  const place: Place = {
    database,
    faults,
    deps,
    put,
    advance: (ms) => {
      now += ms;
    },
  };
  await work(place);
  await database.close();
}

const sealed = (): string =>
  makeMasterKey(PAYLOAD_KEY, random).wrap(Buffer.from('{"a":1}'), outboxContext(KID));

const rows = (database: Database): Promise<{ state: string; failure: string | null; attempts: number }[]> =>
  database.read('webhook_outbox').orderBy('seq').select('state', 'failure', 'attempts') as never;

const QUICK = { interval: 5, timeout: 10_000 };

it('an event that cannot be opened has failed, with the reason, and all others are delivered', () =>
  withPlace(async ({ database, deps, put, faults }) => {
    await put(sealed());
    await put(`x${sealed()}`);
    for (let i = 0; i < 60; i += 1) await put(sealed());
    const dispatcher = startDispatcher(deps, () => true, 5);
    await vi.waitFor(async () => {
      expect((await rows(database)).map(({ state }) => state)).not.toContain('waiting');
    }, QUICK);
    await dispatcher.stop();
    const [first, second, ...others] = await rows(database);
    expect(first).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(second).toEqual({ state: 'failed', attempts: 1, failure: 'its stored payload cannot be read' });
    expect(others.every(({ state }) => state === 'delivered')).toBe(true);
    expect(seen.sort((a, b) => a - b)).toEqual([1, ...Array.from({ length: 60 }, (_, i) => i + 3)]);
    expect(faults).toHaveLength(1);
  }));

it.each([
  ['a webhook that this node does not know', { webhook: () => undefined }, /not known/],
  [
    'a secret that does not open',
    {
      masterKey: () => makeMasterKey(random(32), random),
    },
    /./,
  ],
])('%s is tried again with back-off, eight times and no more', (_name, change, why) =>
  withPlace(async ({ database, deps, put, advance, faults }) => {
    await put(sealed());
    const dispatcher = startDispatcher({ ...deps, ...change }, () => true, 5);
    for (let attempts = 1; attempts <= 8; attempts += 1) {
      await vi.waitFor(async () => {
        const [row] = await rows(database);
        expect(row).toMatchObject({ attempts, state: attempts < 8 ? 'waiting' : 'failed' });
        expect(row?.failure).toMatch(why);
      }, QUICK);
      advance(24 * 3_600_000);
    }
    await dispatcher.stop();
    expect(faults).toEqual([]);
    expect(seen).toEqual([]);
  }),
);

it('a database that cannot be read is nobody’s failure: the event waits', () =>
  withPlace(async ({ database, deps, put, advance, faults }) => {
    await put(null, 'req_1');
    let away = true;
    const findDecision = () => (away ? Promise.reject(new Unavailable('away')) : Promise.resolve({}));
    const dispatcher = startDispatcher({ ...deps, findDecision }, () => true, 5);
    await vi.waitFor(() => expect(faults).toHaveLength(1), QUICK);
    expect(await rows(database)).toMatchObject([{ state: 'waiting', failure: null }]);
    away = false;
    advance(61_000);
    await vi.waitFor(async () => expect(await rows(database)).toMatchObject([{ state: 'delivered' }]), QUICK);
    await dispatcher.stop();
  }));

it('a database that keeps failing is told once, not at every look', () =>
  withPlace(async ({ database, deps, faults }) => {
    await database.transaction((tx) => tx.raw('DROP TABLE webhook_outbox'));
    let looks = 0;
    const looked = (): boolean => {
      looks += 1;
      return true;
    };
    const dispatcher = startDispatcher(deps, looked, 5);
    await vi.waitFor(() => expect(looks).toBeGreaterThan(4), QUICK);
    await dispatcher.stop();
    expect(faults).toHaveLength(1);
  }));
