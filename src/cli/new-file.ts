import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { CommandFailed, conflict, misused } from './io.ts';

/** A file that is there whole or not at all, for its owner only, and never in the place of another. */

const taken = (path: string): CommandFailed => conflict(`${path} already exists; nothing was changed`);

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code);

/** @throws {CommandFailed} when it is there already */
export function expectNoFile(path: string): void {
  if (existsSync(path)) throw taken(path);
}

async function create(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    const why = codeOf(error);
    if (why === 'ENOENT' || why === 'ENOTDIR') throw misused(`no such directory: ${dirname(path)}`);
    if (why === 'EACCES' || why === 'EPERM' || why === 'EROFS') {
      throw new CommandFailed(
        'notAllowed',
        `cannot write to ${dirname(path)}: ${why === 'EROFS' ? 'read-only file system' : 'permission denied'}`,
      );
    }
    throw error;
  }
}

/** A link does not overwrite; some file systems (FAT on a stick) have none. */
async function place(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
    await rm(from);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw taken(to);
    expectNoFile(to);
    await rename(from, to);
  }
}

/** Under a temporary name until `write` has filled it. @throws {CommandFailed} `conflict` */
export async function writeNewFile<T>(path: string, write: (output: Writable) => Promise<T>): Promise<T> {
  expectNoFile(path);
  const part = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.part`);
  const file = await create(part);
  try {
    const output = file.createWriteStream({ flush: true });
    const result = await write(output);
    if (!output.closed) await once(output, 'close');
    await place(part, path);
    return result;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(part, { force: true });
    throw error;
  }
}
