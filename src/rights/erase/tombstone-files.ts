import { existsSync, statSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChainedLog, makeChainedLog } from '../../db/chained-log-files.ts';
import type { Database } from '../../db/db.ts';
import type { KeyPlan } from '../../keys/rotate.ts';
import { isoTime } from '../../lib/clock.ts';
import {
  afterBody,
  type Cut,
  checkLines,
  completeLines,
  ERASURES,
  type ErasureLog,
  erasureLogKey,
  type HoldLine,
  type LogHead,
  NO_HEAD,
  type OutsideLine,
} from './erasure-chain-service.ts';
import { readLogHead, saveLogHead } from './erasure-head-store.ts';
import type { StoredErasure } from './receipts-store.ts';

/**
 * What a restored database must not undo, outside of it: one line of JSON each in DATA_DIR/erasures.log, chained, with a MAC,
 * synced. The start applies them again. They hold keyed references and name nobody.
 */

export function tombstoneFile(dataDir: string): string {
  return join(dataDir, 'erasures.log');
}

/** Where the lines go, and what keeps count of them. */
export interface OutsideLog {
  readonly database: Database;
  readonly dataDir: string;
  readonly logKey: Uint8Array;
}

interface Open {
  inode: number;
  readonly log: ChainedLog;
  head: LogHead;
}

/** A long file is read once; one that a restore replaced, again. */
const opened = new Map<string, Open>();

function openLog({ dataDir, logKey: key }: OutsideLog): Open {
  const path = tombstoneFile(dataDir);
  const inode = statSync(path, { throwIfNoEntry: false })?.ino ?? 0;
  const known = opened.get(path);
  if (known?.inode === inode && inode !== 0) return known;
  const onLine = (body: unknown): void => {
    open.head = afterBody(open.head, JSON.stringify(body));
  };
  const log = makeChainedLog({ path, key, name: ERASURES, mayBeginBare: true, onLine });
  const open: Open = { inode, log, head: NO_HEAD };
  return open;
}

/** Durable before it returns. Written twice is no harm: a line is applied once. */
async function appendLine(outside: OutsideLog, line: OutsideLine): Promise<void> {
  const { dataDir, database, logKey } = outside;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const open = openLog(outside);
  await open.log.append(() => line);
  const path = tombstoneFile(dataDir);
  open.inode = statSync(path).ino;
  opened.set(path, open);
  await saveLogHead(database, logKey, open.head);
}

export function appendTombstone(outside: OutsideLog, erasure: StoredErasure): Promise<void> {
  return appendLine(outside, {
    v: 1,
    receiptId: erasure.receiptId,
    tenant: erasure.kid,
    subject: erasure.subject,
    requestedBy: erasure.requestedBy,
    at: isoTime(erasure.erasedAt),
    keep: erasure.keep,
    refs: [...erasure.refs],
  });
}

/** A tenant that was offboarded: an older backup would bring it back. */
export function buryTenant(outside: OutsideLog, kid: string, now: number): Promise<void> {
  return appendLine(outside, {
    v: 1,
    receiptId: `off_${kid}_${now}`,
    tenant: kid,
    subject: kid,
    requestedBy: 'operator',
    at: isoTime(now),
    keep: { openContests: false, override: false },
    refs: [{ kind: 'tenant', ref: kid }],
  });
}

/** All that can be read, with what is wrong: who was promised to be gone must not come back for a line that is damaged. */
export async function readOutsideLog({ database, dataDir, logKey }: OutsideLog): Promise<ErasureLog> {
  const path = tombstoneFile(dataDir);
  const readLines = async () => (existsSync(path) ? completeLines(await readFile(path, 'utf8')) : []);
  // Read again after the count: a server appends meanwhile.
  const kept = await readLogHead(database, logKey, await readLines());
  return checkLines(await readLines(), logKey, kept);
}

type WithoutMoment<T> = T extends unknown ? Omit<T, 'v' | 'at'> : never;

/** What a restore must not undo either. */
export function appendCut(outside: OutsideLog, cut: WithoutMoment<Cut | HoldLine>, now: number) {
  return appendLine(outside, { v: 1, at: isoTime(now), ...cut } as Cut | HoldLine);
}

/** Seal keys that a plan destroyed: an older backup would publish them again. */
export async function buryKeys(outside: OutsideLog, plan: KeyPlan | null, now: number): Promise<void> {
  for (const { kid, generation, state } of plan?.ok ? plan.changed : [])
    if (state === 'destroyed')
      await appendCut(outside, { event: 'seal-key.destroyed', tenant: kid, generation }, now);
}

export const outsideOf = (
  { database, serverSecret }: { readonly database: Database; readonly serverSecret: Uint8Array },
  { data_dir }: { readonly data_dir: string },
): OutsideLog => ({ database, dataDir: data_dir, logKey: erasureLogKey(serverSecret) });
