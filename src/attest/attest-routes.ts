import type { IncomingHttpHeaders } from 'node:http';
import { cookieValues } from '../http/cookies.ts';
import { hasGpcHeader } from '../http/network.ts';
import type { Handlers } from '../http/register.ts';
import type { Asker } from './admit-service.ts';
import { COOKIE_NAME, instructionsOf } from './binding.ts';
import type { BindingService } from './binding-service.ts';
import type { Presented } from './presented.ts';
import { unquote } from './proof.ts';
import type { AttestService } from './service.ts';

const PROOF = 'secure-session-response';
const fieldOf = ({ headers }: Pick<Asked, 'headers'>, name: string): string => String(headers[name] ?? '');

export function present({ origin, cookie }: IncomingHttpHeaders, token: unknown): Presented {
  const [sessions, bound] = [cookieValues(cookie, 'gp_session'), cookieValues(cookie, COOKIE_NAME)];
  return { token, sessions, origin, bound };
}

interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly network: string;
  readonly requestId: string;
  readonly body: { readonly token?: unknown } | undefined;
}

export interface AttestRoutesDeps {
  readonly service: AttestService;
  readonly binding: BindingService;
  /** Salts a client's network for a day. */
  readonly markNetwork: (network: string) => string;
}

/** POST /_fp/attest/v1/options and verify (contract-2 section 16); session and its refresh (W3C dbsc-1). */
export function attestRoutes({
  service,
  binding,
  markNetwork,
}: AttestRoutesDeps): Handlers<'attestOptions' | 'attestVerify' | 'bindSession' | 'refreshSession'> {
  const askerOf = ({ headers, network, requestId, body }: Asked): Asker => ({
    presented: present(headers, body?.token),
    gpc: hasGpcHeader(headers),
    requestId,
    network: markNetwork(network),
  });
  return {
    attestOptions: (call) => service.options(askerOf(call), call.body.ceremony),
    attestVerify: (call) => service.verify(askerOf(call), call.body.credential),
    async bindSession(call, response) {
      const { cookies, instructions } = await binding.register(askerOf(call), fieldOf(call, PROOF));
      response.append('set-cookie', cookies);
      return instructions;
    },
    async refreshSession(call, response) {
      const id = unquote(fieldOf(call, 'sec-secure-session-id'));
      const set = await binding.refresh(askerOf(call), id, fieldOf(call, PROOF));
      if ('cookies' in set) response.append('set-cookie', set.cookies);
      else response.status(403).set('secure-session-challenge', `"${set.challenge}";id="${id}"`);
      return instructionsOf(id);
    },
  };
}
