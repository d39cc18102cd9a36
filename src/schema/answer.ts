import type { z } from 'zod';

/** Makes arrays and objects read-only, at each depth. */

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Name in keyof T]: Frozen<T[Name]> }
    : T;

/** The type of an answer with this schema. */
export type Answer<Schema extends z.ZodType> = Frozen<z.output<Schema>>;
