import { randomBytes } from 'node:crypto';
import { type ApiKey, makeApiKey } from '../../auth/credentials.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { KEY_SCOPES } from '../../schema/route.ts';
import { makeApiKeyStore } from '../../tenants/api-key-store.ts';
import { command, withContext } from '../command.ts';
import { type Actions, REQUIRED } from '../define.ts';
import { notFound, print, printTable } from '../output.ts';
import { recordOutside } from '../outside.ts';
import { checkOneOf, confirmOnTerminal, type DestructiveFlags, noSuchTenant, requireTenant } from '../run.ts';

function describe({ id, kid, scope, name, createdAt, revokedAt, lastUsedOn }: ApiKey) {
  const times = { createdAt: isoTime(createdAt), revokedAt: iso(revokedAt), lastUsedAt: lastUsedOn };
  return { id, kid, scope, name, ...times };
}

async function create(kid: string, options: { readonly scope: string; readonly name: string }) {
  const scope = checkOneOf(KEY_SCOPES, options.scope, `--scope must be one of ${KEY_SCOPES.join(', ')}`);
  const { key, secret } = makeApiKey({ kid, scope, name: options.name }, Date.now(), randomBytes);
  await withContext(async ({ store, by }) => {
    if (!(await makeApiKeyStore(store.database).insert(key, await by(kid)))) throw noSuchTenant(kid);
    print({ id: key.id, scope, key: secret }, () => [secret]);
  });
}

const list = command(async ({ database }, kid: string | undefined) => {
  if (kid !== undefined) await requireTenant(database, kid);
  const keys = (await makeApiKeyStore(database).list(kid)).map(describe);
  printTable(keys, keys, {
    ID: 'id',
    KID: 'kid',
    SCOPE: 'scope',
    NAME: 'name',
    'LAST USED': ({ lastUsedAt }) => lastUsedAt ?? 'never',
    REVOKED: 'revokedAt',
  });
});

const revoke = command(async ({ store: opened, config, by }, id: string, options: DestructiveFlags) => {
  const store = makeApiKeyStore(opened.database);
  const known = (await store.list()).find((key) => key.id === id);
  if (!known) throw notFound(`no API key ${id}; \`gpd apikeys list\` shows them`);
  if (options.dryRun === true) {
    return print({ ...describe(known), dryRun: true }, () => [
      `would be revoked: ${id}, ${known.scope} of ${known.kid} (${known.name})`,
    ]);
  }
  // At once in a script: a key that leaked is not to wait for a flag.
  await confirmOnTerminal(options, `Revoking ${id} of ${known.kid} (${known.name}): its callers get 401`);
  const act = await by(known.kid);
  const key = (await store.revoke(id, act)) ?? known;
  await recordOutside(opened, config, `${id} is revoked`);
  print(describe(key), () => [`${id} is revoked; running servers refuse it within 5 s`]);
});

export const ACTIONS: Actions = {
  create: [create, { scope: REQUIRED, name: REQUIRED }, { scopes: KEY_SCOPES.join(', ') }],
  list,
  revoke,
};
