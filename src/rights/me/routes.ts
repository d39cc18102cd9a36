import type { IncomingHttpHeaders } from 'node:http';
import { cookieValues } from '../../http/cookies.ts';
import type { Handlers } from '../../http/register.ts';
import { Refusal } from '../../lib/errors.ts';
import type { MeService, Presented } from './service.ts';

/** POST /me and POST /v1/principals/link: what a transparency token is good for (contract 3.5 and 6.1). */

function present({ origin, cookie }: IncomingHttpHeaders, token: unknown): Presented {
  return { token, sessions: cookieValues(cookie, 'gp_session'), origin };
}

export function meRoutes(service: MeService): Handlers<'me' | 'link'> {
  return {
    me({ headers, body: { token, action } }) {
      const presented = present(headers, token);
      service.check(presented);
      if (action === 'view') return service.view(presented);
      if (action === 'forget') return service.forget(presented);
      throw new Refusal('invalid-request', { details: ['action: view or forget'] });
    },
    link: ({ caller, headers, body }) => service.link(caller.session, present(headers, body.token)),
  };
}
