import { existsSync } from 'node:fs';
import { type FileHandle, mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { syncPath } from '../../db/durable-files.ts';
import { isoTime } from '../../lib/clock.ts';
import type { StoredErasure } from './receipts-store.ts';

/**
 * Tombstones of erasures, outside the database: one line of JSON each in DATA_DIR/erasures.log, appended and synced. A
 * database that is restored from an older backup does not know of them; the start applies them again. They hold keyed
 * references and name nobody.
 */

export function tombstoneFile(dataDir: string): string {
  return join(dataDir, 'erasures.log');
}

const lineSchema = z.object({
  v: z.literal(1),
  receiptId: z.string(),
  tenant: z.string(),
  subject: z.string(),
  requestedBy: z.enum(['subject', 'dpo', 'operator']),
  at: z.string(),
  keep: z.object({ openContests: z.boolean(), override: z.boolean() }),
  refs: z.array(z.object({ kind: z.enum(['durable', 'request', 'principal', 'tenant']), ref: z.string() })),
});
export type Tombstone = z.infer<typeof lineSchema>;

const PIECE_BYTES = 64 * 1024;

/** Where the last whole line ends; 0 where there is none. */
async function endOfLines(file: FileHandle, size: number): Promise<number> {
  const piece = Buffer.alloc(Math.min(PIECE_BYTES, size));
  for (let to = size; to > 0; ) {
    const from = Math.max(0, to - piece.length);
    const { bytesRead } = await file.read(piece, 0, to - from, from);
    if (bytesRead !== to - from) throw new Error('the log of erasures was cut while it was read');
    const at = piece.subarray(0, bytesRead).lastIndexOf(0x0a);
    if (at !== -1) return from + at + 1;
    to = from;
  }
  return 0;
}

/** A full disk or a crash cut a line short: the next one would be appended to it, and neither could be read. */
async function dropTornLine(file: FileHandle): Promise<void> {
  const { size } = await file.stat();
  const end = await endOfLines(file, size);
  if (end < size) await file.truncate(end);
}

async function append(dataDir: string, line: Tombstone): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = tombstoneFile(dataDir);
  const isNew = !existsSync(path);
  const file = await open(path, 'a+', 0o600);
  try {
    await dropTornLine(file);
    await file.appendFile(`${JSON.stringify(line)}\n`);
    await file.sync();
  } catch (error) {
    await dropTornLine(file).catch(() => {});
    throw error;
  } finally {
    await file.close();
  }
  if (isNew) syncPath(dataDir);
}

/** Durable before it returns. Written twice is no harm: a receipt is applied once. */
export function appendTombstone(dataDir: string, erasure: StoredErasure): Promise<void> {
  return append(dataDir, {
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
export function buryTenant(dataDir: string, kid: string, now: number): Promise<void> {
  return append(dataDir, {
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

/** @throws when it is none */
export function parseTombstone(line: string): Tombstone {
  return lineSchema.parse(JSON.parse(line));
}

export function readableTombstones(lines: readonly string[]): Tombstone[] {
  return lines.flatMap((line) => {
    try {
      return [parseTombstone(line)];
    } catch {
      return [];
    }
  });
}

/** All that can be read: a line that a crash cut short is passed over, its receipt is still unfinished in the database. */
export async function readTombstones(dataDir: string): Promise<readonly Tombstone[]> {
  const path = tombstoneFile(dataDir);
  return existsSync(path) ? readableTombstones((await readFile(path, 'utf8')).split('\n')) : [];
}
