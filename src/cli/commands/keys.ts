import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { listKids } from '../../db/meta-store.ts';
import {
  type AcceptedPlan,
  createGenerationFactory,
  type Generation,
  type KeyPlan,
  type KeyRefusal,
  planDestroy,
  planGenerate,
} from '../../keys/generation.ts';
import { SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/master-key.ts';
import { iso, isoTime } from '../../lib/clock.ts';
import { decodeBase64 } from '../../lib/crypto.ts';
import { tryOr } from '../../lib/errors.ts';
import { masterKeyPath } from '../../tenants/master-key-files.ts';
import {
  changeSealKeys,
  listSealKeys,
  readTenantSecret,
  rotateSealKey,
  saveTenantSecret,
} from '../../tenants/secrets-store.ts';
import {
  addCommand,
  type CommandContext,
  checkInteger,
  DRY_RUN,
  type Flags,
  noSuchTenant,
  ONE_KID,
  parseDuration,
  readGivenFile,
  YES,
} from '../command-service.ts';
import {
  CommandFailed,
  confirm,
  confirmOnTerminal,
  type DestructiveFlags,
  type ExitName,
  io,
  misused,
  print,
  printTable,
  say,
} from '../io-service.ts';

export function define(keys: Command): void {
  addCommand(keys, 'generate [kid]', generate, {
    about: 'stage a generation for the next rotation to publish',
    example: 'gpd keys generate shop',
  });
  addCommand(keys, 'rotate [kid]', rotate, {
    about: 'publish the staged generation, or a new one, and retire the old',
    example: 'gpd keys rotate shop --grace 48h',
  })
    .option('--grace <duration>', 'how long the old one can still decrypt', '7d')
    .option('--force', 'destroy the oldest generation if three are already live')
    .option('--yes', 'do not ask, with --force')
    .option(...DRY_RUN);
  addCommand(keys, 'list', list, {
    about: 'list generations and their states',
    example: 'gpd keys list shop',
  }).argument(...ONE_KID);
  addCommand(keys, 'destroy <kid>', destroy, {
    about: 'overwrite a private key; bundles sealed to it can no longer be decrypted',
    example: 'gpd keys destroy shop 1 --dry-run',
  })
    .argument('<generation>', 'its number')
    .option(...YES)
    .option(...DRY_RUN);
  addCommand(keys, 'symmetric [kid]', createSymmetric, {
    about: 'create the legacy shared key; print it once',
    example: 'gpd keys symmetric shop --import shared.key',
  })
    .option('--import <file>', 'import the key from this file (- for standard input)')
    .option('--yes', 'do not ask before replacing a key')
    .option('--dry-run', 'show whether it would replace a key; change nothing');
  addCommand(keys, 'rewrap', rewrapAll, {
    about: 'change the master key',
    example: 'gpd keys rewrap --dry-run',
  })
    .option(
      '--new-key-file <file>',
      'read the new key from this file (needed if the key is outside the data directory)',
    )
    .option(...YES)
    .option(...DRY_RUN);
}

const REFUSALS: Readonly<Record<KeyRefusal, readonly [ExitName, string]>> = {
  'already-staged': ['conflict', 'a generation is already staged; `gpd keys rotate` publishes it'],
  'too-many-live': [
    'conflict',
    'at most three generations may be live: wait for a grace period to end, or repeat with --force, which destroys the oldest',
  ],
  'is-published': [
    'conflict',
    'this generation is published and browsers seal to it; run `gpd keys rotate` first',
  ],
  'no-such-generation': ['notFound', 'no such generation; `gpd keys list` shows them'],
};

function describe(key: Generation) {
  const { kid, generation, state, publicKey } = key;
  const [createdAt, publishedAt] = [iso(key.createdAt), iso(key.publishedAt)];
  const [retiresAt, destroyedAt] = [iso(key.retiresAt), iso(key.destroyedAt)];
  return { kid, generation, state, publicKey, createdAt, publishedAt, retiresAt, destroyedAt };
}

function requireAccepted(kid: string, plan: KeyPlan | null): AcceptedPlan {
  if (!plan) throw noSuchTenant(kid);
  if (plan.ok) return plan;
  throw new CommandFailed(...REFUSALS[plan.reason]);
}

function printKey(key: Generation): void {
  const { kid, generation, state, publicKey } = key;
  print({ kid, generation, state, publicKey }, () => [`${kid} generation ${generation}: ${state}`]);
}

async function generate({ open, resolveKid, by }: CommandContext, kidArgument?: string): Promise<void> {
  const store = await open();
  const kid = await resolveKid(kidArgument);
  const act = await by(kid);
  const make = createGenerationFactory(store.masterKey, kid, act.at);
  const plan = await changeSealKeys(store.database, kid, (keys) => planGenerate(keys, make), act);
  printKey(requireAccepted(kid, plan).result);
}

type RotateFlags = Flags<never, 'yes' | 'dryRun' | 'force'> & { readonly grace: string };

async function rotate(
  { open, resolveKid, by, recordEnded }: CommandContext,
  kidArgument: string | undefined,
  options: RotateFlags,
): Promise<void> {
  const graceMs = parseDuration(options.grace);
  if (graceMs === null)
    throw misused(`--grace ${options.grace}: must be a duration such as 30s, 15m, 12h or 7d`);
  const [force, dryRun] = [options.force === true, options.dryRun === true];
  const store = await open();
  const kid = await resolveKid(kidArgument);
  const act = await by(kid);
  if (force && !dryRun)
    await confirmOnTerminal(
      options,
      'Bundles sealed to a generation that is destroyed before its grace period ends can no longer be decrypted',
    );
  const plan = await rotateSealKey(store, kid, { graceMs, force, dryRun }, act);
  const { changed, result } = requireAccepted(kid, plan);
  if (dryRun) {
    const planned = changed.map(({ generation, state }) => ({ generation, state }));
    return print({ kid, dryRun, changed: planned }, () =>
      planned.map(({ generation, state }) => `generation ${generation} would be ${state}`),
    );
  }
  if (changed.some(({ state }) => state === 'destroyed'))
    await recordEnded(`generation ${result.generation} of ${kid} is published`);
  printKey(result);
}

async function list({ open }: CommandContext, kid: string | undefined): Promise<void> {
  const { database } = await open();
  const all = await listKids(database);
  const kids = all.filter((name) => kid === undefined || name === kid);
  if (kid !== undefined && kids.length === 0) throw noSuchTenant(kid);
  const keys = (await Promise.all(kids.map((name) => listSealKeys(database.read, name)))).flat();
  printTable(
    keys,
    'no keys; `gpd keys rotate` makes one',
    {
      KID: 'kid',
      GEN: 'generation',
      STATE: 'state',
      CREATED: ({ createdAt }) => isoTime(createdAt).slice(0, 10),
      'OPENS UNTIL': ({ retiresAt }) => iso(retiresAt) ?? '',
    },
    keys.map(describe),
  );
}

async function destroy(
  { open, by, recordEnded }: CommandContext,
  kid: string,
  generationText: string,
  options: DestructiveFlags,
): Promise<void> {
  const range = [1, Number.MAX_SAFE_INTEGER] as const;
  const generation = checkInteger('generation', generationText, range, 'a whole number from 1');
  const { database } = await open();
  const keys = await listSealKeys(database.read, kid);
  if (keys.length === 0) throw noSuchTenant(kid);
  const { result } = requireAccepted(kid, planDestroy(keys, generation, Date.now()));
  if (options.dryRun === true) {
    return print({ kid, generation, dryRun: true, state: result.state }, () => [
      `would be destroyed: ${kid} generation ${generation}; bundles sealed to it could no longer be decrypted`,
    ]);
  }
  await confirm(
    options,
    `Destroying generation ${generation} of ${kid}: bundles sealed to it can no longer be decrypted`,
  );
  const act = await by(kid);
  const plan = await changeSealKeys(
    database,
    kid,
    (current) => planDestroy(current, generation, act.at),
    act,
  );
  const destroyed = requireAccepted(kid, plan).result;
  await recordEnded(`generation ${generation} of ${kid} is destroyed`);
  printKey(destroyed);
}

/**
 * Never from an argument, which every user of the machine can see.
 * @returns null where the input is not base64
 */
async function readSharedKey(file: string): Promise<Buffer | null> {
  const content = file === '-' ? await text(io().stdin) : readGivenFile(file)?.toString('latin1');
  return tryOr(() => decodeBase64((content ?? '').trim()), null);
}

/** Creates or imports the legacy shared key. A new one replaces the old, which then decrypts nothing. */
async function createSymmetric(
  { open, resolveKid, by }: CommandContext,
  kidArgument: string | undefined,
  options: DestructiveFlags & Flags<'import'>,
): Promise<void> {
  const sharedKey = options.import === undefined ? randomBytes(32) : await readSharedKey(options.import);
  if (sharedKey?.length !== 32)
    throw misused('--import must name a file with the base64 of 32 bytes, or - for standard input');
  const { database, masterKey } = await open();
  const kid = await resolveKid(kidArgument);
  const replaces = (await readTenantSecret(database, kid, SYMMETRIC_SECRET)) !== null;
  if (options.dryRun === true) {
    const kids = await listKids(database);
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
  const wrapped = masterKey.wrap(sharedKey, tenantSecretContext(kid, SYMMETRIC_SECRET));
  if (!(await saveTenantSecret(database, kid, SYMMETRIC_SECRET, wrapped, await by(kid))))
    throw noSuchTenant(kid);
  const key = sharedKey.toString('base64');
  print({ kid, key }, () => [key]);
}

async function rewrapAll(
  { config, open, byAll }: CommandContext,
  options: DestructiveFlags & Flags<'newKeyFile'>,
): Promise<void> {
  const dryRun = options.dryRun === true;
  const store = await open();
  await confirm(options, 'Changing the master key: the old one then opens only the backups made before');
  const { rewrap } = await import('../../ops/rewrap-service.ts');
  const result = await rewrap(store, config, { dryRun, by: await byAll(), newKeyFile: options.newKeyFile });
  if (!result.dryRun && result.masterKey !== masterKeyPath(config))
    say(
      `From now on gpd needs GPD_MASTER_KEY_FILE=${resolve(result.masterKey)}, or that file as its systemd credential: the configured key no longer opens this database.`,
    );
  print(result, () => [
    `${dryRun ? 'would be encrypted again' : 'encrypted again'}: ${result.secrets} secrets, ${result.sealKeys} seal keys`,
    `master key: ${result.masterKey}`,
    ...(dryRun ? [] : ['The recovery key has changed. Next: gpd master-key escrow']),
  ]);
}
