import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  type Generation,
  type KeyPlan,
  type KeyRefusal,
  makeGeneration,
  planDestroy,
  planGenerate,
  planRotate,
} from '../../keys/generation.ts';
import { SYMMETRIC_SECRET, tenantSecretContext } from '../../keys/master-key.ts';
import { iso, isoTime, parseDuration } from '../../lib/clock.ts';
import { decodeBase64 } from '../../lib/crypto.ts';
import { rewrap } from '../../ops/rewrap-service.ts';
import type { Store } from '../../tenants/installation-files.ts';
import { masterKeyPath } from '../../tenants/master-key-files.ts';
import { makeSealKeyStore } from '../../tenants/seal-keys.ts';
import { makeTenantStore, readTenantSecret, saveTenantSecret } from '../../tenants/tenant-store.ts';
import { command, withContext } from '../command.ts';
import type { Actions } from '../define.ts';
import { io } from '../io.ts';
import { CommandFailed, type ExitName, misused, print, printTable, say } from '../output.ts';
import { recordOutside } from '../outside.ts';
import {
  checkWhole,
  confirm,
  confirmOnTerminal,
  type DestructiveFlags,
  type Flags,
  noSuchTenant,
} from '../run.ts';

const DEFAULT_GRACE = '7d';

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

function accepted(kid: string, plan: KeyPlan | null): Generation {
  if (!plan) throw noSuchTenant(kid);
  if (plan.ok) return plan.result;
  throw new CommandFailed(...REFUSALS[plan.why]);
}

function maker(store: Store, kid: string, now: number) {
  return (generation: number, state: 'staged' | 'published'): Generation =>
    makeGeneration(kid, generation, state, { masterKey: store.masterKey, now });
}

function printKey(key: Generation): void {
  const { kid, generation, state, publicKey } = key;
  print({ kid, generation, state, publicKey }, () => [`${kid} generation ${generation}: ${state}`]);
}

const generate = command(async ({ store, by }, kid: string) => {
  const act = await by(kid);
  const make = maker(store, kid, act.at);
  const plan = await makeSealKeyStore(store.database).change(kid, (keys) => planGenerate(keys, make), act);
  printKey(accepted(kid, plan));
});

type RotateFlags = Flags<never, 'yes' | 'dryRun' | 'force'> & { readonly grace: string };

async function rotate(kid: string, options: RotateFlags): Promise<void> {
  const graceMs = parseDuration(options.grace);
  if (graceMs === null) throw misused('--grace must be a duration such as 30s, 15m, 12h or 7d');
  await withContext(async ({ store, config, by }) => {
    const act = await by(kid);
    const now = act.at;
    const keyStore = makeSealKeyStore(store.database);
    const plan = (keys: readonly Generation[]): KeyPlan =>
      planRotate(keys, maker(store, kid, now), { now, graceMs, force: options.force === true });
    if (options.dryRun === true) {
      const keys = await keyStore.list(kid);
      if (keys.length === 0) throw noSuchTenant(kid);
      const planned = plan(keys);
      accepted(kid, planned);
      const changed = planned.ok
        ? planned.changed.map(({ generation, state }) => ({ generation, state }))
        : [];
      return print({ kid, dryRun: true, changed }, () =>
        changed.map((key) => `would be ${key.state}: generation ${key.generation}`),
      );
    }
    if (options.force === true) {
      await confirmOnTerminal(
        options,
        'Bundles sealed to a generation that is destroyed before its grace period ends can no longer be decrypted',
      );
    }
    const changed = await keyStore.change(kid, plan, act);
    const rotated = accepted(kid, changed);
    await recordOutside(store, config, `generation ${rotated.generation} of ${kid} is published`);
    printKey(rotated);
  });
}

const list = command(async ({ database }, kid: string | undefined) => {
  const all = await makeTenantStore(database).kids();
  const kids = all.filter((name) => kid === undefined || name === kid);
  if (kid !== undefined && kids.length === 0) throw noSuchTenant(kid);
  const store = makeSealKeyStore(database);
  const keys = (await Promise.all(kids.map((name) => store.list(name)))).flat();
  printTable(keys.map(describe), keys, {
    KID: 'kid',
    GEN: 'generation',
    STATE: 'state',
    CREATED: ({ createdAt }) => isoTime(createdAt).slice(0, 10),
    'OPENS UNTIL': ({ retiresAt }) => iso(retiresAt) ?? '',
  });
});

async function destroy(kid: string, gen: string, options: DestructiveFlags): Promise<void> {
  const anyOf = [1, Number.MAX_SAFE_INTEGER] as const;
  const generation = checkWhole(gen, anyOf, 'a generation is a whole number from 1');
  await withContext(async ({ store, config, by }) => {
    const keyStore = makeSealKeyStore(store.database);
    const keys = await keyStore.list(kid);
    if (keys.length === 0) throw noSuchTenant(kid);
    const result = accepted(kid, planDestroy(keys, generation, Date.now()));
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
    const plan = await keyStore.change(kid, (current) => planDestroy(current, generation, act.at), act);
    const gone = accepted(kid, plan);
    await recordOutside(store, config, `generation ${generation} of ${kid} is destroyed`);
    printKey(gone);
  });
}

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
async function symmetric(kid: string, options: DestructiveFlags & Flags<'import'>): Promise<void> {
  const given = options.import === undefined ? randomBytes(32) : await readSharedKey(options.import);
  if (given?.length !== 32)
    throw misused('--import must name a file with the base64 of 32 bytes, or - for standard input');
  await withContext(async ({ store: { database, masterKey }, by }) => {
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
    if (!(await saveTenantSecret(database, kid, SYMMETRIC_SECRET, wrapped, await by(kid))))
      throw noSuchTenant(kid);
    const key = given.toString('base64');
    print({ kid, key }, () => [key]);
  });
}

const rewrapCommand = command(
  async ({ store, config, byAll }, options: DestructiveFlags & Flags<'newKeyFile'>) => {
    await confirm(options, 'Changing the master key: the old one then opens only the backups made before');
    const result = await rewrap(store, config, {
      dryRun: options.dryRun === true,
      by: await byAll(),
      newKeyFile: options.newKeyFile,
    });
    if (!result.dryRun && result.masterKey !== masterKeyPath(config))
      say(
        `From now on gpd needs GPD_MASTER_KEY_FILE=${resolve(result.masterKey)}, or that file as its systemd credential: the configured key no longer opens this database.`,
      );
    print(result, () => [
      `${options.dryRun === true ? 'would be encrypted again' : 'encrypted again'}: ${result.secrets} secrets, ${result.sealKeys} seal keys`,
      `master key: ${result.masterKey}`,
      ...(options.dryRun === true ? [] : ['The recovery key has changed. Next: gpd master-key escrow']),
    ]);
  },
);

export const ACTIONS: Actions = {
  generate,
  rotate: [rotate, { grace: DEFAULT_GRACE }],
  list,
  destroy,
  symmetric,
  rewrap: rewrapCommand,
};
