import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { fetchPublicKey } from '../../egress/gpd-client.ts';
import { SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/master-key.ts';
import { tryOr } from '../../lib/functions.ts';
import { parseUrl } from '../../lib/text.ts';
import type { SealedBundle } from '../../schema/bundle.ts';
import { sealSymmetric, sealTo } from '../../seal/seal.ts';
import { makeSealKeyStore } from '../../tenants/seal-keys.ts';
import { readTenantSecret } from '../../tenants/tenant-store.ts';
import { withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { misused, notFound, printLine } from '../output.ts';
import { type Flags, noSuchTenant } from '../run.ts';

const NONCE_BYTES = 16;

/** Fills in a missing nonce and clientTs; everything else is sealed as given, right or wrong. */
function completePlaintext(input: string): Buffer {
  const value = tryOr(() => JSON.parse(input) as unknown, undefined);
  if (value === undefined) throw misused('standard input is not JSON');
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw misused('standard input is not a JSON object');
  const filled = { nonce: randomBytes(NONCE_BYTES).toString('base64url'), clientTs: Date.now(), ...value };
  return Buffer.from(JSON.stringify(filled));
}

async function sealFromStore(kid: string, plaintext: Buffer, symmetric: boolean): Promise<SealedBundle> {
  return withContext(async ({ store: { database, masterKey } }) => {
    if (symmetric) {
      const wrapped = await readTenantSecret(database, kid, SYMMETRIC_SECRET);
      if (wrapped === null) {
        throw notFound(`${kid} has no symmetric key; \`gpd keys symmetric ${kid}\` makes one`);
      }
      const key = masterKey.unwrap(wrapped, tenantSecretContext(kid, SYMMETRIC_SECRET));
      return sealSymmetric(kid, key, plaintext, randomBytes);
    }
    const keys = await makeSealKeyStore(database).list(kid);
    const published = keys.find((key) => key.state === 'published');
    if (!published) throw noSuchTenant(kid);
    return sealTo(kid, Buffer.from(published.publicKey, 'base64'), plaintext, randomBytes);
  });
}

async function sealFromServer(kid: string, plaintext: Buffer, url: string): Promise<SealedBundle> {
  if (parseUrl(url) === null)
    throw misused('--url must be the address of a server, for instance http://127.0.0.1:8080');
  const recipient = await fetchPublicKey(url, kid);
  if (!recipient) throw notFound(`the server has no tenant ${kid}`);
  return sealTo(kid, recipient, plaintext, randomBytes);
}

async function seal(kid: string, options: Flags<'url', 'symmetric'>): Promise<void> {
  if (options.symmetric === true && options.url !== undefined)
    throw misused('a server never gives out a shared key: omit --url');
  const plaintext = completePlaintext(await text(io().stdin));
  const bundle =
    options.url === undefined
      ? await sealFromStore(kid, plaintext, options.symmetric === true)
      : await sealFromServer(kid, plaintext, options.url);
  printLine(JSON.stringify(bundle));
}

export const ACTIONS: Actions = { '': seal };
