import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { beforeEach, expect, it, vi } from 'vitest';
import { loadConfig } from '../../src/config.ts';
import type { Database } from '../../src/db/engine.ts';
import { createMasterKey, outboxContext, webhookSecretContext } from '../../src/keys/master-key.ts';
import { Unavailable } from '../../src/lib/errors.ts';
import { startDispatcher } from '../../src/notify/dispatcher-service.ts';
import { enqueue } from '../../src/notify/outbox-store.ts';
import { insertWebhook } from '../../src/notify/webhooks-store.ts';
import { openStore } from '../../src/tenants/installation-files.ts';
import type { Tenant } from '../../src/tenants/tenant.ts';
import type { Webhook } from '../../src/tenants/tenant-store.ts';
import { operatorAt } from '../support/act.ts';
import { KID } from '../support/constants.ts';
import { NOW, seededRandom } from '../support/make.ts';
import { receive } from '../support/serve.ts';
import { initGpd } from '../support/server.ts';
import { started } from '../support/started.ts';

/** The dispatcher on a real database, with a receiver of its own. */

const random = seededRandom('webhooks');
const wrapper = createMasterKey(random(32), random);
const EVENT = 'consent.granted';

let receivedSeqs: number[];
const receiver = started(() =>
  receive(({ body }, response) => {
    receivedSeqs.push((JSON.parse(body) as { seq: number }).seq);
    response.end();
  }),
);
beforeEach(() => {
  receivedSeqs = [];
});

type Place = Awaited<ReturnType<typeof createPlace>>;

async function withPlace(work: (place: Place) => Promise<void>): Promise<void> {
  const place = await createPlace();
  await work(place);
  await place.database.close();
}

async function createPlace() {
  const { dataDir } = await initGpd();
  const config = loadConfig({ environment: { GPD_DATA_DIR: dataDir }, flags: {} });
  const { database, masterKey } = await openStore(config);
  let now = NOW;
  const faults: unknown[] = [];
  const webhooks = new Map<string, Webhook>();
  /** A webhook of the tenant. */
  const add = async (id: string, target: string): Promise<void> => {
    const wrappedSecret = masterKey.wrap(random(32), webhookSecretContext(KID, id));
    const fields = {
      url: target,
      events: [EVENT],
      allowPrivate: true,
      wrappedSecret,
      createdAt: NOW,
    } as const;
    const webhook: Webhook = { kid: KID, id, ...fields };
    webhooks.set(id, webhook);
    await insertWebhook(database, webhook, operatorAt(NOW));
  };
  await add('w1', `${receiver.url}/`);
  const deps = {
    database,
    tenants: { masterKey: () => masterKey, all: () => [], hasWebhooks: () => true },
    clock: () => now,
    tenantOf: () => ({ wrapper, webhooks: [...webhooks.values()] }) as unknown as Tenant,
    findDecision: () => Promise.resolve({}),
    mail: null,
    onFault: (error: unknown) => faults.push(error),
  };
  return {
    database,
    faults,
    deps,
    add,
    put: (ciphertext: string | null, requestId: string | null = null, webhook = 'w1') => {
      const message = {
        kid: KID,
        webhook,
        event: EVENT,
        requestId,
        principal: null,
        ciphertext,
        at: NOW,
      } as const;
      return database.transaction((tx) => enqueue(tx, [message]));
    },
    advance: (ms: number) => {
      now += ms;
    },
    /** Dispatches until the work is done. */
    dispatch: async (run: () => Promise<void>, over: object = {}, look = () => true): Promise<void> => {
      const dispatcher = startDispatcher(
        { ...deps, tenants: { ...deps.tenants, hasWebhooks: look }, ...over },
        5,
      );
      await run();
      await dispatcher.stop();
    },
  };
}

const sealed = (): string => wrapper.wrap(Buffer.from('{"a":1}'), outboxContext(KID));

const rows = (database: Database): Promise<{ state: string; failure: string | null; attempts: number }[]> =>
  database.read('webhook_outbox').orderBy('seq').select('state', 'failure', 'attempts') as never;

const QUICK = { interval: 5, timeout: 10_000 };

it('an event that cannot be opened has failed, with the reason, and all others are delivered', () =>
  withPlace(async ({ database, put, faults, dispatch }) => {
    for (let i = 0; i < 62; i += 1) await put(i === 1 ? `x${sealed()}` : sealed());
    await dispatch(() =>
      vi.waitFor(async () => {
        expect((await rows(database)).map(({ state }) => state)).not.toContain('waiting');
      }, QUICK),
    );
    const [first, second, ...otherRows] = await rows(database);
    expect(first).toMatchObject({ state: 'delivered', attempts: 1 });
    expect(second).toEqual({ state: 'failed', attempts: 1, failure: 'its stored payload cannot be read' });
    expect(otherRows.every(({ state }) => state === 'delivered')).toBe(true);
    expect(receivedSeqs.sort((a, b) => a - b)).toEqual([1, ...Array.from({ length: 60 }, (_, i) => i + 3)]);
    expect(faults).toHaveLength(1);
  }));

it.each([
  ['a webhook that this node does not know', { tenantOf: () => undefined }, /not known/],
  [
    'a secret that does not open',
    {
      tenants: {
        masterKey: () => createMasterKey(random(32), random),
        all: () => [],
        hasWebhooks: () => true,
      },
    },
    /./,
  ],
])('%s is retried with back-off, at most eight times', (_name, change, message) =>
  withPlace(async ({ database, put, advance, faults, dispatch }) => {
    await put(sealed());
    await dispatch(async () => {
      for (let attempts = 1; attempts <= 8; attempts += 1) {
        await vi.waitFor(async () => {
          const row = await database.read('webhook_outbox').first();
          // An attempt counts from its beginning; the lease ends with its failure, which says when the next one is due.
          const state = attempts < 8 ? 'waiting' : 'failed';
          expect(row).toMatchObject({ attempts, state, leased_until: 0 });
          expect(row.failure).toMatch(message);
        }, QUICK);
        advance(24 * 3_600_000);
      }
    }, change);
    expect([faults, receivedSeqs]).toEqual([[], []]);
  }),
);

it('a database that cannot be read is nobody’s failure: the event waits', () =>
  withPlace(async ({ database, put, advance, faults, dispatch }) => {
    await put(null, 'req_1');
    let away = true;
    const findDecision = () => (away ? Promise.reject(new Unavailable('away')) : Promise.resolve({}));
    await dispatch(
      async () => {
        await vi.waitFor(() => expect(faults).toHaveLength(1), QUICK);
        expect(await rows(database)).toMatchObject([{ state: 'waiting', failure: null }]);
        away = false;
        advance(61_000);
        const delivered = [{ state: 'delivered' }];
        await vi.waitFor(async () => expect(await rows(database)).toMatchObject(delivered), QUICK);
      },
      { findDecision },
    );
  }));

it('gpd reports a database that keeps failing once, not at every look', () =>
  withPlace(async ({ database, faults, dispatch }) => {
    await database.transaction((tx) => tx.raw('DROP TABLE webhook_outbox'));
    let looks = 0;
    const looked = (): boolean => {
      looks += 1;
      return true;
    };
    await dispatch(() => vi.waitFor(() => expect(looks).toBeGreaterThan(4), QUICK), {}, looked);
    expect(faults).toHaveLength(1);
  }));

/** Accepts connections, reads, and never answers until it is told to. */
async function withSilentTarget(work: (target: SilentTarget) => Promise<void>): Promise<void> {
  const sockets: Socket[] = [];
  const waiters: (() => void)[] = [];
  let isClosed = false;
  const server = createTcpServer((socket) => {
    socket.on('error', () => {}).resume();
    sockets.push(socket);
    if (isClosed) socket.destroy();
    for (const wake of waiters.splice(0)) wake();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const target: SilentTarget = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    connections: () => sockets.length,
    async reached(count) {
      while (sockets.length < count) await new Promise<void>((wake) => void waiters.push(wake));
    },
    hangUp() {
      isClosed = true;
      for (const socket of sockets) socket.destroy();
    },
  };
  try {
    await work(target);
  } finally {
    target.hangUp();
    await new Promise((resolve) => void server.close(resolve));
  }
}

interface SilentTarget {
  readonly url: string;
  readonly connections: () => number;
  readonly reached: (count: number) => Promise<void>;
  /** Nobody gets an answer from now on, at once instead of after ten seconds. */
  readonly hangUp: () => void;
}

const outboxOf = async (database: Database, webhook: string): Promise<Record<string, number>> => {
  const states = (await database.read('webhook_outbox').where({ webhook }).pluck('state')) as string[];
  const counts: Record<string, number> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
};

/** When 20 were on their way, and a few more until enough of them had failed. */
async function breakerOpens(database: Database, webhook: string): Promise<void> {
  const allFailed = async (): Promise<void> => {
    const failed = await database.read('webhook_outbox').where({ webhook }).whereNotNull('failure');
    const tried = await database.read('webhook_outbox').where({ webhook }).where('attempts', '>', 0);
    expect(failed.length).toBeGreaterThanOrEqual(20);
    expect(failed.length).toBe(tried.length);
  };
  await vi.waitFor(allFailed, QUICK);
  // The breaker counts each when its last transaction is done: those come in their turn, before these.
  for (let i = 0; i < 3; i += 1) await database.transaction((tx) => tx.raw('SELECT 1'));
  await vi.waitFor(allFailed, QUICK);
}

// Guards against: 400 events for a silent target held up another tenant's delivery for 79 s.
it('a target that accepts and is silent holds up nobody else, and is only probed after a while', () =>
  withSilentTarget((silent) =>
    withPlace(async ({ database, deps, put, add, advance }) => {
      const received = (count: number) =>
        vi.waitFor(() => expect(receivedSeqs).toHaveLength(count), { interval: 5, timeout: 20_000 });
      await add('silent', silent.url);
      for (let i = 0; i < 400; i += 1) await put(sealed(), null, 'silent');
      const dispatcher = startDispatcher(deps, 5);
      await silent.reached(20);
      await put(sealed());
      await received(1);
      // Its own lane is full: 20 are on their way, and the others wait without an attempt.
      expect(silent.connections()).toBe(20);
      const untried = database.read('webhook_outbox').where({ webhook: 'silent', attempts: 0 });
      expect(await untried).toHaveLength(380);
      silent.hangUp();
      await breakerOpens(database, 'silent');
      const tried = silent.connections();
      await put(sealed());
      await received(2);
      expect(silent.connections()).toBe(tried);
      advance(30_000);
      await silent.reached(tried + 1);
      await put(sealed());
      await received(3);
      expect(silent.connections()).toBe(tried + 1);
      await dispatcher.stop();
    }),
  ));

it('what was due all the while for a silent target has failed after 18 hours', () =>
  withSilentTarget((silent) =>
    withPlace(async ({ database, deps, put, add, advance }) => {
      await add('silent', silent.url);
      for (let i = 0; i < 30; i += 1) await put(sealed(), null, 'silent');
      const dispatcher = startDispatcher(deps, 5);
      await silent.reached(20);
      silent.hangUp();
      await breakerOpens(database, 'silent');
      expect(await outboxOf(database, 'silent')).toEqual({ waiting: 30 });
      advance(18 * 3_600_000);
      // All but the probe, whose own back-off goes on.
      await vi.waitFor(
        async () => expect(await outboxOf(database, 'silent')).toEqual({ waiting: 1, failed: 29 }),
        QUICK,
      );
      await dispatcher.stop();
    }),
  ));

it('a target that answers again gets all that waited', () =>
  withPlace(async ({ database, deps, put, advance }) => {
    for (let i = 0; i < 50; i += 1) await put(sealed());
    let away = true;
    const moved = (): Tenant => {
      const tenant = deps.tenantOf();
      const webhooks = tenant.webhooks.map((webhook) => ({ ...webhook, url: 'http://127.0.0.1:1/' }));
      return away ? { ...tenant, webhooks } : tenant;
    };
    const dispatcher = startDispatcher({ ...deps, tenantOf: moved }, 5);
    await breakerOpens(database, 'w1');
    away = false;
    advance(60_000);
    await vi.waitFor(async () => expect(await outboxOf(database, 'w1')).toEqual({ delivered: 50 }), QUICK);
    await dispatcher.stop();
    expect(new Set(receivedSeqs).size).toBe(50);
  }));
