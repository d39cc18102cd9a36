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
  const twice = async <T>(ask: () => Promise<T>, lacks: (answer: T) => boolean): Promise<T> => {
    const answer = await ask();
    if (!lacks(answer)) return answer;
    await refresh();
    return ask();
  };
  return {
    check: (kid: string, request: Check) => twice(() => service.check(tenantOf(kid), request), isUnknown),
    checkAll: (kid: string, checks: readonly Check[]) =>
      twice(
        () => service.checkAll(tenantOf(kid), checks),
        (answers) => answers.some(isUnknown),
      ),
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
