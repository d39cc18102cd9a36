import type { ApiKey } from './api-key.ts';
import type { SigningAlgorithm, SigningKey } from './jwks.ts';

/** API keys of a tenant. Revoking is final; both bump the revision that running servers poll. */
export interface ApiKeyStore {
  insert(key: ApiKey): Promise<boolean>;
  list(kid?: string): Promise<readonly ApiKey[]>;
  /** The key as it is afterwards, or null when there is none of that id. */
  revoke(id: string, now: number): Promise<ApiKey | null>;
  /** Notes that a key was used on this day; says nothing when it fails. */
  touch(kid: string, id: string, day: string): Promise<void>;
}

/** The keys of the identity provider that signs bearer tokens. */
export interface IssuerKeys {
  /**
   * The keys that may have signed a token with this header, none when the provider has no such key. An unknown kid makes
   * it look again at the provider, at most once in a while; keys once learnt are served while the provider is away.
   * @throws {Unavailable} when no keys were ever learnt and the provider cannot be read now
   */
  candidates(alg: SigningAlgorithm, kid: string | null): Promise<readonly SigningKey[]>;
}
