import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createController } from '../../src/banner/controller.ts';
import type { ConsentRecord, Store } from '../../src/banner/record.ts';
import type { Entry, Failure, Server } from '../../src/banner/server.ts';
import type { ConsentSnapshot } from '../../src/banner/types.ts';
import { NOW } from '../support/make.ts';
import { AGENT, createChoice, createConfig, createPurpose, createRecord, DAY } from './support.ts';

const away: Failure = { problem: 'unreachable', transient: true };

/** One tenant's store, in memory. */
function createStore(first: ConsentRecord | null) {
  const store: Store & { kept: ConsentRecord | null; marks: Record<string, number>; full: boolean } = {
    kept: first,
    marks: {},
    full: false,
    asked: () => store.marks,
    saveAsked: (_kid, marks) => {
      if (!store.full) store.marks = { ...marks };
      return !store.full;
    },
    load: () => store.kept,
    save: (_kid: string, record: ConsentRecord) => {
      store.kept = record;
    },
    only: () => (store.kept ? 'shop' : null),
    watch: () => {},
  };
  return store;
}

function createServerClient({
  config = createConfig(),
  write,
  ahead = 0,
}: {
  config?: object;
  write?: Server['write'];
  /** Milliseconds by which the device's clock is ahead. */
  ahead?: number;
} = {}): Server {
  return {
    config: async () => config as never,
    write:
      write ??
      (async (_record, { purposes }) =>
        purposes.map((purpose, seq): Entry => ({ purpose, seq, hash: 'b'.repeat(64) }))),
    words: async () => null,
    link: async () => ({ linked: false, status: 0, error: 'unreachable' }),
    aheadMs: () => ahead,
  };
}

function start(server: Server, record: ConsentRecord | null = null, gpc = () => false) {
  const heard: ConsentSnapshot[] = [];
  const store = createStore(record);
  const controller = createController({
    server,
    missing: 'no-key',
    store,
    language: 'en',
    gpc,
    now: () => Date.now(),
    changed: (snapshot) => void heard.push(snapshot),
  });
  return { controller, heard, store };
}

beforeEach(() => {
  vi.useFakeTimers({ now: NOW });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a page that stays open', () => {
  it('asks again when a choice ends, also after more days than a timer holds', async () => {
    const record = createRecord({
      [AGENT]: createChoice({ until: NOW + 40 * DAY }),
      analytics: createChoice({ until: NOW + 90 * DAY }),
    });
    const { controller, heard } = start(createServerClient(), record);
    await controller.load();
    expect(heard.at(-1)).toMatchObject({ phase: 'decided', granted: [AGENT, 'analytics'] });
    await vi.advanceTimersByTimeAsync(40 * DAY - 1);
    expect(heard).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(heard.at(-1)).toMatchObject({ phase: 'asking', granted: ['analytics'] });
    await vi.advanceTimersByTimeAsync(50 * DAY);
    expect(heard.at(-1)).toMatchObject({ phase: 'asking', granted: [] });
  });

  it('and whoever waits for the receipt then is answered by the next choice', async () => {
    const record = createRecord({
      [AGENT]: createChoice({ until: NOW + DAY }),
      analytics: createChoice({ until: NOW + DAY }),
    });
    const { controller, heard } = start(createServerClient(), record);
    await controller.load();
    await vi.advanceTimersByTimeAsync(DAY);
    expect(heard.at(-1)?.phase).toBe('asking');
    const receipt = controller.receipt();
    await controller.choose(new Map([[AGENT, true]]));
    expect(await receipt).toMatchObject({ purposes: [AGENT] });
  });
});

it('what a machine granted is asked again, and what was refused stays', async () => {
  const record = createRecord({ [AGENT]: createChoice({}), analytics: createChoice({ choice: 'denied' }) });
  const { controller, heard, store } = start(createServerClient(), record);
  await controller.load();
  expect(heard.at(-1)).toMatchObject({ phase: 'decided', granted: [AGENT] });
  await controller.askAgain();
  expect(heard.at(-1)).toMatchObject({ phase: 'asking', granted: [] });
  expect(Object.keys(store.kept?.choices ?? {})).toEqual(['analytics']);
});

describe('a refusal', () => {
  it('has its entry in the terms once the ledger has it', async () => {
    const { controller } = start(createServerClient());
    await controller.load();
    expect(await controller.choose(new Map([[AGENT, false]]))).toEqual({
      outcome: 'recorded',
      problem: null,
    });
    expect(controller.terms()?.record?.choices[AGENT]).toMatchObject({ choice: 'denied', proof: { seq: 0 } });
  });
});

describe('a purpose that may be asked for over the signal', () => {
  const config = createConfig({
    purposes: [
      createPurpose({ gpc: 'ask' }),
      createPurpose({ id: 'news', gpc: 'ask' }),
      createPurpose({ id: 'ads' }),
    ],
  });

  it('is asked once, and the browser remembers it for a year', async () => {
    const { controller, store } = start(createServerClient({ config }), null, () => true);
    await controller.load();
    expect(controller.snapshot().phase).toBe('decided');
    expect(controller.startAsking()).toEqual([AGENT, 'news']);
    expect(store.marks).toEqual({ [AGENT]: NOW, news: NOW });
    expect(controller.startAsking()).toEqual([]);
    await vi.advanceTimersByTimeAsync(364 * DAY);
    expect(controller.startAsking()).toEqual([]);
    await vi.advanceTimersByTimeAsync(DAY);
    expect(controller.startAsking()).toEqual([AGENT, 'news']);
  });

  it('is not asked for where the browser cannot remember that it was', async () => {
    const { controller, store } = start(createServerClient({ config }), null, () => true);
    await controller.load();
    store.full = true;
    expect(controller.startAsking()).toEqual([]);
  });

  it('is granted by a yes to it alone, which the next signal does not end', async () => {
    const writes: unknown[] = [];
    const write: Server['write'] = async (_record, { action, purposes, gpc, overGpc }) => {
      writes.push([action, purposes, gpc, overGpc]);
      return purposes.map((purpose, seq) => ({ purpose, seq, hash: 'b'.repeat(64) }));
    };
    const { controller } = start(createServerClient({ config, write }), null, () => true);
    await controller.load();
    await controller.choose(new Map([[AGENT, 'over-gpc']]));
    expect(writes).toEqual([['grant', [AGENT], true, true]]);
    expect(controller.snapshot().granted).toEqual([AGENT]);
    expect(await controller.receipt()).toMatchObject({ purposes: [AGENT], gpc: true, overGpc: true });
    await controller.load();
    await controller.withdraw(null);
    expect(writes.slice(1)).toEqual([['withdraw', [AGENT], true, undefined]]);
    expect(controller.snapshot().granted).toEqual([]);
  });
});

describe('a signal that begins on an open page', () => {
  it('is told of with the next choice, and the grant it overrules is forgotten', async () => {
    let on = false;
    const writes: unknown[] = [];
    const write: Server['write'] = async (_record, { action, purposes, gpc }) => {
      writes.push([action, purposes, gpc]);
      return purposes.map((purpose, seq) => ({ purpose, seq, hash: 'b'.repeat(64) }));
    };
    const { controller, store } = start(
      createServerClient({ write }),
      createRecord({ [AGENT]: createChoice() }),
      () => on,
    );
    await controller.load();
    // After what the load still tells the ledger.
    await controller.choose(new Map());
    on = true;
    await controller.choose(new Map([['analytics', true]]));
    expect(writes).toEqual([
      ['grant', ['analytics'], true],
      ['deny', [AGENT], true],
    ]);
    on = false;
    expect(Object.keys(store.kept?.choices ?? {})).toEqual(['analytics']);
    expect(controller.snapshot().granted).toEqual(['analytics']);
  });
});

describe('a withdrawal before anybody could be asked', () => {
  const granted = createRecord({ [AGENT]: createChoice(), analytics: createChoice() });

  it('is in force on the next page, which tells the ledger', async () => {
    const first = start(createServerClient({ config: away }), granted);
    await first.controller.load();
    expect(await first.controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'unreachable' });
    const writes: unknown[] = [];
    const write: Server['write'] = async (_record, { action, purposes }) => {
      writes.push([action, purposes]);
      return purposes.map((purpose, seq) => ({ purpose, seq, hash: 'b'.repeat(64) }));
    };
    const next = start(createServerClient({ write }), first.store.kept);
    await next.controller.load();
    expect(next.heard[0]).toMatchObject({ phase: 'decided', granted: [] });
    await vi.waitFor(() => expect(writes).toEqual([['withdraw', [AGENT, 'analytics']]]));
    await vi.waitFor(() => expect(next.store.kept).toMatchObject({ pending: [] }));
  });

  it('names what it takes back', async () => {
    const { controller, store } = start(createServerClient({ config: away }), granted);
    await controller.load();
    await controller.withdraw(['analytics']);
    expect(store.kept?.choices).toMatchObject({
      [AGENT]: { choice: 'granted' },
      analytics: { choice: 'withdrawn', proof: null },
    });
  });

  it('has failed where nothing is kept', async () => {
    const { controller } = start(createServerClient({ config: away }));
    await controller.load();
    expect(await controller.withdraw(null)).toEqual({ outcome: 'failed', problem: 'unreachable' });
  });
});

it('a choice that another page took away in the meantime does not come back with the next one', async () => {
  const record = createRecord({ [AGENT]: createChoice(), analytics: createChoice() });
  const { controller, store } = start(createServerClient(), record);
  await controller.load();
  store.kept = null;
  await controller.withdraw(['analytics']);
  expect(controller.snapshot().granted).toEqual([]);
});

it('a choice ends by the server’s clock, whichever the device has by then', async () => {
  const first = start(createServerClient({ ahead: -400 * DAY }));
  await first.controller.load();
  await first.controller.choose(new Map([['analytics', true]]));
  const storedChoice = first.store.kept?.choices['analytics'];
  expect(storedChoice).toMatchObject({ at: NOW + 400 * DAY, until: NOW + 430 * DAY });
  const later = start(createServerClient({ ahead: 31 * DAY }), first.store.kept);
  vi.setSystemTime(NOW + (400 + 31 + 29) * DAY);
  await later.controller.load();
  expect(later.controller.snapshot().granted).toEqual(['analytics']);
  await vi.advanceTimersByTimeAsync(DAY);
  expect(later.heard.at(-1)).toMatchObject({ phase: 'asking', granted: [] });
});

it('what was answered before a choice was recorded does not tell the time: the choice stands, and ends', async () => {
  const record = createRecord({
    [AGENT]: createChoice({ at: NOW - DAY }),
    analytics: createChoice({ choice: 'denied', at: NOW - DAY }),
  });
  // From a store of the page, sixty days old.
  const { controller, heard } = start(createServerClient({ ahead: 60 * DAY }), record);
  await controller.load();
  expect(heard.at(-1)).toMatchObject({ phase: 'decided', granted: [AGENT] });
  await vi.advanceTimersByTimeAsync(DAY);
  expect(heard.at(-1)).toMatchObject({ phase: 'asking', granted: [] });
});

describe('a refusal in another tab, while this one’s grant is on its way', () => {
  /** @param otherTabs the record that the other tab stored. The grant has number 5 in the ledger. */
  async function race(otherTabs: ConsentRecord | null) {
    const actions: string[] = [];
    let arrive = (): void => {};
    const write: Server['write'] = async (_record, { action, purposes }) => {
      actions.push(action);
      if (action === 'grant') await new Promise<void>((resolve) => (arrive = resolve));
      return purposes.map((purpose) => ({ purpose, seq: action === 'grant' ? 5 : 9, hash: 'b'.repeat(64) }));
    };
    const { controller, store } = start(
      createServerClient({ write }),
      createRecord({ [AGENT]: createChoice() }),
    );
    await controller.load();
    const granting = controller.choose(new Map([['analytics', true]]));
    await vi.waitFor(() => expect(actions).toEqual(['grant']));
    store.kept = otherTabs;
    arrive();
    return { result: await granting, granted: controller.snapshot().granted, sent: actions };
  }

  const refusal = (seq: number | null): ConsentRecord => {
    const proof = seq === null ? null : { seq, hash: 'c'.repeat(64) };
    const analytics = createChoice({ choice: 'denied', at: NOW, proof });
    return createRecord({ [AGENT]: createChoice(), analytics });
  };
  const result = { outcome: 'failed', problem: 'refused' };

  it.each([
    ['after it in the ledger', 6, ['grant']],
    ['not in the ledger yet', null, ['grant']],
    ['before it in the ledger, which is told again', 4, ['grant', 'withdraw']],
  ])('%s: stays refused', async (_what, seq, actions) => {
    expect(await race(refusal(seq))).toEqual({ result, granted: [AGENT], sent: actions });
  });

  it('that could not be kept: stays refused', async () => {
    expect(await race(null)).toEqual({ result, granted: [], sent: ['grant', 'withdraw'] });
  });
});

describe('a withdrawal that the server would not take', () => {
  const firewall: Failure = { problem: 'invalid-request', transient: false };

  /** @param isAccepted true if this page's server accepts a write */
  function createLog(isAccepted: (action: string) => boolean) {
    const writes: string[] = [];
    const write: Server['write'] = async (_record, { action, purposes }) => {
      writes.push(`${action} ${purposes.join()}`);
      return isAccepted(action)
        ? purposes.map((purpose, seq) => ({ purpose, seq, hash: 'b'.repeat(64) }))
        : firewall;
    };
    return { sent: writes, server: createServerClient({ write }) };
  }

  async function withdrawInVain() {
    const granted = createRecord({ [AGENT]: createChoice(), analytics: createChoice() });
    const first = start(createLog(() => false).server, granted);
    await first.controller.load();
    expect(await first.controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'refused' });
    return first.store.kept;
  }

  it('is sent again by the next page, and not before', async () => {
    const storedRecord = await withdrawInVain();
    expect(storedRecord?.pending).toHaveLength(1);
    const { sent: writes, server } = createLog(() => true);
    const next = start(server, storedRecord);
    await next.controller.load();
    await vi.waitFor(() => expect(next.store.kept).toMatchObject({ pending: [] }));
    expect(writes).toEqual([`withdraw ${AGENT},analytics`]);
    expect(next.store.kept?.choices).toMatchObject({ [AGENT]: { choice: 'withdrawn', proof: { seq: 0 } } });
  });

  it('does not stand before a grant, and does not end it later', async () => {
    const { sent: writes, server } = createLog((action) => action === 'grant');
    const next = start(server, await withdrawInVain());
    await next.controller.load();
    expect(await next.controller.choose(new Map([[AGENT, true]]))).toMatchObject({ outcome: 'recorded' });
    expect(writes.at(-1)).toBe(`grant ${AGENT}`);
    expect(next.store.kept?.pending.map(({ purposes }) => purposes)).toEqual([['analytics']]);
  });

  it('is over once its person was erased', async () => {
    const erased: Server['write'] = async () => ({ problem: 'erased', transient: false });
    const next = start(createServerClient({ write: erased }), await withdrawInVain());
    await next.controller.load();
    await vi.waitFor(() => expect(next.store.kept).toMatchObject({ pending: [] }));
  });
});

describe('a refusal that could not reach the server', () => {
  it('is sent while the page stays open, once the server is back', async () => {
    let isAway = true;
    const keyedWrites: string[] = [];
    const write: Server['write'] = async (_record, { action, purposes, key }) => {
      keyedWrites.push(`${action} ${key}`);
      return isAway ? away : purposes.map((purpose, seq) => ({ purpose, seq, hash: 'b'.repeat(64) }));
    };
    const { controller, store } = start(
      createServerClient({ write }),
      createRecord({ [AGENT]: createChoice() }),
    );
    await controller.load();
    expect(await controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'unreachable' });
    await vi.advanceTimersByTimeAsync(60_000);
    isAway = false;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(store.kept).toMatchObject({ pending: [], choices: { [AGENT]: { proof: { seq: 0 } } } });
    expect(keyedWrites).toHaveLength(4);
    expect(new Set(keyedWrites).size).toBe(1);
    await vi.advanceTimersByTimeAsync(DAY / 24);
    expect(keyedWrites).toHaveLength(4);
  });
});

it('a withdrawal reaches the ledger although the tenant has removed one of its purposes since', async () => {
  const writes: string[] = [];
  const keys = new Set<string>();
  const write: Server['write'] = async (_record, { action, purposes, key }) => {
    writes.push(`${action} ${purposes.join()}`);
    keys.add(key);
    return purposes.includes('analytics')
      ? { problem: 'unknown-purpose', transient: false }
      : purposes.map((purpose, seq) => ({ purpose, seq, hash: 'b'.repeat(64) }));
  };
  const record = createRecord({ [AGENT]: createChoice(), analytics: createChoice() });
  const { controller, store } = start(createServerClient({ write }), record);
  await controller.load();
  expect(await controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'refused' });
  expect(writes).toEqual([`withdraw ${AGENT},analytics`, `withdraw ${AGENT}`, 'withdraw analytics']);
  expect(keys.size).toBe(3);
  expect(store.kept?.choices).toMatchObject({ [AGENT]: { choice: 'withdrawn', proof: { seq: 0 } } });
  expect(store.kept?.pending.map(({ purposes }) => purposes)).toEqual([['analytics']]);
});
