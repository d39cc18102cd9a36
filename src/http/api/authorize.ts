import type { IncomingMessage } from 'node:http';
import { type ApiKey, bearerToken, type KeyScope } from '../../auth/api-key.ts';
import { Refusal } from '../../lib/errors.ts';
import type { Limiter } from '../hot.ts';

export interface AuthorizeDeps {
  /** By the secret as presented; null for unknown and revoked alike. */
  readonly findApiKey: (secret: string) => ApiKey | null;
  readonly limiter: Limiter;
}

/** Rate, then 401, then 403 (contract section 1). @throws {Refusal} */
export async function authorize(
  deps: AuthorizeDeps,
  request: IncomingMessage,
  scopes: readonly KeyScope[],
): Promise<ApiKey> {
  const secret = bearerToken(request.headers.authorization);
  const key = secret === null ? null : deps.findApiKey(secret);
  if (!key) throw new Refusal('unauthenticated', { headers: { 'www-authenticate': 'Bearer' } });
  const wait = await deps.limiter(key.hash);
  if (wait > 0) throw new Refusal('rate-limited', { headers: { 'retry-after': String(wait) } });
  if (!scopes.includes(key.scope)) throw new Refusal('insufficient-scope');
  return key;
}
