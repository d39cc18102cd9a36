import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createStore } from '../../src/banner/record.ts';
import { AGENT, createChoice, createRecord } from './support.ts';

/** Web Storage with room for so many characters. */
class Room {
  readonly #items = new Map<string, string>();
  size = 5000;
  isForbidden = false;
  getItem(name: string): string | null {
    if (this.isForbidden) throw new Error('SecurityError');
    return this.#items.get(name) ?? null;
  }
  setItem(name: string, value: string): void {
    if (this.isForbidden) throw new Error('SecurityError');
    const otherItems = [...this.#items].filter(([key]) => key !== name).map((item) => item.join(''));
    if (otherItems.join('').length + name.length + value.length > this.size)
      throw new Error('QuotaExceededError');
    this.#items.set(name, value);
  }
  removeItem(name: string): void {
    if (this.isForbidden) throw new Error('SecurityError');
    this.#items.delete(name);
  }
  /** The limit becomes the length of the stored text. */
  fill(): void {
    this.size = [...this.#items].flat().join('').length;
  }
}

const NAME = 'gpd-consent:shop';
const granted = createRecord({ [AGENT]: createChoice(), analytics: createChoice() });
const withdrawn = createRecord({ [AGENT]: createChoice(), analytics: createChoice({ choice: 'withdrawn' }) });
const write = {
  action: 'withdraw',
  purposes: ['analytics'],
  policyVersion: 3,
  gpc: false,
  key: 'k',
} as const;

let room: Room;
let page: EventTarget;
const happens = (type: string, fields: object): void =>
  void page.dispatchEvent(Object.assign(new Event(type), fields));

beforeEach(() => {
  room = new Room();
  page = new EventTarget();
  vi.stubGlobal('localStorage', room);
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
});
afterEach(() => {
  vi.unstubAllGlobals();
});

function fullOf(record: typeof granted) {
  const store = createStore();
  store.save('shop', record);
  room.fill();
  return store;
}

describe('a storage without room for the newer record', () => {
  it('keeps no older one, and this page goes on with the newer', () => {
    const store = fullOf(granted);
    store.save('shop', withdrawn);
    expect(room.getItem(NAME)).toBeNull();
    expect(store.load('shop')).toEqual(withdrawn);
    expect(createStore().load('shop')).toBeNull();
  });

  it('keeps the writes that the server has not received, and no choice', () => {
    const store = fullOf(granted);
    store.save('shop', { ...withdrawn, pending: [write] });
    expect(store.load('shop')).toEqual({ ...withdrawn, pending: [write] });
    expect(createStore().load('shop')).toEqual({ ...granted, choices: {}, pending: [write] });
  });

  it('is used again once there is room', () => {
    const store = fullOf(granted);
    store.save('shop', withdrawn);
    room.size = 5000;
    store.save('shop', withdrawn);
    expect(createStore().load('shop')).toEqual(withdrawn);
  });

  it('says nothing of another tenant', () => {
    const store = fullOf(granted);
    store.save('shop', withdrawn);
    expect(store.load('other')).toBeNull();
  });
});

describe('what this page remembers alone', () => {
  it.each([
    ['another page saved', 'storage', { key: NAME }, null],
    ['another page cleared all', 'storage', { key: null }, null],
    ['another script saved its own', 'storage', { key: 'cart' }, granted],
    ['the page was in the back/forward cache', 'pageshow', { persisted: true }, null],
    ['the page was loaded', 'pageshow', { persisted: false }, granted],
  ])('%s', (_what, type, fields, expected) => {
    const store = createStore();
    const changed = vi.fn();
    store.watch('shop', changed, () => {});
    room.isForbidden = true;
    store.save('shop', granted);
    happens(type, fields);
    expect(store.load('shop')).toEqual(expected);
    expect(changed).toHaveBeenCalledTimes(expected === null ? 1 : 0);
  });
});

it('a record that was taken away does not come back', () => {
  const store = createStore();
  store.save('shop', granted);
  room.removeItem(NAME);
  expect(store.load('shop')).toBeNull();
});
