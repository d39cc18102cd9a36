import { attempt } from '../../browser/page.ts';
import type { Signals } from '../../schema/signals.ts';

/*
 * Each reader reads one value. It is null if the browser lacks it or a privacy defense makes it throw, and
 * the others are still read. The lengths are those of src/schema/signals.ts.
 */

const TEXT_MAX = 2048;
const ITEM_MAX = 512;
const ITEMS_MAX = 256;

type Full<T> = { readonly [K in keyof T]-?: Exclude<T[K], undefined> };

/** The fields of a group, all present, null where nothing is known. */
export type Group<K extends keyof Signals> = Full<NonNullable<Signals[K]>>;

export function text(read: () => unknown): string | null {
  const value = attempt(read);
  return typeof value === 'string' ? value.slice(0, TEXT_MAX) : null;
}

export function flag(read: () => unknown): boolean | null {
  const value = attempt(read);
  return typeof value === 'boolean' ? value : null;
}

export function number(read: () => unknown): number | null {
  const value = attempt(read);
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Applies a reader to several fields of one object; each field may be missing or throw. */
export function each<Thing, Name extends keyof Thing & string, Value>(
  reader: (read: () => unknown) => Value,
  thing: () => Thing,
  ...names: readonly Name[]
): Record<Name, Value> {
  const read = names.map((name) => [name, reader(() => thing()[name])] as const);
  return Object.fromEntries(read) as Record<Name, Value>;
}

export function texts(read: () => Iterable<unknown>): string[] | null {
  return attempt(() =>
    Array.from(read())
      .slice(0, ITEMS_MAX)
      .map((item) => String(item).slice(0, ITEM_MAX)),
  );
}

export interface Brand {
  readonly brand: string;
  readonly version: string;
}

export function brands(read: () => Iterable<Brand>): { brand: string; version: string }[] | null {
  return attempt(() =>
    Array.from(read())
      .slice(0, 32)
      .map(({ brand, version }) => ({ brand: brand.slice(0, 256), version: version.slice(0, 64) })),
  );
}

/** @returns the promise's value, or null if it fails or takes longer than `ms` */
export function within<T>(ms: number, start: () => Promise<T>): Promise<T | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), ms);
    const finish = (value: T | null): void => {
      clearTimeout(timer);
      resolve(value);
    };
    try {
      start().then(finish, () => finish(null));
    } catch {
      finish(null);
    }
  });
}

/** Gives the page its main thread between two pieces of work. */
export function pause(ms = 0): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
