import { randomBytes } from 'node:crypto';
import { makeContestWords } from '../../../src/rights/contests/contest-text.ts';

/** What was written about contests, under one key for every tenant. */
export const WORDS = makeContestWords(() => Buffer.alloc(32, 7), randomBytes);
