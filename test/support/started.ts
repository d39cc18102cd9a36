import { afterAll, beforeAll } from 'vitest';
import type { Database } from '../../src/db/engine.ts';
import type { MakeDatabase, TestDatabase } from '../db/contract/database.ts';

/** A handle on an object that is made later, under which its properties are found. */
function handleOn<T extends object>(current: () => T | undefined): T {
  const there = (): T => {
    const value = current();
    if (value === undefined) throw new Error('it is there only while the tests of its suite run');
    return value;
  };
  return new Proxy({} as T, {
    get: (_handle, name) => Reflect.get(there(), name),
    set: (_handle, name, value) => Reflect.set(there(), name, value),
    has: (_handle, name) => Reflect.has(there(), name),
    ownKeys: () => Reflect.ownKeys(there()),
    getOwnPropertyDescriptor: (_handle, name) => Reflect.getOwnPropertyDescriptor(there(), name),
  });
}

/** Makes something before the tests of the suite around it, and after them stops or closes what has to be. */
export function started<T extends object>(start: () => T | Promise<T>): T {
  let value: T | undefined;
  beforeAll(async () => {
    value = await start();
  });
  afterAll(async () => {
    const ends = value as Partial<Record<'stop' | 'close', () => unknown>> | undefined;
    await (ends?.stop ? ends.stop() : ends?.close?.());
  });
  return handleOn(() => value);
}

/** The database of a suite, and a second connection to it: another node. */
export function twoNodes(make: MakeDatabase): { readonly db: TestDatabase; readonly other: Database } {
  const db = started(make);
  let other: Database | undefined;
  beforeAll(async () => {
    other = await db.connect();
  });
  return { db, other: handleOn(() => other) };
}
