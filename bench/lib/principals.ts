import { randomBytes } from 'node:crypto';
import { hashSecret, makeApiKeySecret } from '../../src/auth/credentials.ts';
import { loadConfig } from '../../src/config.ts';
import { type Bindings, insertMany } from '../../src/db/sql.ts';
import {
  makeMasterKey,
  principalKeyContext,
  ROOT_SECRET,
  tenantSecretContext,
} from '../../src/keys/master-key.ts';
import { DAY } from '../../src/lib/clock.ts';
import { makeApiKeyStore } from '../../src/tenants/api-key-store.ts';
import { openStore, type Store } from '../../src/tenants/installation-files.ts';
import { makeStateMac } from '../../src/tenants/state-mac.ts';
import { deriveTenantKeys, principalRef, type TenantKeys } from '../../src/tenants/tenant.ts';
import { readTenantSecret } from '../../src/tenants/tenant-store.ts';
import { operatorAt } from '../../test/support/act.ts';

/** People with a live grant, written straight into the tables that a decision reads; the log itself stays as it was. */

export const PURPOSE = 'device-identification';
const CHUNK = 3000;

export const principalId = (i: number): string => `person-${i}@shop.example`;

async function tenantKeys({ database, masterKey }: Store, kid: string): Promise<TenantKeys> {
  const wrapped = await readTenantSecret(database, kid, ROOT_SECRET);
  if (wrapped === null) throw new Error('the template has no root secret');
  return deriveTenantKeys(masterKey.unwrap(wrapped, tenantSecretContext(kid, ROOT_SECRET)));
}

async function seed(store: Store, kid: string, count: number): Promise<void> {
  const keys = await tenantKeys(store, kid);
  // One wrapped key stands for all: a decision does not open it, it only has to be as long.
  const wrapper = makeMasterKey(keys.principalWrap, randomBytes);
  const wrapped = wrapper.wrap(randomBytes(32), principalKeyContext(kid, principalId(0)));
  const mac = makeStateMac(kid, keys.state);
  const [now, hash] = [Date.now(), randomBytes(32).toString('hex')];
  await store.database.transaction(async (tx) => {
    for (let start = 0; start < count; start += CHUNK) {
      const refs = Array.from({ length: Math.min(CHUNK, count - start) }, (_, i) =>
        principalRef(keys.principal, principalId(start + i)),
      );
      const who = { gpc: false, except: null, erasedAt: null };
      const people = refs.map((ref): Bindings => [kid, ref, wrapped, 0, null, mac.ofPrincipal(ref, who)]);
      const head = 'INSERT INTO consent_principals (kid, principal, wrapped_key, gpc, erased_at, mac)';
      await insertMany(tx, head, people);
      const states = refs.map((ref, i): Bindings => {
        const said = { choice: 'granted', policyVersion: 0, expiresAt: now + 180 * DAY, at: now } as const;
        const row = { ...said, seq: start + i, hash };
        const { choice, policyVersion, expiresAt, at, seq } = row;
        const sealed = mac.ofState(ref, PURPOSE, { ...row, overGpc: false, given: null, doubtSeq: null });
        return [kid, ref, PURPOSE, choice, policyVersion, expiresAt, at, seq, hash, sealed];
      });
      const columns = 'kid, principal, purpose, choice, policy_version, expires_at, at, seq, hash, mac';
      await insertMany(tx, `INSERT INTO consent_state (${columns})`, states);
    }
  });
}

/** @returns a secret API key of the tenant */
export async function addPrincipals(data: string, kid: string, count: number): Promise<string> {
  const store = await openStore(loadConfig({ environment: { GPD_DATA_DIR: data }, flags: {} }));
  try {
    if (count > 0) await seed(store, kid, count);
    const secret = makeApiKeySecret('secret', randomBytes);
    const times = { createdAt: Date.now(), revokedAt: null, lastUsedOn: null };
    const named = { id: 'key_bench', kid, scope: 'secret' as const, name: 'bench' };
    await makeApiKeyStore(store.database).insert(
      { ...named, hash: hashSecret(secret), ...times },
      operatorAt(Date.now()),
    );
    return secret;
  } finally {
    await store.database.close();
  }
}
