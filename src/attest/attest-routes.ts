import type { IncomingHttpHeaders } from 'node:http';
import type { Handlers } from '../http/register.ts';
import { cookieValues, hasGpcHeader } from '../http/request.ts';
import type { Asker } from './admit-service.ts';
import type { Presented } from './ceremony.ts';
import type { AttestService } from './service.ts';

export const present = ({ origin, cookie }: IncomingHttpHeaders, token: unknown): Presented => ({
  token,
  sessions: cookieValues(cookie, 'gp_session'),
  origin,
});

interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly network: string;
  readonly requestId: string;
  readonly body: { readonly token?: unknown } | undefined;
}

export interface AttestRoutesDeps {
  readonly service: AttestService;
  /** Salts a client's network for a day. */
  readonly markNetwork: (network: string) => string;
}

/** POST /_fp/attest/v1/options and verify (contract-2 section 16). */
export function attestRoutes({
  service,
  markNetwork,
}: AttestRoutesDeps): Handlers<'attestOptions' | 'attestVerify'> {
  const askerOf = ({ headers, network, requestId, body }: Asked): Asker => ({
    presented: present(headers, body?.token),
    gpc: hasGpcHeader(headers),
    requestId,
    network: markNetwork(network),
  });
  return {
    attestOptions: (call) => service.options(askerOf(call), call.body.ceremony),
    attestVerify: (call) => service.verify(askerOf(call), call.body.credential),
  };
}
