import type { Handlers } from '../http/register.ts';
import type { ConsentTenant } from './tenant.ts';
import {
  definePurposes,
  policiesOf,
  publishNextPolicy,
  purposesOf,
  type TermsDeps,
} from './terms-service.ts';

export interface TermsRouteDeps extends TermsDeps {
  /** @throws {TenantGone} */
  readonly tenantOf: (kid: string) => ConsentTenant;
}

/** Purposes and policy versions: any key reads them, an operator's writes them. */
export function termsRoutes(
  deps: TermsRouteDeps,
): Handlers<'purposes' | 'savePurposes' | 'policies' | 'publishPolicy'> {
  return {
    purposes: ({ caller }) => purposesOf(deps, caller.kid),
    savePurposes: ({ caller, body }) =>
      definePurposes(deps, deps.tenantOf(caller.kid), body.purposes, caller.key.id),
    policies: ({ caller }) => policiesOf(deps, caller.kid),
    publishPolicy: ({ caller, body }) =>
      publishNextPolicy(deps, deps.tenantOf(caller.kid), body, caller.key.id),
  };
}
