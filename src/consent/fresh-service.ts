import { Refusal } from '../lib/errors.ts';
import type { ConsentWrite, DecisionAnswer } from '../schema/consent.ts';
import type { Check, ConsentService } from './service.ts';
import type { ConsentTenant } from './tenant.ts';

/** What this node does not know, another one may have defined a moment ago: looked up before it is refused. */

export interface FreshDeps {
  readonly service: Pick<ConsentService, 'check' | 'checkAll' | 'checkTerms'>;
  /** @throws {TenantGone} */
  readonly tenantOf: (kid: string) => ConsentTenant;
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
}

export interface FreshConsent {
  check(kid: string, request: Check): Promise<DecisionAnswer>;
  checkAll(kid: string, checks: readonly Check[]): Promise<readonly DecisionAnswer[]>;
  /** @throws {Refusal} `unknown-purpose`, `invalid-request` */
  checkTerms(kid: string, body: ConsentWrite): Promise<void>;
}

const isUnknown = ({ reason }: DecisionAnswer): boolean => reason === 'unknown-purpose';

export function makeFreshConsent({ service, tenantOf, refresh }: FreshDeps): FreshConsent {
  return {
    async check(kid, request) {
      const answer = await service.check(tenantOf(kid), request);
      if (!isUnknown(answer)) return answer;
      await refresh();
      return service.check(tenantOf(kid), request);
    },
    async checkAll(kid, checks) {
      const answers = await service.checkAll(tenantOf(kid), checks);
      if (!answers.some(isUnknown)) return answers;
      await refresh();
      return service.checkAll(tenantOf(kid), checks);
    },
    async checkTerms(kid, body) {
      try {
        service.checkTerms(tenantOf(kid), body);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        await refresh();
        service.checkTerms(tenantOf(kid), body);
      }
    },
  };
}
