/** A row of a table under the names that the code has for its columns: `created_at` is `createdAt`. */

type Snake<Name extends string> = Name extends `${infer Head}${infer Tail}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Tail>}`
  : '';

export type Columns<T> = { readonly [Name in keyof T & string as Snake<Name>]: T[Name] };

const renamed = (value: object, rename: (name: string) => string): unknown =>
  Object.fromEntries(Object.entries(value).map(([name, cell]) => [rename(name), cell]));

export const toColumns = <T extends object>(value: T): Columns<T> =>
  renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)) as Columns<T>;

export const fromColumns = <T extends object>(row: Columns<T>): T =>
  renamed(row, (name) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())) as T;
