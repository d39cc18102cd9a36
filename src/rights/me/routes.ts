import { present } from '../../attest/attest-routes.ts';
import { parseShape } from '../../http/json-body.ts';
import type { Handlers } from '../../http/register.ts';
import { Refusal } from '../../lib/errors.ts';
import { caseFilingSchema } from '../../schema/rights.ts';
import { sendDsar } from '../dsar/dsar-routes.ts';
import type { MeService } from './service.ts';

/** POST /me and POST /v1/principals/link: what a transparency token is good for (contract 3.5 and 6.1). */

export function meRoutes(service: MeService): Handlers<'me' | 'link'> {
  return {
    async me({ headers, network, body: { token, action, ...rest } }, response) {
      const presented = present(headers, token);
      await service.check(presented);
      response.set('cache-control', 'no-store');
      if (action === 'view') response.json(await service.view(presented));
      else if (action === 'forget') response.json(await service.forget(presented));
      else if (action === 'export') await sendDsar(response, await service.export(presented));
      else if (action === 'contest') {
        const filing = parseShape(rest, caseFilingSchema);
        response.status(202).json(await service.contest(presented, network, filing));
      } else throw new Refusal('invalid-request', { details: ['action: view, forget, export or contest'] });
    },
    link: ({ caller, headers, body }) => service.link(caller.session, present(headers, body.token)),
  };
}
