import { randomBytes } from 'node:crypto';
import { type ContestWords, makeContestWords } from '../../storage/contest-words.ts';
import type { ConsentTenant } from '../consent-tenant.ts';

/** Under the key that also wraps the keys of principals and the messages that wait. */
export function contestWordsOf(tenantOf: (kid: string) => ConsentTenant | undefined): ContestWords {
  return makeContestWords((kid) => tenantOf(kid)?.principalWrap, randomBytes);
}
