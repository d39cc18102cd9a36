import type { IncomingHttpHeaders } from 'node:http';
import { cookieValues, hasGpcHeader } from '../http/request.ts';
import { type Call, json, type ServedRoute } from '../http/routes.ts';
import { ROUTES } from '../schema/routes.ts';
import type { PasskeyCaller } from './admit-service.ts';
import type { Presented } from './ceremony.ts';
import type { AttestService } from './service.ts';

/** The routes of passkeys that tell one device from another (contract-2 section 16). */

export const present = ({ origin, cookie }: IncomingHttpHeaders, token: unknown): Presented => ({
  token,
  sessions: cookieValues(cookie, 'gp_session'),
  origin,
});

type Asked = Pick<Call<'none', never, never>, 'headers' | 'networkKey' | 'requestId'>;

export interface AttestRoutesDeps {
  readonly service: AttestService;
  /** Salts a client's network for a day. */
  readonly markNetwork: (network: string) => string;
}

/** POST /_fp/attest/v1/options and verify (contract-2 section 16). */
export function attestRoutes({ service, markNetwork }: AttestRoutesDeps): readonly ServedRoute[] {
  const askerOf = ({ headers, networkKey, requestId }: Asked, token: unknown): PasskeyCaller => ({
    presented: present(headers, token),
    gpc: hasGpcHeader(headers),
    requestId,
    network: markNetwork(networkKey),
  });
  return [
    json(ROUTES.startAttestation, async (call) => {
      const { token, ceremony } = await call.readBody();
      return service.options(askerOf(call, token), ceremony);
    }),
    json(ROUTES.finishAttestation, async (call) => {
      const { token, credential } = await call.readBody();
      return service.verify(askerOf(call, token), credential);
    }),
  ];
}
