import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Config } from '../../../../src/config.ts';
import { type ConsentAppender, createConsentAppender } from '../../../../src/consent/append-store.ts';
import type { PrincipalState } from '../../../../src/consent/decide.ts';
import { findOpening } from '../../../../src/consent/openings-store.ts';
import type { Appended, AppendRequest } from '../../../../src/consent/plan-write.ts';
import { createConsentStateReader } from '../../../../src/consent/state-store.ts';
import { macTerms } from '../../../../src/consent/terms-store.ts';
import type { Database } from '../../../../src/db/engine.ts';
import { createMasterKey, principalKeyContext } from '../../../../src/keys/master-key.ts';
import { readEntries, readHead, type StoredEntry } from '../../../../src/log/entries-store.ts';
import { addTenant } from '../../../../src/ops/new-tenant-service.ts';
import type { ConsentChoice } from '../../../../src/schema/consent.ts';
import { createStateMac, type StateMac } from '../../../../src/tenants/state-mac.ts';
import { tempDir } from '../../../support/command.ts';
import { openPersonalEntry } from '../../../support/log-reader.ts';
import { NOW } from '../../../support/make.ts';
import { leafOf, treeHead } from '../support/naive-log.ts';

/** Tenants with a log each, and writes to it as the service makes them. */

/** Two nodes on one database: each test takes a kid of its own. */
export interface Nodes {
  readonly db: Database;
  readonly other: Database;
}

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

export const PURPOSE = 'device-identification';
export const WRAP_KEY = Buffer.alloc(32, 9);
const STATE_KEY = Buffer.alloc(32, 8);
export const macOf = (kid: string): StateMac => createStateMac(kid, STATE_KEY);
export const wrapper = createMasterKey(WRAP_KEY, randomBytes);
const store = {
  masterKey: createMasterKey(Buffer.alloc(32, 5), randomBytes),
  serverSecret: Buffer.alloc(32),
};

export async function addLog(database: Database, kid: string, now = NOW): Promise<string> {
  const config = { data_dir: tempDir('book'), base_url: 'https://gpd.example' } as Config;
  if (!(await addTenant({ ...store, database }, config, { kid, origins: [], now })))
    throw new Error(`${kid} is taken`);
  await database.transaction((tx) => macTerms(tx, { kid, stateMac: macOf(kid) }));
  return kid;
}

export const createAppender = (database: Database): ConsentAppender => createConsentAppender(database);

const ACTION_GPC: Partial<Record<ConsentChoice, boolean>> = { 'gpc-opt-out': true };

/** The principal's reference is its id behind `ref-`. */
export function createAppend(
  kid: string,
  over: Partial<AppendRequest> & { choice?: ConsentChoice } = {},
): AppendRequest {
  const { choice = 'granted', ...rest } = over;
  const principalId = over.principalId ?? 'anna';
  const gpc = 'gpc' in over ? over.gpc : ACTION_GPC[choice];
  const expiresAt = choice === 'granted' ? NOW + 1000 : null;
  const detail = { policyVersion: 2, gpc: gpc === true, source: 'backend', expiresAt } as const;
  return {
    kid,
    since: NOW,
    wrapKey: WRAP_KEY,
    stateMac: macOf(kid),
    principalId,
    principal: `ref-${principalId}`,
    entries: [{ purpose: PURPOSE, choice, detail }],
    gpc,
    isGrant: choice === 'granted',
    now: NOW,
    notify: () => [],
    idempotency: null,
    ...rest,
  };
}

/** Appends and insists that it is no conflict. */
export async function append(appender: ConsentAppender, request: AppendRequest): Promise<Appended> {
  const answer = await appender.append(request);
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

export const stateOf = (
  database: Database,
  kid: string,
  principalId = 'anna',
  purpose = PURPOSE,
): Promise<PrincipalState> =>
  createConsentStateReader(database).read({ kid, principal: `ref-${principalId}`, purpose, mac: macOf(kid) });

export const allEntries = (database: Database, kid: string): Promise<readonly StoredEntry[]> =>
  readEntries(database, kid, 0, 100_000);

/** The stored log must match the tree that RFC 6962 makes of its entries. @returns its size */
export async function expectWhole(database: Database, kid: string): Promise<number> {
  const entries = await allEntries(database, kid);
  const leaves = entries.map(({ entry }) => leafOf(entry));
  const head = await readHead(database, kid);
  const state = await stateOf(database, kid, 'nobody');
  const blocks: { level: number; block: number; hash: string }[] = await database
    .read('ledger_blocks')
    .where({ kid })
    .orderBy(['level', 'block'])
    .select('level', 'block', 'hash');
  const whole = numbers(Math.floor(leaves.length / 256)).map((i) => ({
    level: 1,
    block: i,
    hash: treeHead(leaves.slice(i * 256, (i + 1) * 256)).toString('hex'),
  }));
  expect({
    seqs: entries.map(({ seq }) => seq),
    hashes: entries.map(({ hash }) => hash),
    size: head?.size,
    root: head?.root.toString('hex'),
    last: state.head,
    blocks: blocks.map(({ level, block, hash }) => ({ level, block: Number(block), hash })),
  }).toEqual({
    seqs: numbers(entries.length),
    hashes: leaves.map((leaf) => leaf.toString('hex')),
    size: leaves.length,
    root: treeHead(leaves).toString('hex'),
    last: { seq: leaves.length - 1, hash: leaves.at(-1)?.toString('hex') },
    blocks: whole,
  });
  return leaves.length;
}

/** The principal's own key, or null when it was destroyed. */
export async function principalKey(database: Database, kid: string, principalId = 'anna') {
  const principal = `ref-${principalId}`;
  const row = await database
    .read('consent_principals')
    .where({ kid, principal })
    .first<{ wrapped_key: string | null } | undefined>('wrapped_key');
  const wrapped = row?.wrapped_key ?? null;
  return wrapped === null ? null : wrapper.unwrap(wrapped, principalKeyContext(kid, principal));
}

/** Does the principal's key, as it is now, open this entry of its log? */
export async function opens(database: Database, kid: string, seq: number, principalId = 'anna') {
  const key = await principalKey(database, kid, principalId);
  const opening = await findOpening(database, { kid, wrapper }, seq);
  const entry = (await allEntries(database, kid))[seq];
  if (!key || !opening || !entry) return false;
  const salt = Buffer.from(opening.salt, 'base64url');
  return openPersonalEntry(Buffer.from(entry.entry), { key, salt, principalId, detail: opening.detail });
}
