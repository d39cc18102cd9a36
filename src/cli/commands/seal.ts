import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { fetchPublicKey } from '../../egress/gpd-client.ts';
import { SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/master-key.ts';
import { tryOr } from '../../lib/errors.ts';
import { parseUrl } from '../../lib/text.ts';
import type { SealedBundle } from '../../schema/bundle.ts';
import { sealSymmetric, sealTo } from '../../seal/seal.ts';
import { listSealKeys, readTenantSecret } from '../../tenants/secrets-store.ts';
import {
  type CommandContext,
  command,
  example,
  type Flags,
  noSuchTenant,
  ONLY_KID,
} from '../command-service.ts';
import { io, misused, notFound, printLine } from '../io-service.ts';

export function define(seal: Command): void {
  seal
    .argument(...ONLY_KID)
    .option('--url <url>', 'get the public key from this server instead of the database')
    .option('--symmetric', 'use the legacy form, under the shared key')
    .addHelpText('after', example('gpd seal shop < plaintext.json'))
    .action(command(sealInput));
}

const NONCE_BYTES = 16;

/**
 * Adds a missing nonce and clientTs. Everything else is sealed unchecked, so that tests can send invalid
 * bundles.
 */
function completePlaintext(input: string): Buffer {
  const value = tryOr(() => JSON.parse(input) as unknown, undefined);
  if (value === undefined) throw misused('standard input is not JSON');
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw misused('standard input is not a JSON object');
  const filled = { nonce: randomBytes(NONCE_BYTES).toString('base64url'), clientTs: Date.now(), ...value };
  return Buffer.from(JSON.stringify(filled));
}

async function sealFromStore(
  { open, resolveKid }: CommandContext,
  kidArgument: string | undefined,
  { plaintext, symmetric }: { readonly plaintext: Buffer; readonly symmetric: boolean },
): Promise<SealedBundle> {
  const { database, masterKey } = await open();
  const kid = await resolveKid(kidArgument);
  if (symmetric) {
    const wrapped = await readTenantSecret(database, kid, SYMMETRIC_SECRET);
    if (wrapped === null) {
      throw notFound(`${kid} has no symmetric key; \`gpd keys symmetric ${kid}\` makes one`);
    }
    const key = masterKey.unwrap(wrapped, tenantSecretContext(kid, SYMMETRIC_SECRET));
    return sealSymmetric(kid, key, plaintext, randomBytes);
  }
  const keys = await listSealKeys(database.read, kid);
  const published = keys.find((key) => key.state === 'published');
  if (!published) throw noSuchTenant(kid);
  return sealTo(kid, Buffer.from(published.publicKey, 'base64'), plaintext, randomBytes);
}

async function sealFromServer(
  kid: string | undefined,
  plaintext: Buffer,
  url: string,
): Promise<SealedBundle> {
  if (kid === undefined) throw misused('missing argument <kid>: a server does not list its tenants');
  if (parseUrl(url) === null)
    throw misused(`--url ${url}: must be the address of a server, for instance http://127.0.0.1:8080`);
  const recipient = await fetchPublicKey(url, kid);
  if (!recipient) throw notFound(`the server has no tenant ${kid}`);
  return sealTo(kid, recipient, plaintext, randomBytes);
}

async function sealInput(
  context: CommandContext,
  kid: string | undefined,
  { url, symmetric = false }: Flags<'url', 'symmetric'>,
): Promise<void> {
  if (symmetric && url !== undefined) throw misused('a server never gives out a shared key: omit --url');
  const plaintext = completePlaintext(await text(io().stdin));
  const bundle =
    url === undefined
      ? await sealFromStore(context, kid, { plaintext, symmetric })
      : await sealFromServer(kid, plaintext, url);
  printLine(JSON.stringify(bundle));
}
