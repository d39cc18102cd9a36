import { LEDGER_SECRET, tenantSecretContext } from '../keys/contexts.ts';
import type { MasterKey } from '../keys/master-key.ts';
import { signCheckpoint } from '../ledger/checkpoint.ts';
import { genesisEntry } from '../ledger/entries.ts';
import { leafHash } from '../ledger/merkle.ts';
import { makeNoteSigner } from '../ledger/note.ts';
import { logOrigin } from '../ledger/origin.ts';
import type { Random } from '../lib/random.ts';
import type { StoredCheckpoint } from './checkpoint-store.ts';

const SEED_BYTES = 32;
/**
 * Behind the seed of a log whose checkpoints are in checkpoints.log from its first entry on. Only who has the master key can
 * write or delete it: a deleted file does not pass for one that never existed.
 */
const CHECKPOINTED = Buffer.from([1]);

export interface LogSecret {
  readonly seed: Buffer;
  readonly checkpointed: boolean;
}

export function readLogSecret(secret: Buffer): LogSecret {
  return { seed: secret.subarray(0, SEED_BYTES), checkpointed: secret.length > SEED_BYTES };
}

export function wrapLogSecret(masterKey: MasterKey, kid: string, seed: Uint8Array): string {
  return wrapTenantSecret(masterKey, kid, LEDGER_SECRET, Buffer.concat([seed, CHECKPOINTED]));
}

export interface NewLog {
  readonly origin: string;
  readonly vkey: string;
  readonly genesis: Uint8Array;
  /** Over the genesis alone. */
  readonly checkpoint: StoredCheckpoint;
}

/** The wrapped seed of a tenant's log, and what its head and its first entry say. */
export function newLog(
  { masterKey, random }: { readonly masterKey: MasterKey; readonly random: Random },
  request: { readonly kid: string; readonly baseUrl: string; readonly now: number },
): NewLog & { readonly wrapped: string } {
  const { kid, baseUrl, now } = request;
  const seed = random(SEED_BYTES);
  const signer = makeNoteSigner(logOrigin(baseUrl, kid), seed);
  const { name: origin, vkey } = signer;
  const genesis = genesisEntry(now, vkey);
  const text = signCheckpoint(1, leafHash(genesis), signer);
  const wrapped = wrapLogSecret(masterKey, kid, seed);
  return { wrapped, origin, vkey, genesis, checkpoint: { text, size: 1, signedAt: now } };
}

export function wrapTenantSecret(masterKey: MasterKey, kid: string, purpose: string, secret: Uint8Array) {
  return masterKey.wrap(secret, tenantSecretContext(kid, purpose));
}
