import { json, type ServedRoute } from '../http/register.ts';
import { Refusal } from '../lib/errors.ts';
import type { DecisionResponse } from '../schema/responses.ts';
import { ROUTES } from '../schema/routes.ts';

/** `GET /v1/decisions/{requestId}` for the tenant's backend. */

export interface DecisionDeps {
  readonly findDecision: (kid: string, requestId: string) => Promise<DecisionResponse | null>;
  /** URL under which clients reach this server. */
  readonly origin: () => string;
}

/** Contract 3.6. Another tenant's decision looks as if it did not exist. */
export function decisionRoutes({ findDecision, origin }: DecisionDeps): readonly ServedRoute[] {
  return [
    json(ROUTES.getDecision, async ({ caller, params: { requestId } }) => {
      const decision = requestId === null ? null : await findDecision(caller.kid, requestId);
      if (!decision) throw new Refusal('no-such-decision');
      return { ...decision, contestUrl: `${origin()}${ROUTES.getMyDataPage.path}?kid=${caller.kid}#contest` };
    }),
  ];
}
