import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createController } from '../../src/banner/controller.ts';
import type { ConsentRecord, Store } from '../../src/banner/record.ts';
import type { Failure, Server, Standing } from '../../src/banner/server.ts';
import type { ConsentSnapshot } from '../../src/banner/types.ts';
import { NOW } from '../support/make.ts';
import { AGENT, createChoice, createConfig, createPurpose, createRecord, DAY } from './support.ts';

const AWAY: Failure = { problem: 'unreachable', transient: true };

/** One tenant's store, in memory. */
function createStore(first: ConsentRecord | null) {
  const store: Store & { kept: ConsentRecord | null; marks: Record<string, number>; full: boolean } = {
    kept: first,
    marks: {},
    full: false,
    loadAsked: () => store.marks,
    saveAsked: (_kid, marks) => {
      if (!store.full) store.marks = { ...marks };
      return !store.full;
    },
    load: () => store.kept,
    save: (_kid: string, record: ConsentRecord) => {
      store.kept = record;
    },
    findOnlyKid: () => (store.kept ? 'shop' : null),
    remove: () => {
      store.kept = null;
    },
    watch: () => {},
    isShared: false,
    saveState: () => {},
  };
  return store;
}

interface Options {
  readonly record?: ConsentRecord | null;
  readonly config?: object;
  readonly gpc?: () => boolean;
  /** Milliseconds by which the device's clock is ahead. */
  readonly ahead?: number;
  /** Why the server refuses a write, if it does. */
  readonly refuses?: (action: string, purposes: readonly string[]) => Failure | null | Promise<null>;
  /** The ledger's answer for every grant; an error means that it is away. */
  readonly standing?: Partial<Standing> | Error;
  /** False while the page's tab is hidden. */
  readonly isVisible?: () => boolean;
  /** The place of a write in the ledger. */
  readonly seqOf?: (action: string) => number;
}

/** A page that has loaded, and what its server was sent. */
async function open(options: Options = {}) {
  const { record = null, config = createConfig(), gpc = () => false, ahead = 0 } = options;
  const { refuses = () => null, seqOf = () => 0, isVisible = () => true, standing } = options;
  let questions = 0;
  const heard: ConsentSnapshot[] = [];
  const writes: { text: string; gpc: boolean; key: string }[] = [];
  const store = createStore(record);
  const server: Server = {
    config: async () => config as never,
    async write(_record, { action, purposes, gpc: signal, key }) {
      writes.push({ text: `${action} ${purposes.join()}`, gpc: signal, key });
      const refusal = await refuses(action, purposes);
      if (refusal) return refusal;
      return {
        entries: purposes.map((purpose) => ({ purpose, seq: seqOf(action), hash: 'b'.repeat(64) })),
      };
    },
    state: async ({ choices }) => {
      questions += 1;
      if (standing instanceof Error) return AWAY;
      const proof = { seq: 8, hash: 'd'.repeat(64) };
      const purposes = Object.entries(choices).map(([purpose, choice]) => ({
        ...{
          purpose,
          allowed: true,
          reason: 'granted',
          choice: 'granted',
          policyVersion: 3,
          given: 'person',
        },
        at: new Date(choice.at).toISOString(),
        expiresAt: new Date(choice.until).toISOString(),
        proof: choice.proof ?? proof,
        ...standing,
      }));
      return { purposes };
    },
    receiptPage: async () => false,
    join: async () => ({ joined: false, status: 0, error: 'unreachable' }),
    link: async () => ({ linked: false, status: 0, error: 'unreachable' }),
    aheadMs: () => ahead,
  };
  const controller = createController({
    server,
    missing: 'no-key',
    store,
    language: 'en',
    gpc,
    now: () => Date.now(),
    isVisible,
    isRefusedEarly: () => false,
    onChange: (snapshot) => void heard.push(snapshot),
    onRecorded: () => {},
    onChecked: () => {},
  });
  await controller.load();
  const sentTexts = () => writes.map(({ text }) => text);
  return { controller, heard, store, writes, sentTexts, questions: () => questions };
}
const GRANTED = createRecord({ [AGENT]: createChoice() });
const BOTH_GRANTED = createRecord({ [AGENT]: createChoice(), analytics: createChoice() });

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
    const { heard } = await open({ record });
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
    const { controller, heard } = await open({ record });
    await vi.advanceTimersByTimeAsync(DAY);
    expect(heard.at(-1)?.phase).toBe('asking');
    const receipt = controller.receipt();
    await controller.choose(new Map([[AGENT, true]]));
    expect(await receipt).toMatchObject({ purposes: [AGENT] });
  });
});

it('what a machine granted is asked again, and what was refused stays', async () => {
  const record = createRecord({ [AGENT]: createChoice({}), analytics: createChoice({ choice: 'denied' }) });
  const { controller, heard, store } = await open({ record });
  expect(heard.at(-1)).toMatchObject({ phase: 'decided', granted: [AGENT] });
  await controller.askAgain();
  expect(heard.at(-1)).toMatchObject({ phase: 'asking', granted: [] });
  expect(Object.keys(store.kept?.choices ?? {})).toEqual(['analytics']);
});

it('a refusal has its entry in the terms once the ledger has it', async () => {
  const { controller } = await open();
  const result = await controller.choose(new Map([[AGENT, false]]));
  expect(result).toEqual({ outcome: 'recorded', problem: null });
  expect(controller.terms()?.record?.choices[AGENT]).toMatchObject({ choice: 'denied', proof: { seq: 0 } });
});

it('a purpose is not asked for over the signal where the browser cannot remember that it was', async () => {
  const config = createConfig({ purposes: [createPurpose({ gpc: 'ask' }), createPurpose({ id: 'ads' })] });
  const { controller, store } = await open({ config, gpc: () => true });
  store.full = true;
  expect(controller.startAsking()).toEqual([]);
  store.full = false;
  expect(controller.startAsking()).toEqual([AGENT]);
  expect(controller.startAsking()).toEqual([]);
});

it('a signal that begins on an open page is told with the next choice, and the grant it overrules is forgotten', async () => {
  let on = false;
  const { controller, store, writes, sentTexts } = await open({ record: GRANTED, gpc: () => on });
  // After what the load still tells the ledger.
  await controller.choose(new Map());
  on = true;
  await controller.choose(new Map([['analytics', true]]));
  expect(sentTexts()).toEqual(['grant analytics', `deny ${AGENT}`]);
  expect(writes.map(({ gpc }) => gpc)).toEqual([true, true]);
  on = false;
  expect(Object.keys(store.kept?.choices ?? {})).toEqual(['analytics']);
  expect(controller.snapshot().granted).toEqual(['analytics']);
});

describe('a withdrawal before anybody could be asked', () => {
  it('names what it takes back', async () => {
    const { controller, store } = await open({ config: AWAY, record: BOTH_GRANTED });
    await controller.withdraw(['analytics']);
    expect(store.kept?.choices).toMatchObject({
      [AGENT]: { choice: 'granted' },
      analytics: { choice: 'withdrawn', proof: null },
    });
  });

  it('has failed where nothing is kept', async () => {
    const { controller } = await open({ config: AWAY });
    expect(await controller.withdraw(null)).toEqual({ outcome: 'failed', problem: 'unreachable' });
  });
});

it('a choice ends by the server’s clock, whichever the device has by then', async () => {
  const first = await open({ ahead: -400 * DAY });
  await first.controller.choose(new Map([['analytics', true]]));
  const record = first.store.kept;
  expect(record?.choices['analytics']).toMatchObject({ at: NOW + 400 * DAY, until: NOW + 430 * DAY });
  vi.setSystemTime(NOW + (400 + 31 + 29) * DAY);
  const later = await open({ ahead: 31 * DAY, record });
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
  const { heard } = await open({ record, ahead: 60 * DAY });
  expect(heard.at(-1)).toMatchObject({ phase: 'decided', granted: [AGENT] });
  await vi.advanceTimersByTimeAsync(DAY);
  expect(heard.at(-1)).toMatchObject({ phase: 'asking', granted: [] });
});

describe('a refusal in another tab, while this one’s grant is on its way', () => {
  /** @param otherTabs the record that the other tab stored. The grant has number 5 in the ledger. */
  async function race(otherTabs: ConsentRecord | null) {
    let arrive = (): void => {};
    const arrival = new Promise<null>((resolve) => (arrive = () => resolve(null)));
    const { controller, store, sentTexts } = await open({
      record: GRANTED,
      refuses: (action) => (action === 'grant' ? arrival : null),
      seqOf: (action) => (action === 'grant' ? 5 : 9),
    });
    const granting = controller.choose(new Map([['analytics', true]]));
    await vi.waitFor(() => expect(sentTexts()).toEqual(['grant analytics']));
    store.kept = otherTabs;
    arrive();
    return { result: await granting, granted: controller.snapshot().granted, sent: sentTexts() };
  }

  const refusal = (seq: number | null): ConsentRecord => {
    const proof = seq === null ? null : { seq, hash: 'c'.repeat(64) };
    const analytics = createChoice({ choice: 'denied', at: NOW, proof });
    return createRecord({ [AGENT]: createChoice(), analytics });
  };
  const result = { outcome: 'failed', problem: 'refused' };

  it.each([
    ['after it in the ledger', 6, ['grant analytics']],
    ['not in the ledger yet', null, ['grant analytics']],
    ['before it in the ledger, which is told again', 4, ['grant analytics', 'withdraw analytics']],
  ])('%s: stays refused', async (_what, seq, actions) => {
    expect(await race(refusal(seq))).toEqual({ result, granted: [AGENT], sent: actions });
  });

  it('that could not be kept: stays refused', async () => {
    expect(await race(null)).toEqual({
      result,
      granted: [],
      sent: ['grant analytics', 'withdraw analytics'],
    });
  });
});

describe('a withdrawal that the server would not take', () => {
  const firewall: Failure = { problem: 'invalid-request', transient: false };

  async function withdrawInVain() {
    const { controller, store } = await open({ record: BOTH_GRANTED, refuses: () => firewall });
    expect(await controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'refused' });
    return store.kept;
  }

  it('is sent again by the next page, and not before', async () => {
    const record = await withdrawInVain();
    expect(record?.pending).toHaveLength(1);
    const { store, sentTexts } = await open({ record });
    await vi.waitFor(() => expect(store.kept).toMatchObject({ pending: [] }));
    expect(sentTexts()).toEqual([`withdraw ${AGENT},analytics`]);
    expect(store.kept?.choices).toMatchObject({ [AGENT]: { choice: 'withdrawn', proof: { seq: 0 } } });
  });

  it('does not stand before a grant, and does not end it later', async () => {
    const refuses = (action: string) => (action === 'grant' ? null : firewall);
    const { controller, store, sentTexts } = await open({ record: await withdrawInVain(), refuses });
    expect(await controller.choose(new Map([[AGENT, true]]))).toMatchObject({ outcome: 'recorded' });
    expect(sentTexts().at(-1)).toBe(`grant ${AGENT}`);
    expect(store.kept?.pending.map(({ purposes }) => purposes)).toEqual([['analytics']]);
  });

  it('is over once its person was erased', async () => {
    const refuses = (): Failure => ({ problem: 'erased', transient: false });
    const { store } = await open({ record: await withdrawInVain(), refuses });
    await vi.waitFor(() => expect(store.kept).toMatchObject({ pending: [] }));
  });
});

it('a refusal that could not reach the server is sent while the page stays open, once the server is back', async () => {
  let isAway = true;
  const refuses = () => (isAway ? AWAY : null);
  const { controller, store, writes } = await open({ record: GRANTED, refuses });
  expect(await controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'unreachable' });
  // A second refusal changes nothing, and gpd still has not heard of the first.
  expect(await controller.choose(new Map([[AGENT, false]]))).toMatchObject({ outcome: 'kept' });
  await vi.advanceTimersByTimeAsync(60_000);
  isAway = false;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(store.kept).toMatchObject({ pending: [], choices: { [AGENT]: { proof: { seq: 0 } } } });
  await vi.advanceTimersByTimeAsync(DAY / 24);
  expect(writes).toHaveLength(4);
  expect(new Set(writes.map(({ text, key }) => `${text} ${key}`)).size).toBe(1);
});

it('a withdrawal reaches the ledger although the tenant has removed one of its purposes since', async () => {
  const refuses = (_action: string, purposes: readonly string[]): Failure | null =>
    purposes.includes('analytics') ? { problem: 'unknown-purpose', transient: false } : null;
  const { controller, store, sentTexts, writes } = await open({ record: BOTH_GRANTED, refuses });
  expect(await controller.withdraw(null)).toEqual({ outcome: 'kept', problem: 'refused' });
  expect(sentTexts()).toEqual([`withdraw ${AGENT},analytics`, `withdraw ${AGENT}`, 'withdraw analytics']);
  expect(new Set(writes.map(({ key }) => key)).size).toBe(3);
  expect(store.kept?.choices).toMatchObject({ [AGENT]: { choice: 'withdrawn', proof: { seq: 0 } } });
  expect(store.kept?.pending.map(({ purposes }) => purposes)).toEqual([['analytics']]);
});

describe('a page of a person who is logged in asks the ledger', () => {
  const MINUTE = 60_000;
  const joined = { ...GRANTED, followsLedger: true };

  /** @returns how often a page asked within a minute after it had loaded */
  async function questionsPerMinute(options: Options): Promise<number> {
    const page = await open(options);
    const before = page.questions();
    await vi.advanceTimersByTimeAsync(MINUTE);
    return page.questions() - before;
  }

  it.each<[what: string, options: Options, count: number]>([
    ['every five seconds', { record: joined }, 12],
    ['not without an account', { record: GRANTED }, 0],
    ['not while its tab is hidden', { record: joined, isVisible: () => false }, 0],
    [
      'not where nothing is granted',
      { record: joined, standing: { allowed: false, reason: 'denied', choice: 'denied' } },
      0,
    ],
    // After 30 s, and then after a minute.
    ['less and less while the ledger is away', { record: joined, standing: new Error() }, 1],
  ])('%s', async (_what, options, count) => {
    expect(await questionsPerMinute(options)).toBe(count);
  });

  it('no longer once its tab is hidden', async () => {
    let isVisible = true;
    const page = await open({ record: joined, isVisible: () => isVisible });
    await vi.advanceTimersByTimeAsync(10_000);
    isVisible = false;
    const before = page.questions();
    await vi.advanceTimersByTimeAsync(MINUTE);
    expect([before, page.questions()]).toEqual([3, 3]);
  });
});
