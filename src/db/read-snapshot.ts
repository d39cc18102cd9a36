import type { Knex } from 'knex';
import { asUnavailable } from './availability.ts';

/** Reads of one moment: each client begins a `readOnly` transaction as its database takes a snapshot. */
export function snapshotOn(read: Knex) {
  return async <T>(work: (tx: Knex.Transaction) => Promise<T>): Promise<T> => {
    try {
      return await read.transaction(work, { readOnly: true });
    } catch (error) {
      throw asUnavailable(error);
    }
  };
}
