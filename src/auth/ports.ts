import type { ApiKey } from './api-key.ts';

/** API keys of a tenant. Revoking is final; both bump the revision that running servers poll. */
export interface ApiKeyStore {
  insert(key: ApiKey): Promise<boolean>;
  list(kid?: string): Promise<readonly ApiKey[]>;
  /** The key as it is afterwards, or null when there is none of that id. */
  revoke(id: string, now: number): Promise<ApiKey | null>;
  /** Notes that a key was used on this day; says nothing when it fails. */
  touch(kid: string, id: string, day: string): Promise<void>;
}
