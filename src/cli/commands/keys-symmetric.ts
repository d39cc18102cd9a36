import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/contexts.ts';
import { decodeBase64 } from '../../lib/base64.ts';
import { makeTenantStore, readTenantSecret, saveTenantSecret } from '../../tenants/tenant-store.ts';
import { io } from '../io.ts';
import { withOperator } from '../operator.ts';
import { misused, print } from '../output.ts';
import { confirmOnTerminal, type DestructiveFlags, type Flags, noSuchTenant } from '../run.ts';

/** From a file, or - for standard input; never from an argument, which every user of the machine sees. Null: no base64. */
async function readSharedKey(file: string): Promise<Buffer | null> {
  try {
    const content = file === '-' ? await text(io().stdin) : readFileSync(file, 'latin1');
    return decodeBase64(content.trim());
  } catch {
    return null;
  }
}

/** The legacy shared key. A second one replaces the first, which opens nothing any more. */
export async function symmetric(kid: string, options: DestructiveFlags & Flags<'import'>): Promise<void> {
  const given = options.import === undefined ? randomBytes(32) : await readSharedKey(options.import);
  if (given?.length !== 32)
    throw misused('--import must name a file with the base64 of 32 bytes, or - for standard input');
  await withOperator(async ({ store: { database, masterKey }, by }) => {
    const replaces = (await readTenantSecret(database, kid, SYMMETRIC_SECRET)) !== null;
    if (options.dryRun === true) {
      const kids = await makeTenantStore(database).kids();
      if (!kids.includes(kid)) throw noSuchTenant(kid);
      return print({ kid, dryRun: true, replaces }, () => [
        replaces ? `would replace the shared key of ${kid}` : `would be the first shared key of ${kid}`,
      ]);
    }
    if (replaces) {
      await confirmOnTerminal(
        options,
        `${kid} already has a shared key; a new one cannot decrypt earlier bundles`,
      );
    }
    const wrapped = masterKey.wrap(given, tenantSecretContext(kid, SYMMETRIC_SECRET));
    if (!(await saveTenantSecret(database, kid, SYMMETRIC_SECRET, wrapped, by(kid)))) throw noSuchTenant(kid);
    const key = given.toString('base64');
    print({ kid, key }, () => [key]);
  });
}
