import { randomBytes } from 'node:crypto';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { contestTextsOf } from '../../../src/rights/contests/contest.ts';

/** What was written about contests, under one key for every tenant. */
export const WORDS = contestTextsOf(() => ({ wrapper: createMasterKey(Buffer.alloc(32, 7), randomBytes) }));
