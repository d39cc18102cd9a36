import { Refusal } from '../lib/errors.ts';
import type { ConsentWrite, DecisionAnswer } from '../schema/consent.ts';
import type { Check, ConsentService } from './service.ts';
import type { ConsentTenant } from './tenant.ts';

/** What this node does not know, another one may have defined a moment ago: looked up before it is refused. */

interface Deps {
  readonly service: Pick<ConsentService, 'check' | 'checkAll' | 'checkTerms'>;
  /** @throws {TenantGone} */
  readonly tenantOf: (kid: string) => ConsentTenant;
  /** Reads what changed in the database before this call. */
  readonly refresh: () => Promise<void>;
}

const isUnknown = ({ reason }: DecisionAnswer): boolean => reason === 'unknown-purpose';

export function makeFreshConsent({ service, tenantOf, refresh }: Deps) {
  return {
    async check(kid: string, request: Check): Promise<DecisionAnswer> {
      const answer = await service.check(tenantOf(kid), request);
      if (!isUnknown(answer)) return answer;
      await refresh();
      return service.check(tenantOf(kid), request);
    },
    async checkAll(kid: string, checks: readonly Check[]): Promise<readonly DecisionAnswer[]> {
      const answers = await service.checkAll(tenantOf(kid), checks);
      if (!answers.some(isUnknown)) return answers;
      await refresh();
      return service.checkAll(tenantOf(kid), checks);
    },
    /** @throws {Refusal} `unknown-purpose`, `invalid-request` */
    async checkTerms(kid: string, body: ConsentWrite): Promise<void> {
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

export type FreshConsent = ReturnType<typeof makeFreshConsent>;
