import { LEDGER_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { genesisEntry } from '../ledger/entries.ts';
import { makeNoteSigner } from '../ledger/note.ts';
import { logOrigin } from '../ledger/origin.ts';
import type { Random } from '../lib/random.ts';

/** The wrapped seed of a tenant's log, and what its head and its first entry say. */
export function newLog(
  { masterKey, random }: { readonly masterKey: MasterKey; readonly random: Random },
  request: { readonly kid: string; readonly baseUrl: string; readonly now: number },
): {
  readonly wrapped: string;
  readonly origin: string;
  readonly vkey: string;
  readonly genesis: Uint8Array;
} {
  const { kid, baseUrl, now } = request;
  const seed = random(32);
  const { name: origin, vkey } = makeNoteSigner(logOrigin(baseUrl, kid), seed);
  const wrapped = wrapTenantSecret(masterKey, kid, LEDGER_SECRET, seed);
  return { wrapped, origin, vkey, genesis: genesisEntry(now, vkey) };
}

export function wrapTenantSecret(
  masterKey: MasterKey,
  kid: string,
  purpose: string,
  secret: Uint8Array,
): string {
  return masterKey.wrap(secret, tenantSecretContext(kid, purpose));
}
