import type { BotAuthDeps } from '../agents/verify.ts';
import { MINUTE } from '../lib/clock.ts';
import { Refusal } from '../lib/errors.ts';
import { sha256Text } from '../lib/hash.ts';
import { type AdmitDeps, type Asker, boundNonce, visitOf } from './admit-service.ts';
import {
  type Binding,
  boundCookies,
  decryptBinding,
  encryptBinding,
  instructionsOf,
  isBindable,
  type Keyring,
  rootOf,
} from './binding.ts';
import { type ChallengeBinding, challengeKeyOf, makeChallenge, readChallenge } from './challenge.ts';
import { Failed, telling } from './failed.ts';
import { isProven, type Proof, readProof } from './proof.ts';

/** Binds a session to a key of the device, and takes fresh proofs of that key (W3C dbsc-1, ADR 0051). */

export interface BindingDeps extends AdmitDeps, Keyring {
  /** Once, on all nodes together. */
  readonly claim: BotAuthDeps['claimNonce'];
}

export type BindingService = ReturnType<typeof makeBindingService>;

/** Longer than a challenge and a token live. */
const CLAIM_MS = 10 * MINUTE;

/** By the binding's key alone, for what it was made, and once. */
async function take(
  deps: BindingDeps,
  proof: Proof,
  { key, nonce, ...about }: ChallengeBinding & { readonly key: Binding['key']; readonly nonce: string },
  bundle: string,
): Promise<void> {
  const now = deps.clock();
  if (readChallenge(challengeKeyOf(deps), now, proof.jti, about) === null) throw new Failed('challenge');
  if (!(await isProven(proof, key))) throw new Failed('signature');
  if (!(await deps.claim({ nonce, bundle, expiresAt: now + CLAIM_MS }))) throw new Failed('replay');
  deps.onOutcome(about.ceremony === 'bind' ? 'bound' : 'refreshed', about.kid);
}

const answerOf = (deps: BindingDeps, binding: Binding, id: string) => ({
  instructions: instructionsOf(id),
  cookies: boundCookies(deps, binding, deps.clock()),
});

/** The challenge and the token, or the encrypted identifier, hold the origin: a browser that names one names the same. */
async function register(deps: BindingDeps, { presented, gpc, requestId: bundle }: Asker, field: string) {
  const proof = readProof(field);
  if (!proof?.jwk) throw new Failed('malformed');
  const { jwk: key } = proof;
  const [named = '', token = ''] = proof.authorization?.split(' ') ?? [];
  const { origin = named } = presented;
  const opened = deps.openToken({ ...presented, token, origin });
  const { kid, requestId, principalId, session, tenant } = await visitOf(deps, opened, origin, gpc);
  const root = rootOf(session);
  const about = { token, kid, ceremony: 'bind', rpId: origin, key, nonce: boundNonce(kid, root) } as const;
  if (!tenant.bindsSessions) throw new Failed('unknown');
  await take(deps, proof, about, bundle);
  const binding = { kid, origin, root, requestId, principalId, key };
  return answerOf(deps, binding, encryptBinding(deps, 'id', binding, deps.clock()));
}

/** A challenge where no proof came. */
async function refresh(deps: BindingDeps, { presented, gpc, requestId }: Asker, id: string, field: string) {
  const { serverSecret, random, clock } = deps;
  const binding = decryptBinding(serverSecret, 'id', id, clock());
  const { origin = binding?.origin ?? '' } = presented;
  const { tenant, kid } = await visitOf(deps, binding && { ...binding, session: '' }, origin, gpc);
  // What the last bundle said: the visit that the session was bound at may be long ago.
  if (!presented.sessions.some(isBindable)) throw new Refusal('consent-missing');
  if (!binding || !tenant.bindsSessions) throw new Failed('unknown');
  const about = { token: id, kid, ceremony: 'refresh', rpId: origin } as const;
  if (field === '') return { challenge: makeChallenge(challengeKeyOf(deps), random, clock(), about) };
  const proof = readProof(field);
  if (!proof || proof.jwk) throw new Failed('malformed');
  const nonce = sha256Text(`gpd/refresh ${proof.jti}`);
  await take(deps, proof, { ...about, key: binding.key, nonce }, requestId);
  return answerOf(deps, binding, id);
}

/** Each throws a Refusal: 401 for token and identifier, 451 for the consent, 404 where the visit is gone, 400 for the rest alike. */
export const makeBindingService = (deps: BindingDeps) => ({
  register: (asker: Asker, field: string) => telling(deps, asker.presented, register(deps, asker, field)),
  refresh: (asker: Asker, id: string, field: string) =>
    telling(deps, asker.presented, refresh(deps, asker, id, field)),
});
