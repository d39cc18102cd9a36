import { LEDGER_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { signCheckpoint } from '../ledger/checkpoint.ts';
import { genesisEntry } from '../ledger/entries.ts';
import { leafHash } from '../ledger/merkle.ts';
import { makeNoteSigner } from '../ledger/note.ts';
import { logOrigin } from '../ledger/origin.ts';
import type { Random } from '../lib/random.ts';

const SEED_BYTES = 32;

export type NewLog = Omit<ReturnType<typeof newLog>, 'wrapped'>;

/** The wrapped seed of a tenant's log, and what its head and its first entry say. */
export function newLog(
  { masterKey, random }: { readonly masterKey: MasterKey; readonly random: Random },
  request: { readonly kid: string; readonly baseUrl: string; readonly now: number },
) {
  const { kid, baseUrl, now } = request;
  const seed = random(SEED_BYTES);
  const signer = makeNoteSigner(logOrigin(baseUrl, kid), seed);
  const { name: origin, vkey } = signer;
  const genesis = genesisEntry(now, vkey);
  // Over the genesis alone.
  const text = signCheckpoint(1, leafHash(genesis), signer);
  const wrapped = masterKey.wrap(seed, tenantSecretContext(kid, LEDGER_SECRET));
  return { wrapped, origin, vkey, genesis, checkpoint: { text, size: 1, signedAt: now } };
}
