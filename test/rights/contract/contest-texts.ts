import { randomBytes } from 'node:crypto';
import { makeMasterKey } from '../../../src/keys/master-key.ts';
import { contestTextsOf } from '../../../src/rights/contests/contest.ts';

/** What was written about contests, under one key for every tenant. */
export const WORDS = contestTextsOf(() => ({ wrapper: makeMasterKey(Buffer.alloc(32, 7), randomBytes) }));
