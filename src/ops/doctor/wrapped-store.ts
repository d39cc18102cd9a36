import type { Database } from '../../db/db.ts';
import { tenantSecretContexts, webhookSecretContext } from '../../keys/contexts.ts';
import { wrapContext } from '../../keys/generation.ts';
import type { WrapContext } from '../../keys/master-key.ts';

/** Everything that the master key has to open. */

export interface Wrapped {
  readonly name: string;
  readonly wrapped: string;
  /** Any of them. */
  readonly contexts: readonly WrapContext[];
}

export async function allWrapped({ read }: Database): Promise<Wrapped[]> {
  type Secret = { kid: string; purpose: string; wrapped: string };
  type SealKey = { kid: string; generation: number; wrapped_private: string };
  type Hook = { kid: string; id: string; wrapped_secret: string };
  const secrets = await read('tenant_secrets').select<Secret[]>('kid', 'purpose', 'wrapped');
  const keys = await read('seal_keys')
    .whereNotNull('wrapped_private')
    .select<SealKey[]>('kid', 'generation', 'wrapped_private');
  const hooks = await read('webhooks').select<Hook[]>('kid', 'id', 'wrapped_secret');
  return [
    ...secrets.map(({ kid, purpose, wrapped }) => {
      return { name: `${purpose} of ${kid}`, wrapped, contexts: tenantSecretContexts(kid, purpose) };
    }),
    ...keys.map(({ kid, generation, wrapped_private: wrapped }) => {
      return { name: `seal key ${generation} of ${kid}`, wrapped, contexts: [wrapContext(kid, generation)] };
    }),
    ...hooks.map(({ kid, id, wrapped_secret: wrapped }) => {
      return { name: `webhook ${id} of ${kid}`, wrapped, contexts: [webhookSecretContext(kid, id)] };
    }),
  ];
}
