import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import { type ApiKey, createApiKey } from '../../auth/credentials.ts';
import type { Database } from '../../db/engine.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { KEY_SCOPES } from '../../schema/route.ts';
import { createApiKeyStore } from '../../tenants/api-key-store.ts';
import {
  addCommand,
  type CommandContext,
  checkOneOf,
  type Flags,
  noSuchTenant,
  ONE_KID,
  requireTenant,
  YES,
} from '../command-service.ts';
import {
  confirmOnTerminal,
  conflict,
  type DestructiveFlags,
  notFound,
  print,
  printTable,
} from '../io-service.ts';

export function define(apikeys: Command): void {
  addCommand(apikeys, 'create [kid]', create, {
    about: 'create a key; print it once',
    example: "gpd apikeys create shop --scope secret --name 'shop backend'",
  })
    .requiredOption('--scope <scope>', KEY_SCOPES.join(', '))
    .requiredOption('--name <name>', 'what it is for');
  addCommand(apikeys, 'list', list, {
    about: 'list the keys, without their secrets',
    example: 'gpd apikeys list shop',
  }).argument(...ONE_KID);
  addCommand(apikeys, 'rotate', rotate, {
    about: 'create a key of the same scope and name, print it once, and revoke the old one',
    example: 'gpd apikeys rotate key_01KAY0 --keep-old',
  })
    .argument('<id>', 'id of the key')
    .option('--keep-old', 'leave the old key in use; revoke it when its callers have the new one')
    .option(...YES)
    .option('--dry-run', 'show which key it is; change nothing');
  addCommand(apikeys, 'revoke', revoke, {
    about: 'revoke an API key',
    example: 'gpd apikeys revoke key_01KAY0',
  })
    .argument('<id>', 'id of the key')
    .option(...YES)
    .option('--dry-run', 'show which key it is; change nothing');
}

function describe({ id, kid, scope, name, createdAt, revokedAt, lastUsedOn }: ApiKey) {
  const times = { createdAt: isoTime(createdAt), revokedAt: iso(revokedAt), lastUsedAt: lastUsedOn };
  return { id, kid, scope, name, ...times };
}

async function create(
  { open, resolveKid, by }: CommandContext,
  kidArgument: string | undefined,
  { scope: scopeText, name }: { readonly scope: string; readonly name: string },
): Promise<void> {
  const scope = checkOneOf('--scope', scopeText, KEY_SCOPES);
  const { database } = await open();
  const kid = await resolveKid(kidArgument);
  const { key, secret } = createApiKey({ kid, scope, name }, Date.now(), randomBytes);
  if (!(await createApiKeyStore(database).insert(key, await by(kid)))) throw noSuchTenant(kid);
  print({ id: key.id, scope, key: secret }, () => [secret]);
}

async function list({ open }: CommandContext, kid: string | undefined): Promise<void> {
  const { database } = await open();
  if (kid !== undefined) await requireTenant(database, kid);
  const keys = (await createApiKeyStore(database).list(kid)).map(describe);
  printTable(keys, 'no API keys; `gpd apikeys create` makes one', {
    ID: 'id',
    KID: 'kid',
    SCOPE: 'scope',
    NAME: 'name',
    CREATED: ({ createdAt }) => createdAt.slice(0, 10),
    'LAST USED': ({ lastUsedAt }) => lastUsedAt ?? 'never',
    REVOKED: 'revokedAt',
  });
}

async function requireKey(database: Database, id: string): Promise<ApiKey> {
  const key = (await createApiKeyStore(database).list()).find((one) => one.id === id);
  if (key) return key;
  throw notFound(`no API key ${id}; \`gpd apikeys list\` shows them`);
}

async function rotate(
  { open, by, recordEnded }: CommandContext,
  id: string,
  options: DestructiveFlags & Flags<never, 'keepOld'>,
): Promise<void> {
  const { database } = await open();
  const store = createApiKeyStore(database);
  const { kid, scope, name, revokedAt } = await requireKey(database, id);
  if (revokedAt !== null)
    throw conflict(`${id} is revoked already; \`gpd apikeys create ${kid}\` makes a new key`);
  const [keepOld, dryRun] = [options.keepOld === true, options.dryRun === true];
  if (dryRun)
    return print({ id, kid, scope, name, dryRun, revokes: !keepOld }, () => [
      `would be replaced${keepOld ? ', and stay in use' : ''}: ${id}, ${scope} of ${kid} (${name})`,
    ]);
  if (!keepOld)
    await confirmOnTerminal(options, `Replacing ${id} of ${kid} (${name}): callers that have it get 401`);
  const { key, secret } = createApiKey({ kid, scope, name }, Date.now(), randomBytes);
  const act = await by(kid);
  const isStored = await (keepOld ? store.insert(key, act) : store.replace(id, key, act));
  if (!isStored) throw conflict(`${id} was revoked meanwhile; nothing was changed`);
  print({ id: key.id, scope, key: secret, revoked: keepOld ? null : id }, () => [secret]);
  if (!keepOld) await recordEnded(`${id} is revoked`);
}

async function revoke({ open, by, recordEnded }: CommandContext, id: string, options: DestructiveFlags) {
  const { database } = await open();
  const store = createApiKeyStore(database);
  const existingKey = await requireKey(database, id);
  if (options.dryRun === true) {
    return print({ ...describe(existingKey), dryRun: true }, () => [
      `would be revoked: ${id}, ${existingKey.scope} of ${existingKey.kid} (${existingKey.name})`,
    ]);
  }
  // A script needs no --yes: nothing may delay the revocation of a leaked key.
  await confirmOnTerminal(
    options,
    `Revoking ${id} of ${existingKey.kid} (${existingKey.name}): its callers get 401`,
  );
  const act = await by(existingKey.kid);
  const key = (await store.revoke(id, act)) ?? existingKey;
  await recordEnded(`${id} is revoked`);
  print(describe(key), () => [`${id} is revoked; running servers refuse it within 5 s`]);
}
