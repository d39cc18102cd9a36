import type { Act } from '../../src/lib/act.ts';

/** Somebody at the command line. */
export const operatorAt = (at: number): Act => ({ role: 'operator', ref: 'somebody', at });
