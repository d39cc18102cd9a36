import { randomBytes } from 'node:crypto';
import { createMasterKey } from '../../../src/keys/master-key.ts';
import { contestTextsOf } from '../../../src/rights/contests/contest.ts';

/** One key encrypts the contest texts of every tenant here. */
export const WORDS = contestTextsOf(() => ({ wrapper: createMasterKey(Buffer.alloc(32, 7), randomBytes) }));
