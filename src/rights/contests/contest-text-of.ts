import { randomBytes } from 'node:crypto';
import type { ConsentTenant } from '../../consent/tenant.ts';
import { type ContestWords, makeContestWords } from './contest-text.ts';

/** Under the key that also wraps the keys of principals and the messages that wait. */
export function contestWordsOf(tenantOf: (kid: string) => ConsentTenant | undefined): ContestWords {
  return makeContestWords((kid) => tenantOf(kid)?.principalWrap, randomBytes);
}
