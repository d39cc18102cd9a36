import type { Act } from '../../src/lib/act.ts';

/** A person at the command line, for the audit rows of a store's write. */
export const operatorAt = (at: number): Act => ({ role: 'operator', ref: 'somebody', at });
