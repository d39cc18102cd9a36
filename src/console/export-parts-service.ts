import type { Database } from '../db/db.ts';
import { Refusal } from '../lib/errors.ts';
import { decryptGcm, encryptGcm, GCM_IV_BYTES } from '../lib/gcm.ts';
import { hmacSha256, sha256 } from '../lib/hash.ts';
import { appendPart, readPart } from '../rights/job-store.ts';

/**
 * What an export wrote, in parts of one size in the database, where every node can read it. Each export has its own key,
 * of the server's secret and of the job's id: neither the database alone nor a backup of it opens one.
 */

const PART_BYTES = 256 * 1024;
/** What a page may put into the database; the command line writes to a file and has no such limit. */
const MAX_BYTES = 128 * 1024 * 1024;

/** The job was ended from outside: by an erasure, or with its process. */
export class JobGone extends Error {
  constructor() {
    super('the job is gone');
    this.name = 'JobGone';
  }
}

/** Derived from the server's secret. */
export interface ExportKeys {
  readonly exports: Uint8Array;
}

export interface Export {
  readonly database: Database;
  readonly keys: ExportKeys;
  /** Of its job. */
  readonly id: string;
}

/** Never twice under one key: a part is written once. */
function ivOf(part: number): Buffer {
  const iv = Buffer.alloc(GCM_IV_BYTES);
  iv.writeUInt32BE(part, GCM_IV_BYTES - 4);
  return iv;
}

const AAD = Buffer.from('gpd/console-export/v1');

type MakeBeat = () => { readonly done: number; readonly total: number; readonly at: number };

/** Takes what an archive writes, part by part. @throws {JobGone}, or when it is too much. @returns the bytes */
export async function sealExport(
  { database, keys, id }: Export,
  content: AsyncIterable<Buffer>,
  beat: MakeBeat,
  most = MAX_BYTES,
): Promise<number> {
  const hash = sha256(id).toString('hex');
  const key = hmacSha256(keys.exports, id);
  let part = 0;
  async function append(plain: Buffer): Promise<void> {
    const sealed = encryptGcm(key, ivOf(part), AAD, plain);
    if (!(await appendPart(database, hash, { part, sealed }, beat()))) throw new JobGone();
    part += 1;
  }

  let waiting: Buffer[] = [];
  let held = 0;
  let total = 0;
  for await (const chunk of content) {
    waiting.push(chunk);
    held += chunk.length;
    total += chunk.length;
    if (total > most) throw new Error('the export is too large for the console: gpd dsar export');
    if (held < PART_BYTES) continue;
    const all = Buffer.concat(waiting);
    let at = 0;
    for (; all.length - at >= PART_BYTES; at += PART_BYTES) await append(all.subarray(at, at + PART_BYTES));
    waiting = [all.subarray(at)];
    held = all.length - at;
  }
  if (held > 0) await append(Buffer.concat(waiting));
  return total;
}

/** @throws {Refusal} `not-found` when it was ended meanwhile */
export async function* openExport({ database, keys, id }: Export, bytes: number): AsyncGenerator<Buffer> {
  const hash = sha256(id).toString('hex');
  const key = hmacSha256(keys.exports, id);
  for (let part = 0; part * PART_BYTES < bytes; part += 1) {
    const sealed = await readPart(database, hash, part);
    const opened = sealed && decryptGcm(key, ivOf(part), AAD, sealed);
    if (!opened) throw new Refusal('not-found');
    yield opened;
  }
}
